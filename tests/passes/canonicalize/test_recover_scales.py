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


def test_a_zero_point_is_read_through_its_casts() -> None:
    def write(p: Parts) -> relax.Expr:
        short = p.emit(op.astype(p.emit(op.reshape(p.z, [])), "uint8"))
        p.z = p.emit(op.reshape(p.emit(op.astype(short, "int32")), [1]))
        return p.product(p.s)

    _, after = rewritten(write)
    assert names(after) == ["dequantize", "matmul", "mxplan.dynamic_dequantize", "mxplan.dynamic_quantize"]


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


@pytest.mark.parametrize("write", [columns, twice, read_twice, scaled_already, real])
def test_what_no_conversion_takes_stays(write) -> None:
    before, after = rewritten(write)
    assert names(after).count("multiply") == names(before).count("multiply")
