"""Operators of our own (``tvm_mxplan/operators``) for libraries: patterns, and what they translate alike."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from tvm.relax.dpl import DFPattern, is_op, wildcard

from tvm_mxplan.core.element_types import numpy_type
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.core.program.dims import static_shape
from tvm_mxplan.operators.registration import Operator
from tvm_mxplan.passes.relax_types import dtype_of, shape_of

from .composite import Composite


def own_operator(operator: Operator, arity: int) -> Callable[[], tuple[DFPattern, dict[str, DFPattern]]]:
    """A call of an operator, which is registered when the pattern is made."""

    def pattern() -> tuple[DFPattern, dict[str, DFPattern]]:
        operator.register()
        return is_op(operator.full_name)(*[wildcard() for _ in range(arity)]), {}

    return pattern


def gate(c: Composite) -> int:
    """The comparison, which gives 1 or 0, and behind it the product with the gradient, in one step."""
    data, gradient = (c.value(arg) for arg in c.root.args)
    dtype = dtype_of(c.result)
    bound = c.builder.constant(np.full((1,) * len(c.shape), float(c.root.attrs["bound"]), numpy_type(dtype)))
    attrs = ir.Binary(str(c.root.attrs["algorithm"]))
    operands = [("src", data), ("src1", bound)]
    return c.builder.step("gate", attrs, c.shape, operands, dtype, (ir.BinaryPostOp("mul", gradient),))


def running_statistics(c: Composite, mean: int, variance: int) -> tuple[int, int]:
    """Running mean and variance behind a batch norm in training, from those before and the batch's."""
    momentum, correction = float(c.root.attrs["momentum"]), 1.0
    old_mean, old_variance = (c.value(arg) for arg in c.root.args[3:])
    if bool(c.root.attrs["unbiased"]):
        samples, _, *image = static_shape(shape_of(c.root.args[0]))  # type: ignore[arg-type]
        terms = samples * math.prod(image)
        correction = terms / max(1, terms - 1)

    def scaled(value: int, factor: float) -> int:
        told = c.builder.values[value]
        attrs = ir.Eltwise("linear", factor, 0.0)
        return c.builder.step("multiply", attrs, told.shape, [("src", value)], told.dtype)

    def running(old: int, new: int, share: float) -> int:
        told = c.builder.values[old]
        operands = [("src", scaled(old, 1 - momentum)), ("src1", scaled(new, share))]
        return c.builder.step("add", ir.Binary("add"), told.shape, operands, told.dtype)

    return running(old_mean, mean, momentum), running(old_variance, variance, momentum * correction)
