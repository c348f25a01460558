"""oneDNN, the host library and TVM in one function, in every order, by every way that a function goes."""

from __future__ import annotations

import itertools
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import tvm
from host_networks import between_convolutions
from rpc_processes import KEY
from tvm import relax

import tvm_mxplan
from tvm_mxplan.opcheck import checking
from tvm_mxplan.remote.run import measure_there

ORDERS = [", ".join(order) for order in itertools.permutations(("dnnl", "host", "llvm"))]
X = np.random.default_rng(3).standard_normal((2, 3, 9, 7), np.float32)
PREFER = {"conv2d": "dnnl", **dict.fromkeys(("mean", "subtract", "erf", "strided_slice"), "host")}
"""Both libraries have operators, whoever comes first."""


def network() -> tvm.IRModule:
    """Two convolutions with a mean over one axis, a function and a backwards slice between them."""
    return between_convolutions(
        lambda y: relax.op.subtract(y, relax.op.mean(y, [2], keepdims=True)),
        lambda y: relax.op.strided_slice(relax.op.erf(y), [2], [8], [-10], [-1]),
    )


@pytest.fixture(scope="module")
def expected() -> np.ndarray:
    """By TVM alone."""
    return tvm_mxplan.compile(network(), "llvm")(X)[0].numpy()


def ran_by(ex: tvm_mxplan.Executable) -> dict[str, set[str]]:
    """Kinds of steps by who runs them, in the one region that there is."""
    (region,) = ex.report.regions
    found: dict[str, set[str]] = {"host": set(), "dnnl": set()}
    for step in region.steps:
        found["host" if step.implementation.startswith("host:") else "dnnl"].add(step.kind)
    return found


def of_both(ex: tvm_mxplan.Executable) -> bool:
    kinds = ran_by(ex)
    return "convolution" in kinds["dnnl"] and {"reduction", "eltwise", "strided_slice"} <= kinds["host"]


@pytest.mark.parametrize("order", ORDERS)
def test_in_any_order(order: str, expected: np.ndarray, tmp_path: Path, pi: str) -> None:
    told = {"prefer": PREFER, "machine": "default"}
    sure = tvm_mxplan.compile(network(), order, options={**told, "verify": "all", "cache": "disabled"})
    assert of_both(sure)
    assert not sure.report.verification.refused and not sure.report.verification.unchecked
    options = {**told, "cache": "on_compile"}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TVM_MXPLAN_CACHE_DIR", str(tmp_path / "cache"))
        ex, kept = (tvm_mxplan.compile(network(), order, options=options) for _ in range(2))
    assert (ex.report.cache.outcome, kept.report.cache.outcome) == ("miss", "hit")
    assert of_both(ex) and of_both(kept)
    for one in (ex, kept):
        with checking() as checker:
            found = one(X)[0].numpy()
        checked = checker.result()
        assert not checked.differences and checked.steps == len(one.report.regions[0].steps), str(checked)
        np.testing.assert_allclose(found, expected, atol=1e-5)

    library = tmp_path / "both.so"
    ex.export(library)
    np.save(tmp_path / "x.npy", X)
    code = (
        "import sys, numpy as np, tvm_mxplan\n"
        "np.save(sys.argv[3], tvm_mxplan.load(sys.argv[1])(np.load(sys.argv[2]))[0].numpy())\n"
    )
    paths = [library, tmp_path / "x.npy", tmp_path / "y.npy"]
    subprocess.run([sys.executable, "-c", code, *map(str, paths)], check=True)
    np.testing.assert_array_equal(np.load(paths[-1]), found)

    remote = tvm_mxplan.Remote(tracker=pi, key=KEY)
    (there,), _ = measure_there(remote, library, ex.signature, {"x": X}, 1, 1, False)
    np.testing.assert_allclose(there, expected, atol=1e-5)


@pytest.mark.parametrize("order", ORDERS)
def test_tuned_in_any_order(order: str, expected: np.ndarray, tmp_path: Path) -> None:
    told = {"prefer": PREFER, "machine": "default"}
    options = {"tune_seconds": 20.0, **told}
    ex = tvm_mxplan.tune(network(), tmp_path / "records", order, options=options)
    assert of_both(ex) and ex.report.tuning.measured["operators"] > 3
    np.testing.assert_allclose(ex(X)[0].numpy(), expected, atol=1e-5)
    again = tvm_mxplan.compile(
        network(), order, options={**told, "tuning_records": str(tmp_path / "records")}
    )
    assert of_both(again) and not again.report.tuning.measured
    np.testing.assert_array_equal(again(X)[0].numpy(), ex(X)[0].numpy())
