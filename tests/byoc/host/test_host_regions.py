"""The host library beside oneDNN: in any order of preference, exported, cached, verified, checked."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import tvm
from host_networks import between_convolutions
from host_steps import SPECIAL
from tvm import relax

import tvm_mxplan
from tvm_mxplan import InvalidInputError
from tvm_mxplan.execution.threads import with_threads
from tvm_mxplan.opcheck import checking

RNG = np.random.default_rng(2)
X = RNG.standard_normal((2, 3, 9, 7), np.float32)
ROWS = RNG.integers(-9, 9, (4, 3))


def network(batch: object = 2) -> tvm.IRModule:
    """Two convolutions with a comparison, a choice, a gather, a slice with steps and a cast between them."""
    rng = np.random.default_rng(0)
    weights = [relax.const(rng.standard_normal(s, np.float32) / 5) for s in ((17, 3, 3, 3), (5, 17, 1, 1))]
    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorType((batch, 3, 9, 7), "float32"))
    rows = relax.Var("rows", relax.TensorType((4, 3), "int64"))
    with builder.function("main", [x, rows]):
        with builder.dataflow():
            y = builder.emit(relax.op.nn.conv2d(x, weights[0], padding=1))
            below = builder.emit(relax.op.less(y, relax.const(0.25, "float32")))
            y = builder.emit(relax.op.where(below, relax.op.erf(y), y))
            y = builder.emit(relax.op.take(y, rows, axis=2))  # [batch, 17, 4, 3, 7]
            y = builder.emit(relax.op.reshape(y, (batch, 17, 12, 7)))
            y = builder.emit(relax.op.strided_slice(y, [2, 3], [11, 6], [-13, -8], [-2, -1]))
            y = builder.emit(relax.op.nn.conv2d(y, weights[1]))
            y = builder.emit_output(
                relax.op.astype(relax.op.greater(y, relax.const(0.0, "float32")), "int32")
            )
        builder.emit_func_output(y)
    return builder.get()


@pytest.fixture(scope="module")
def expected() -> np.ndarray:
    """By TVM alone."""
    return tvm_mxplan.compile(network(), "llvm")(X, ROWS)[0].numpy()


def kinds(ex: tvm_mxplan.Executable) -> list[str]:
    return [step.kind for region in ex.report.regions for step in region.steps]


OF_HOST = ("compare", "select", "gather", "strided_slice", "cast", "eltwise")


@pytest.mark.parametrize("target", ["dnnl, host, llvm", "host, dnnl, llvm"])
def test_both_run_in_one_function(target: str, expected: np.ndarray, tmp_path: Path) -> None:
    ex = tvm_mxplan.compile(network(), target, options={"verify": "all"})
    assert set(OF_HOST) <= set(kinds(ex)) and kinds(ex).count("convolution") == 2
    chosen = {one.operator: one.chosen.backend for one in ex.report.dispatch}
    assert {chosen[name] for name in ("less_0", "where_0", "erf_0", "take_0", "astype_0")} == {"host"}
    assert {chosen["conv2d_0"], chosen["conv2d_1"]} == {"onednn"}
    assert not ex.report.verification.refused and not ex.report.verification.unchecked
    assert [region.backend for region in ex.report.regions] == ["mxplan_onednn"]
    assert "nothing" in str(ex.report).partition("left to TVM:")[2]
    found = ex(X, ROWS)[0].numpy()
    assert (found == expected).mean() > 0.99  # at the threshold, a rounding decides
    ex.export(tmp_path / "two.so")
    np.savez(tmp_path / "in.npz", x=X, rows=ROWS)
    code = (
        "import sys, numpy as np, tvm_mxplan\n"
        "ex, given = tvm_mxplan.load(sys.argv[1]), np.load(sys.argv[2])\n"
        "np.save(sys.argv[3], ex(given['x'], given['rows'])[0].numpy())\n"
    )
    paths = [tmp_path / name for name in ("two.so", "in.npz", "y.npy")]
    subprocess.run([sys.executable, "-c", code, *map(str, paths)], check=True)
    np.testing.assert_array_equal(np.load(paths[-1]), found)


@pytest.mark.parametrize("count", [1, 2])
def test_every_step_gives_what_it_should(count: int) -> None:
    ex = tvm_mxplan.compile(network(), "dnnl, host, llvm")
    with with_threads(count), checking() as checker:
        ex(X, ROWS)
    checked = checker.result()
    assert not checked.differences and checked.steps == len(kinds(ex)), str(checked)


def test_an_index_out_of_bounds_names_the_operator() -> None:
    ex = tvm_mxplan.compile(network(), "dnnl, host, llvm")
    rows = ROWS.copy()
    rows[1, 1] = 9
    with pytest.raises(InvalidInputError, match=r"take_0: an index is out of bounds for axis 2 .* got 9"):
        ex(X, rows)
    assert ex(X, ROWS)[0].numpy().shape == (2, 5, 6, 7)


def chosen_below(shape: tuple[int, ...], function: Callable[..., relax.Expr] | None = None) -> tvm.IRModule:
    """Numbers below 0 replaced, and a function of what comes of it."""
    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorType(shape, "float32"))
    with builder.function("main", [x]):
        with builder.dataflow():
            below = builder.emit(relax.op.less(x, relax.const(0.0, "float32")))
            y = builder.emit(relax.op.where(below, relax.const(2.5, "float32"), x))
            y = builder.emit_output(function(y) if function else y)
        builder.emit_func_output(y)
    return builder.get()


def test_operators_of_one_library_are_its_own_region() -> None:
    options = {"machine": "default", "prefer": {"where": "host"}}
    ex = tvm_mxplan.compile(chosen_below((3, 17)), "dnnl, host, llvm", options=options)
    assert [region.backend for region in ex.report.regions] == ["mxplan_host"]
    given = RNG.standard_normal((3, 17), np.float32)
    np.testing.assert_array_equal(ex(given)[0].numpy(), np.where(given < 0, np.float32(2.5), given))


def test_a_region_that_takes_longer_than_its_work_is_left_to_tvm() -> None:
    ex = tvm_mxplan.compile(chosen_below((3, 17)), "dnnl, host, llvm", options={"machine": "default"})
    assert not ex.report.regions
    (reason,) = {one.reason for one in ex.report.fallbacks}
    assert re.fullmatch(
        r"TVM's kernels for less_0, where_0 are estimated at \d\.\d us, the library's at \d\.\d us", reason
    )
    (out,) = {
        one.out for decision in ex.report.dispatch for one in decision.candidates if one.backend == "host"
    }
    assert out == reason
    assert {one.reason for one in ex.report.kept} == {reason}, "oneDNN has none, which says less"
    assert "no implementation in the library" not in str(ex.report)
    ex = tvm_mxplan.compile(
        chosen_below((512, 2048), relax.op.erf), "dnnl, host, llvm", options={"machine": "default"}
    )
    assert [region.backend for region in ex.report.regions] == ["mxplan_host"]


MIDDLE = {
    "mean over pixels": lambda y: relax.op.mean(y, [2], keepdims=True),
    "truths": lambda y: relax.op.where(
        relax.op.logical_and(
            relax.op.less(y, relax.const(0.5, "float32")), relax.op.logical_not(relax.op.isnan(y))
        ),
        y,
        relax.const(1.0, "float32"),
    ),
    "finite": lambda y: relax.op.where(
        relax.op.logical_xor(relax.op.isfinite(y), relax.op.isinf(y)), y, relax.const(1.0, "float32")
    ),
    "broadcast": lambda y: relax.op.broadcast_to(
        relax.op.floor(relax.op.mean(y, [1, 3], keepdims=True)), (2, 17, 9, 7)
    ),
    "copies": lambda y: relax.op.strided_slice(
        relax.op.repeat(relax.op.tile(y, [2, 1]), 2, 2), [2, 3], [0, 0], [18, 14], [2, 2]
    ),
    "concat": lambda y: relax.op.astype(
        relax.op.concat([relax.op.less(y, relax.const(0.25, "float32"))] * 2, 2), "float32"
    ),
}


@pytest.mark.parametrize("name", MIDDLE)
def test_one_region_where_there_were_several(name: str) -> None:
    mod = between_convolutions(MIDDLE[name])
    options = {"machine": "default", "verify": "all", "cache": "disabled"}
    before = tvm_mxplan.compile(mod, "dnnl, llvm", options=options)
    ex = tvm_mxplan.compile(mod, "dnnl, host, llvm", options=options)
    assert len(before.report.regions) == 2 and len(ex.report.regions) == 1
    assert not ex.report.kept and not ex.report.verification.refused
    found, expected = ex(X)[0].numpy(), before(X)[0].numpy()
    assert (np.abs(found - expected) < 1e-5).mean() > 0.99  # at thresholds a rounding decides
    with checking() as checker:
        ex(X)
    checked = checker.result()
    assert not checked.differences and checked.steps == len(kinds(ex)), str(checked)


def test_reductions_of_rows_are_taken_over() -> None:
    mod = between_convolutions(lambda y: relax.op.add(relax.op.sum(relax.op.exp(y), [3], keepdims=True), y))
    options = {"machine": "default", "verify": "all", "cache": "disabled"}
    ex, alone = (tvm_mxplan.compile(mod, of, options=options) for of in ("dnnl, host, llvm", "dnnl, llvm"))
    steps = [
        [one for region in ex_.report.regions for one in region.steps if one.kind == "reduction"]
        for ex_ in (ex, alone)
    ]
    assert [one.implementation.split(":")[0] for own in steps for one in own] == ["host", "jit"]
    (told,) = (one for one in ex.report.dispatch if one.operator == "sum_0")
    assert told.chosen.backend == "host"
    assert [one.out for one in told.candidates if one.backend == "onednn"] == [
        "host runs its step, which takes less"
    ]
    np.testing.assert_allclose(ex(X)[0].numpy(), alone(X)[0].numpy(), rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("axis", [1, 3])
def test_reductions_of_any_batch(axis: int) -> None:
    """Also of none; those of rows are handed over by oneDNN, others it refuses."""
    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorType((tvm.tirx.Var("n", "int64"), 3, 9, 7), "float32"))
    with builder.function("main", [x]):
        with builder.dataflow():
            y = builder.emit(relax.op.nn.conv2d(x, relax.const(np.ones((5, 3, 1, 1), "float32"))))
            y = builder.emit_output(relax.op.multiply(relax.op.sum(y, [axis], keepdims=True), y))
        builder.emit_func_output(y)
    ex = tvm_mxplan.compile(builder.get())
    (reduction,) = (step for region in ex.report.regions for step in region.steps if step.kind == "reduction")
    assert reduction.implementation.startswith("host:")
    for count in (0, 1, 2):
        sums = X[:count].sum(1, keepdims=True).repeat(5, 1)
        found = ex(X[:count])[0].numpy()
        np.testing.assert_allclose(found, sums * sums.sum(axis, keepdims=True), rtol=1e-4, atol=1e-4)


def test_of_any_batch(expected: np.ndarray) -> None:
    ex = tvm_mxplan.compile(network(tvm.tirx.Var("n", "int64")), "dnnl, host, llvm")
    assert set(OF_HOST) <= set(kinds(ex))
    for count in (1, 2):
        found = ex(X[:count], ROWS)[0].numpy()
        assert (found == expected[:count]).mean() > 0.99


def test_finished_compilations_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TVM_MXPLAN_CACHE_DIR", str(tmp_path))
    results, outcomes = [], []
    for _ in range(2):
        ex = tvm_mxplan.compile(network(), "dnnl, host, llvm", options={"cache": "on_compile"})
        outcomes.append(ex.report.cache.outcome)
        results.append(ex(X, ROWS)[0].numpy())
    assert outcomes == ["miss", "hit"]
    assert np.array_equal(*results)


def test_a_wrong_kernel_goes_back_to_tvm(expected: np.ndarray, monkeypatch: pytest.MonkeyPatch) -> None:
    from tvm_mxplan.core.program import program as ir
    from tvm_mxplan.opcheck.references import REFERENCES, choice

    other = lambda attrs, operands: choice.Estimate(-choice.select(attrs, operands).value)  # noqa: E731
    monkeypatch.setitem(REFERENCES, ir.Select, other)
    options = {"verify": "all", "cache": "disabled"}
    ex = tvm_mxplan.compile(network(), "dnnl, host, llvm", options=options)
    assert ex.report.verification.refused and "select" not in kinds(ex)
    assert (ex(X, ROWS)[0].numpy() == expected).mean() > 0.99


@pytest.mark.parametrize("dtype", ["bool", "int64", "uint8"])
def test_a_mask_that_is_given_back_twice(dtype: str) -> None:
    """The second time by a copy, of a type that oneDNN need not have."""
    builder = relax.BlockBuilder()
    x, y = (relax.Var(name, relax.TensorType((256, 512), "float32")) for name in "xy")
    weight = relax.const(np.random.default_rng(1).standard_normal((512, 512), np.float32))
    with builder.function("main", [x, y]):
        with builder.dataflow():
            mask = builder.emit(relax.op.greater(x, y))
            given = mask if dtype == "bool" else builder.emit(relax.op.astype(mask, dtype))
            chosen = builder.emit(relax.op.where(mask, builder.emit(relax.op.matmul(x, weight)), y))
            again = builder.emit(relax.op.reshape(given, (4, 64, 512)))
            result = builder.emit_output(relax.Tuple([given, again, chosen]))
        builder.emit_func_output(result)
    ex = tvm_mxplan.compile(builder.get(), options={"cache": "disabled"})
    assert {"matmul", "compare", "select", "reorder"} <= {*kinds(ex)}
    a, b = np.random.default_rng(2).standard_normal((2, 256, 512), np.float32)
    first, second, third = (tensor.numpy() for tensor in ex(a, b))
    np.testing.assert_array_equal(first, (a > b).astype(dtype))
    np.testing.assert_array_equal(second, first.reshape(4, 64, 512))
    np.testing.assert_array_equal(third[a <= b], b[a <= b])


@pytest.mark.parametrize("name", ["isfinite", "isinf", "isnan"])
def test_what_is_no_number_and_what_has_no_end(name: str) -> None:
    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorType((2, 5), "float32"))
    with builder.function("main", [x]):
        with builder.dataflow():
            result = builder.emit_output(getattr(relax.op, name)(x))
        builder.emit_func_output(result)
    ex = tvm_mxplan.compile(builder.get(), "host, llvm")
    assert [region.backend for region in ex.report.regions] == ["mxplan_host"]
    given = SPECIAL.reshape(2, 5)
    np.testing.assert_array_equal(ex(given)[0].numpy(), getattr(np, name)(given))


@pytest.mark.parametrize("scalar_first", [True, False])
def test_a_scalar_beside_the_number_that_it_is(scalar_first: bool) -> None:
    """The mean of one number is a view of it, and no step of the host library reads or writes it."""
    rng = np.random.default_rng(3)
    row, column = (rng.standard_normal(shape, np.float32) for shape in ((1, 70), (70, 1)))
    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorType((1, 70), "float32"))
    with builder.function("main", [x]):
        with builder.dataflow():
            product = builder.emit(relax.op.matmul(x, relax.const(column)))
            results = [relax.op.mean(product, axis=[0, 1]), product]
            tuple_ = builder.emit_output(relax.Tuple(results if scalar_first else results[::-1]))
        builder.emit_func_output(tuple_)
    ex = tvm_mxplan.compile(builder.get(), "dnnl, host, llvm")
    assert "matmul" in kinds(ex) and not ex.report.kept
    found = [result.numpy() for result in ex(row)]
    assert sorted(one.shape for one in found) == [(), (1, 1)]
    for one in found:
        np.testing.assert_allclose(one.reshape(-1), (row @ column).reshape(-1), rtol=1e-5)
