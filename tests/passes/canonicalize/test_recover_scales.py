"""``RecoverScales``: scales join the conversions in front of a product; what is only like one stays."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import tvm
from tvm import relax

from tvm_mxplan.operators.quantized import DEQUANTIZE, dynamic_dequantize, dynamic_quantize
from tvm_mxplan.passes.canonicalize import RecoverScales
from tvm_mxplan.passes.relax_types import constant_of

op = relax.op
DEPTH, WIDTH = 5, 3
WEIGHTS = np.arange(DEPTH * WIDTH, dtype="int8").reshape(DEPTH, WIDTH)
ROW = np.array([0.5, 0.25, 2.0], "float32")


class Parts:
    """A function being written: integers of a tensor, their numbers, and a product of them."""

    def __init__(self) -> None:
        self.builder = relax.BlockBuilder()
        self.x = relax.Var("x", relax.TensorType([7, DEPTH], "float32"))

    def emit(self, expr: relax.Expr) -> relax.Expr:
        return self.builder.emit(expr)

    def begin(self) -> None:
        every = self.emit(dynamic_quantize(self.x))
        self.q, self.s, self.z = (self.emit(relax.TupleGetItem(every, at)) for at in range(3))

    def product(self, scale: relax.Expr | None = None) -> relax.Expr:
        one = relax.const(np.ones(1, "float32"))
        data = self.emit(dynamic_dequantize(self.q, one if scale is None else scale, self.z))
        numbers = relax.const(1.0, "float32"), relax.const(0, "int8")
        weights = self.emit(op.dequantize(relax.const(WEIGHTS), *numbers, axis=1, out_dtype="float32"))
        return self.emit(op.matmul(data, weights))

    def scalar(self) -> relax.Expr:
        return self.emit(op.reshape(self.s, []))


def rewritten(write: Callable[[Parts], relax.Expr]) -> tuple[tvm.IRModule, tvm.IRModule]:
    p = Parts()
    with p.builder.function("main", [p.x]):
        with p.builder.dataflow():
            p.begin()
            result = p.builder.emit_output(write(p))
        p.builder.emit_func_output(result)
    before = p.builder.get()
    return before, RecoverScales()(before)


def calls(mod: tvm.IRModule) -> list[relax.Call]:
    return [
        value for value in relax.analysis.get_var2val(mod["main"]).values() if isinstance(value, relax.Call)
    ]


def names(mod: tvm.IRModule) -> list[str]:
    return sorted(str(call.op.name).removeprefix("relax.") for call in calls(mod))


def number(value: object) -> relax.Expr:
    return relax.const(np.asarray(value, "float32"))


@pytest.mark.parametrize("factor", [0.5, ROW, ROW.reshape(1, -1)])
@pytest.mark.parametrize("turned", [False, True])
def test_both_scales_join_the_conversions(factor, turned) -> None:
    def write(p: Parts) -> relax.Expr:
        product, pair = p.product(), [p.scalar(), number(factor)]
        scales = p.emit(op.multiply(*(reversed(pair) if turned else pair)))
        return op.multiply(*([scales, product] if turned else [product, scales]))

    _, after = rewritten(write)
    assert names(after) == ["dequantize", "matmul", "mxplan.dynamic_dequantize", "mxplan.dynamic_quantize"]
    (data,) = [call for call in calls(after) if DEQUANTIZE.is_called(call)]
    assert isinstance(data.args[1], relax.Var)
    (weights,) = [call for call in calls(after) if call.op.name == "relax.dequantize"]
    assert np.array_equal(constant_of(weights.args[1]).reshape(-1), np.asarray(factor, "float32").reshape(-1))


def test_scales_one_behind_the_other_join_too() -> None:
    _, after = rewritten(lambda p: op.multiply(p.emit(op.multiply(p.product(), p.scalar())), number(0.5)))
    assert "multiply" not in names(after)


def test_a_product_of_scales_is_read_through_its_views() -> None:
    def write(p: Parts) -> relax.Expr:
        both = p.emit(op.multiply(p.scalar(), number(0.5)))
        return op.multiply(p.product(), p.emit(op.reshape(both, [1])))

    _, after = rewritten(write)
    assert names(after) == ["dequantize", "matmul", "mxplan.dynamic_dequantize", "mxplan.dynamic_quantize"]


def test_a_zero_point_is_read_through_its_casts() -> None:
    def write(p: Parts) -> relax.Expr:
        short = p.emit(op.astype(p.emit(op.reshape(p.z, [])), "uint8"))
        p.z = p.emit(op.reshape(p.emit(op.astype(short, "int32")), [1]))
        return p.product(p.s)

    _, after = rewritten(write)
    assert names(after) == ["dequantize", "matmul", "mxplan.dynamic_dequantize", "mxplan.dynamic_quantize"]


def test_a_scale_is_read_through_its_views() -> None:
    """The conversion reads the number itself, not a view of a view of it."""

    def write(p: Parts) -> relax.Expr:
        flat = p.emit(op.reshape(p.s, []))
        return p.product(p.emit(op.expand_dims(flat, 0)))

    _, after = rewritten(write)
    assert names(after) == ["dequantize", "matmul", "mxplan.dynamic_dequantize", "mxplan.dynamic_quantize"]
    (data,) = [call for call in calls(after) if DEQUANTIZE.is_called(call)]
    values = relax.analysis.get_var2val(after["main"])
    assert isinstance(values[data.args[1]], relax.TupleGetItem) and values[data.args[1]].index == 1


def own_number(p: Parts) -> relax.Expr:
    """The tensor's scale is one number that varies already, by no constant."""
    given = p.emit(op.multiply(p.s, number([2.0])))
    return op.multiply(p.product(given), p.scalar())


def scaled_by_two(p: Parts) -> relax.Expr:
    return op.multiply(p.product(number([2.0])), p.scalar())


def more_axes(p: Parts) -> relax.Expr:
    """The result has an axis that the product has not."""
    return op.multiply(p.product(), number(np.full((1, 1, 1), 0.5)))


def columns(p: Parts) -> relax.Expr:
    """A factor for each row of the result, which no conversion has."""
    return op.multiply(p.product(), number(np.arange(7).reshape(7, 1)))


def twice(p: Parts) -> relax.Expr:
    return op.multiply(p.product(), p.emit(op.multiply(p.scalar(), p.scalar())))


def read_twice(p: Parts) -> relax.Expr:
    product = p.product()
    return op.add(product, p.emit(op.multiply(product, p.scalar())))


def scaled_already(p: Parts) -> relax.Expr:
    return op.multiply(p.product(p.s), p.scalar())


def real(p: Parts) -> relax.Expr:
    return op.multiply(p.emit(op.matmul(p.x, number(np.ones((DEPTH, WIDTH))))), p.scalar())


def negative(p: Parts) -> relax.Expr:
    """Libraries have scales above 0 alone."""
    return op.multiply(p.product(), p.emit(op.multiply(p.scalar(), number(-ROW))))


def nothing(p: Parts) -> relax.Expr:
    return op.multiply(p.product(), number(0.0))


@pytest.mark.parametrize(
    "write",
    [
        *(columns, twice, read_twice, scaled_already, real, own_number, scaled_by_two, more_axes),
        *(negative, nothing),
    ],
)
def test_what_no_conversion_takes_stays(write) -> None:
    before, after = rewritten(write)
    assert names(after).count("multiply") == names(before).count("multiply")


@pytest.mark.parametrize("axes", [1, 2, 3])
def test_convolutions_of_any_number_of_axes_take_scales(axes: int) -> None:
    """Scales of outputs stand along the first axis of filters, the second one of images."""
    image = relax.Var("x", relax.TensorType([2, 4, *(6,) * axes], "float32"))
    builder = relax.BlockBuilder()
    with builder.function("main", [image]):
        with builder.dataflow():
            every = builder.emit(dynamic_quantize(image))
            q, s, z = (builder.emit(relax.TupleGetItem(every, at)) for at in range(3))
            data = builder.emit(dynamic_dequantize(q, relax.const(np.ones(1, "float32")), z))
            integers = relax.const(np.ones((WIDTH, 4, *(1,) * axes), "int8"))
            numbers = relax.const(np.ones(WIDTH, "float32")), relax.const(np.zeros(WIDTH, "int8"))
            weights = builder.emit(op.dequantize(integers, *numbers, axis=0, out_dtype="float32"))
            product = builder.emit(getattr(op.nn, f"conv{axes}d")(data, weights))
            row = number(ROW.reshape(1, -1, *(1,) * axes))
            flat = builder.emit(op.multiply(builder.emit(op.reshape(s, [])), row))
            result = builder.emit_output(op.multiply(product, flat))
        builder.emit_func_output(result)
    after = RecoverScales()(builder.get())
    assert "multiply" not in names(after)
    (weights,) = [call for call in calls(after) if call.op.name == "relax.dequantize"]
    assert np.array_equal(constant_of(weights.args[1]), ROW) and int(weights.attrs.axis) == 0


def test_scales_that_stand_along_inputs_take_one_number_alone() -> None:
    """A factor for each output has no place beside scales of the weights' rows."""

    def product(p: Parts, factor: object) -> relax.Expr:
        data = p.emit(dynamic_dequantize(p.q, number([1]), p.z))
        rows = relax.const(np.arange(1, DEPTH + 1, dtype="float32")), relax.const(np.zeros(DEPTH, "int8"))
        weights = p.emit(op.dequantize(relax.const(WEIGHTS), *rows, axis=0, out_dtype="float32"))
        return op.multiply(p.emit(op.matmul(data, weights)), number(factor))

    _, after = rewritten(lambda p: product(p, 0.5))
    (weights,) = [call for call in calls(after) if call.op.name == "relax.dequantize"]
    assert np.array_equal(constant_of(weights.args[1]), np.arange(1, DEPTH + 1) / 2)
    assert int(weights.attrs.axis) == 0 and "multiply" not in names(after)
    _, after = rewritten(lambda p: product(p, ROW))
    assert "multiply" in names(after)


@pytest.mark.parametrize("axis", [0, 1])
def test_zero_points_are_repeated_for_scales_of_outputs(axis: int) -> None:
    """Wherever one scale for all was said to stand."""

    def write(p: Parts) -> relax.Expr:
        data = p.emit(dynamic_dequantize(p.q, number([1]), p.z))
        one = relax.const(2.0, "float32"), relax.const(3, "int8")
        weights = p.emit(op.dequantize(relax.const(WEIGHTS), *one, axis=axis, out_dtype="float32"))
        return op.multiply(p.emit(op.matmul(data, weights)), number(ROW))

    _, after = rewritten(write)
    (weights,) = [call for call in calls(after) if call.op.name == "relax.dequantize"]
    assert np.array_equal(constant_of(weights.args[1]), 2 * ROW)
    assert np.array_equal(constant_of(weights.args[2]), [3, 3, 3])
    assert int(weights.attrs.axis) == 1
