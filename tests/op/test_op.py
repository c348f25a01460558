"""``to_blocked`` and ``to_plain``: idempotent, folding away, and right on TVM alone and at run time."""

from __future__ import annotations

import numpy as np
import pytest
import tvm
from tvm import relax

from tvm_mxplan import InvalidInputError, op
from tvm_mxplan.core.layout.layout_arrays import pack
from tvm_mxplan.core.layout.layout_names import layout_named
from tvm_mxplan.op import PhysicalTensor

LAYOUTS = ("nchw", "nhwc", "nChw8c", "nChw16c", "aBcd4b")


def image(channels: int = 17, dtype: str = "float32") -> relax.Var:
    return relax.Var("x", relax.TensorType((2, channels, 3, 5), dtype))


def run(x: relax.Var, expr: relax.Expr, array: np.ndarray) -> np.ndarray:
    """The expression on TVM alone."""
    builder = relax.BlockBuilder()
    with builder.function("main", [x]):
        builder.emit_func_output(builder.emit(expr))
    built = relax.build(builder.get(), tvm.target.Target("llvm"))
    return relax.VirtualMachine(built, tvm.cpu())["main"](tvm.runtime.tensor(array)).numpy()


def numbers(channels: int) -> np.ndarray:
    return np.random.default_rng(channels).standard_normal((2, channels, 3, 5), np.float32)


# --- Relax -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("channels", [1, 16, 17])
def test_relax_expressions_run_on_tvm_alone(layout: str, channels: int) -> None:
    x, array = image(channels), numbers(channels)
    packed = pack(array, layout_named(layout))
    np.testing.assert_array_equal(run(x, op.to_blocked(x, layout), array), packed)
    physical = relax.Var("x", relax.TensorType(packed.shape, "float32"))
    np.testing.assert_array_equal(run(physical, op.to_plain(physical, layout, array.shape), packed), array)


def test_blocks_of_two_dimensions() -> None:
    x = relax.Var("x", relax.TensorType((35, 17, 3, 3), "float32"))
    array = np.random.default_rng(0).standard_normal((35, 17, 3, 3), np.float32)
    expected = pack(array, layout_named("OIhw16i16o"))
    np.testing.assert_array_equal(run(x, op.to_blocked(x, "OIhw16i16o"), array), expected)


def test_expressions_remember_their_layout() -> None:
    x = image()
    blocked = op.to_blocked(x, "nChw16c")
    assert op.to_blocked(blocked, "nChw16c") is blocked
    assert op.to_plain(blocked).same_as(x)
    other = op.to_blocked(blocked, "nhwc")
    assert other.args[0].same_as(x)


def test_the_builder_at_work_remembers_what_it_bound() -> None:
    x = image()
    builder = relax.BlockBuilder()
    with builder.function("main", [x]):
        blocked = builder.emit(op.to_blocked(x, "nChw16c"))
        assert op.to_blocked(blocked, "nChw16c").same_as(blocked)
        again = builder.emit(op.to_plain(blocked))
        assert op.to_plain(blocked).same_as(x)
        builder.emit_func_output(again)
    with pytest.raises(InvalidInputError, match="not in sight; give layout and shape"):
        op.to_plain(blocked)


def test_integers_are_padded_too() -> None:
    x, array = image(3, "int32"), np.arange(90, dtype="int32").reshape(2, 3, 3, 5)
    np.testing.assert_array_equal(
        run(x, op.to_blocked(x, "nChw16c"), array), pack(array, layout_named("nChw16c"))
    )


def test_elementwise_work_between_them() -> None:
    x, array = image(), numbers(17)
    y = relax.op.nn.relu(op.to_blocked(x, "nChw16c"))
    builder = relax.BlockBuilder()
    with builder.function("main", [x]):
        y = builder.emit(y)
        builder.emit_func_output(builder.emit(op.to_plain(y, "nChw16c", array.shape)))
    built = relax.build(builder.get(), tvm.target.Target("llvm"))
    result = relax.VirtualMachine(built, tvm.cpu())["main"](tvm.runtime.tensor(array)).numpy()
    np.testing.assert_array_equal(result, np.maximum(array, 0))


# --- tensors at run time -----------------------------------------------------------------------------------


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("channels", [1, 16, 17, 130])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_arrays_there_and_back(layout: str, channels: int, dtype: str) -> None:
    array = numbers(channels).astype(dtype)
    blocked = op.to_blocked(array, layout)
    assert (blocked.layout, blocked.shape) == (layout, array.shape)
    np.testing.assert_array_equal(blocked.data, pack(array, layout_named(layout)))
    assert blocked.data.dtype == array.dtype
    assert op.to_blocked(blocked, layout) is blocked
    np.testing.assert_array_equal(op.to_plain(blocked), array)
    np.testing.assert_array_equal(op.to_plain(blocked.data, layout, array.shape), array)


def test_from_one_layout_into_another() -> None:
    array = numbers(17)
    there = op.to_blocked(op.to_blocked(array, "nChw16c"), "nhwc")
    np.testing.assert_array_equal(there.data, array.transpose(0, 2, 3, 1))


def test_tvm_tensors_stay_tvm_tensors() -> None:
    array = numbers(17)
    blocked = op.to_blocked(tvm.runtime.tensor(array), "nChw16c")
    assert isinstance(blocked, PhysicalTensor)
    assert isinstance(blocked.data, tvm.runtime.Tensor)
    plain = op.to_plain(blocked)
    assert isinstance(plain, tvm.runtime.Tensor)
    np.testing.assert_array_equal(plain.numpy(), array)


# --- errors ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("x", [image(), numbers(17)], ids=["relax", "numpy"])
def test_what_cannot_be_is_named(x: object) -> None:
    with pytest.raises(InvalidInputError, match="layout 'nChq16c': expected a name such as"):
        op.to_blocked(x, "nChq16c")
    with pytest.raises(InvalidInputError, match="layout ncdhw is of rank 5, the tensor of rank 4"):
        op.to_blocked(x, "ncdhw")
    with pytest.raises(InvalidInputError, match="give layout and shape"):
        op.to_plain(x)
    with pytest.raises(InvalidInputError, match=r"in nChw16c is \(2, 2, 3, 5, 16\) in memory, not"):
        op.to_plain(x, "nChw16c", (2, 17, 3, 5))
