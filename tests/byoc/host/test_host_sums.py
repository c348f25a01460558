"""Sums up to each place: kernels, regions, models beside onnxruntime, from either end."""

from __future__ import annotations

import itertools

import numpy as np
import onnx
import onnxruntime
import pytest
import tvm
from host_steps import ran
from onnx import TensorProto, helper
from tvm import relax

import tvm_mxplan
from tvm_mxplan import opcheck
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.opcheck.compare import differ
from tvm_mxplan.opcheck.references.operands import Operands
from tvm_mxplan.opcheck.references.reduction import cumulative_sum
from tvm_mxplan.report.inspection import decoded_programs

RNG = np.random.default_rng(12)
WAYS = list(itertools.product((False, True), repeat=2))
SHAPES = [
    ((1,), 0),
    ((7,), 0),
    ((64,), 0),
    ((10007,), 0),
    ((3, 17), 1),
    ((3, 17), 0),
    ((513, 70), 1),
    ((2, 5, 301), 1),
    ((2, 133, 3), 1),
    ((300, 1), 1),
    ((0, 5), 1),
    ((3, 0, 4), 1),
]


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int64"])
@pytest.mark.parametrize(("shape", "axis"), SHAPES)
def test_sums_of_small_integers_are_exact(shape: tuple[int, ...], axis: int, dtype: str) -> None:
    x = RNG.integers(-9, 9, shape).astype(dtype)
    for exclusive, reverse in WAYS:
        attrs = ir.CumulativeSum(axis, exclusive, reverse)
        found = ran(attrs, [("src", x)], shape, dtype)
        turned = np.flip(x, axis) if reverse else x
        expected = np.cumsum(turned, axis, dtype=dtype) - (turned if exclusive else 0)
        assert np.array_equal(found, np.flip(expected, axis) if reverse else expected)
        assert np.array_equal(found, cumulative_sum(attrs, Operands({"src": [x]}, shape)).value)


@pytest.mark.parametrize(("shape", "axis"), [((3, 10007), 1), ((5, 1001, 70), 1)])
def test_sums_of_real_numbers_err_as_stated(shape: tuple[int, ...], axis: int) -> None:
    x = RNG.standard_normal(shape).astype("float32")
    for exclusive, reverse in WAYS:
        attrs = ir.CumulativeSum(axis, exclusive, reverse)
        finding, _ = differ(
            "dst", ran(attrs, [("src", x)], shape), cumulative_sum(attrs, Operands({"src": [x]}, shape))
        )
        assert finding is None


def test_integers_wrap_around() -> None:
    x = np.full((2, 40), 2**31 - 5, "int32")
    with np.errstate(over="ignore"):
        expected = np.cumsum(x, 1, dtype="int32")
    assert np.array_equal(ran(ir.CumulativeSum(1, False, False), [("src", x)], x.shape, "int32"), expected)


@pytest.mark.parametrize("count", [5, 40])
def test_what_is_no_number_spreads_one_way_only(count: int) -> None:
    x = np.ones((2, count), "float32")
    x[0, 3], x[1, 2] = np.nan, np.inf
    forward = ran(ir.CumulativeSum(1, False, False), [("src", x)], x.shape)
    assert np.array_equal(forward, np.cumsum(x, 1), equal_nan=True)
    backward = ran(ir.CumulativeSum(1, False, True), [("src", x)], x.shape)
    assert np.array_equal(backward, np.flip(np.cumsum(np.flip(x, 1), 1), 1), equal_nan=True)


# --- models ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize(("exclusive", "reverse"), WAYS)
def test_models_with_sums_are_one_region(axis: int, exclusive: bool, reverse: bool) -> None:
    nodes = [
        helper.make_node("Relu", ["x"], ["h"]),
        helper.make_node("CumSum", ["h", "axis"], ["s"], exclusive=int(exclusive), reverse=int(reverse)),
        helper.make_node("Tanh", ["s"], ["y"]),
    ]
    shape = (6, 41, 53)
    graph = helper.make_graph(
        nodes,
        "sums",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [onnx.numpy_helper.from_array(np.array(axis), "axis")],
    )
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    ex = tvm_mxplan.compile(made, options={"cache": "disabled", "verify": "all"})
    (program,) = decoded_programs(ex.module)
    expected = ir.CumulativeSum(axis % 3, exclusive, reverse)
    assert expected in [step.attrs for step in program.steps] and not ex.report.kept
    x = (RNG.standard_normal(shape) / 9).astype("float32")
    (found,) = ex(x)
    session = onnxruntime.InferenceSession(made.SerializeToString(), providers=["CPUExecutionProvider"])
    np.testing.assert_allclose(found.numpy(), session.run(None, {"x": x})[0], rtol=1e-5, atol=1e-6)
    opcheck.check(ex, x).raise_first()


def test_counts_of_flags_and_sums_over_everything() -> None:
    """Elements that are summed in another type are cast; without an axis all elements are one row."""
    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorType((4, 33), "bool"))
    with builder.function("main", [x]):
        with builder.dataflow():
            counted = builder.emit(relax.op.cumsum(x, None, "int64"))
            result = builder.emit_output(relax.op.flip(counted, 0))
        builder.emit_func_output(result)
    ex = tvm_mxplan.compile(builder.get(), "host, llvm", options={"cache": "disabled", "verify": "all"})
    kinds = [type(step.attrs) for program in decoded_programs(ex.module) for step in program.steps]
    assert {ir.Cast, ir.CumulativeSum, ir.StridedSlice} <= set(kinds)
    flags = RNG.random((4, 33)) > 0.4
    (found,) = ex(flags)
    assert found.numpy().dtype == np.int64 and np.array_equal(found.numpy(), np.cumsum(flags)[::-1])


def test_sums_of_narrow_integers_stay_with_tvm() -> None:
    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorType((4, 33), "int8"))
    with builder.function("main", [x]):
        with builder.dataflow():
            result = builder.emit_output(relax.op.cumsum(x, 1))
        builder.emit_func_output(result)
    ex = tvm_mxplan.compile(builder.get(), tvm.target.Target("llvm"), options={"cache": "disabled"})
    assert not decoded_programs(ex.module)
