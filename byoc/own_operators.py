"""Operators of our own (``tvm_mxplan/operators``) for libraries: patterns, and what they translate alike."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from tvm.relax.dpl import DFPattern, is_op, wildcard

from tvm_mxplan.core.element_types import numpy_type
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.operators.registration import Operator
from tvm_mxplan.passes.relax_types import dtype_of

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
