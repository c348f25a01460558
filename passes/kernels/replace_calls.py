"""Replaces calls of operators in the Relax functions of a module by calls of kernels."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import tvm
from tvm import relax

from ..relax_types import is_arithmetic

Replacement = Callable[[relax.BlockBuilder, relax.Call], relax.Expr | None]
"""The expression in the place of a call whose operands are replaced already; None leaves the call."""


REAL_TYPES = ("float16", "bfloat16", "float32", "float64")


def is_tensor_of(types: Sequence[str], source: relax.Expr) -> bool:
    """Whether a kernel can be made for a tensor: its type is one of these, its shape is stated."""
    return isinstance(source.ty.shape, relax.ShapeExpr) and str(source.ty.dtype) in types


def replace_calls(mod: tvm.IRModule, replacement: Replacement) -> tvm.IRModule:
    """The module with every call of its Relax functions replaced that ``replacement`` has something for."""
    mutator = _Mutator(mod, replacement)
    for gvar, function in mod.functions.items():
        if isinstance(function, relax.Function):
            mutator.builder_.update_func(gvar, mutator.visit_expr(function))
    return mutator.builder_.get()


@relax.expr_functor.mutator
class _Mutator(relax.PyExprMutator):
    def __init__(self, mod: tvm.IRModule, replacement: Replacement) -> None:
        super().__init__(mod)
        self.replacement = replacement

    def visit_call_(self, call: relax.Call) -> relax.Expr:
        if is_arithmetic(call):
            return call
        call = self.visit_expr_post_order(call)
        found = self.replacement(self.builder_, call)
        return call if found is None else found
