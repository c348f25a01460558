"""oneDNN, the host library and TVM in one function, in every order, by every way that a function goes."""

from __future__ import annotations

import itertools
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from host_networks import PREFER, X, for_both, ran_by_both
from rpc_processes import KEY

import tvm_mxplan
from tvm_mxplan.opcheck import checking
from tvm_mxplan.remote.run import measure_there

ORDERS = [", ".join(order) for order in itertools.permutations(("dnnl", "host", "llvm"))]


@pytest.fixture(scope="module")
def expected() -> np.ndarray:
    """By TVM alone."""
    return tvm_mxplan.compile(for_both(), "llvm")(X)[0].numpy()


@pytest.mark.slow
@pytest.mark.parametrize("order", ORDERS)
def test_in_any_order(order: str, expected: np.ndarray, tmp_path: Path, pi: str) -> None:
    told = {"prefer": PREFER, "machine": "default"}
    sure = tvm_mxplan.compile(for_both(), order, options={**told, "verify": "all", "cache": "disabled"})
    assert ran_by_both(sure)
    assert not sure.report.verification.refused and not sure.report.verification.unchecked
    options = {**told, "cache": "on_compile"}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TVM_MXPLAN_CACHE_DIR", str(tmp_path / "cache"))
        ex, kept = (tvm_mxplan.compile(for_both(), order, options=options) for _ in range(2))
    assert (ex.report.cache.outcome, kept.report.cache.outcome) == ("miss", "hit")
    assert ran_by_both(ex) and ran_by_both(kept)
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


@pytest.mark.slow
@pytest.mark.parametrize("order", ORDERS)
def test_tuned_in_any_order(order: str, expected: np.ndarray, tmp_path: Path) -> None:
    told = {"prefer": PREFER, "machine": "default"}
    options = {"tune_seconds": 20.0, **told}
    ex = tvm_mxplan.tune(for_both(), tmp_path / "records", order, options=options)
    assert ran_by_both(ex) and ex.report.tuning.measured["operators"] > 3
    np.testing.assert_allclose(ex(X)[0].numpy(), expected, atol=1e-5)
    again = tvm_mxplan.compile(
        for_both(), order, options={**told, "tuning_records": str(tmp_path / "records")}
    )
    assert ran_by_both(again) and not again.report.tuning.measured
    np.testing.assert_array_equal(again(X)[0].numpy(), ex(X)[0].numpy())
