"""Shapes in composites that lost them: what TVM passes as a parameter is written where it is used.

Before   def fused_resize2d(x: (n, 3, h, w), size: R.Shape([h * 2, w * 2])) -> R.Tensor(ndim=4):
             return R.image.resize2d(x, size)
After    def fused_resize2d(x: (n, 3, h, w), size: R.Shape([h * 2, w * 2])) -> (n, 3, h * 2, w * 2):
             return R.image.resize2d(x, R.shape([h * 2, w * 2]))

TVM's ``FuseOpsByPattern`` lifts a shape with symbols out of the operator, and some operators tell the shape
of their result only from one that is written out.  Callers get the types that follow.
"""

from __future__ import annotations

import tvm
from tvm import relax


def restore_shapes(mod: tvm.IRModule) -> tvm.IRModule:
    """The module with shapes written out in its composites, where a result's shape is not known."""
    lost = [gvar for gvar, function in mod.functions.items() if _lost_shape(function)]
    if not lost:
        return mod
    restorer = _Restorer(mod)
    for gvar in sorted(lost, key=lambda gvar: gvar.name_hint):
        restorer.restore(gvar, mod[gvar])
    for gvar, function in mod.functions.items():
        if isinstance(function, relax.Function) and gvar not in restorer.new:
            restorer.rewrite(gvar, function)
    restored = restorer.module()
    for gvar in lost:
        if restorer.new[gvar] != gvar:  # what nothing could be written into is the same function still
            del restored[gvar]
    return restored


def _lost_shape(function: tvm.ir.BaseFunc) -> bool:
    if not isinstance(function, relax.Function) or not (function.attrs and function.attrs.get("Composite")):
        return False
    return not _is_known(function.ret_ty) and bool(_shapes(function))


def _is_known(type_: tvm.ir.Type) -> bool:
    """True for tensors with a shape, and tuples of them."""
    if isinstance(type_, tvm.ir.TupleType):
        return all(_is_known(field) for field in type_.fields)
    return isinstance(type_, relax.TensorType) and type_.shape is not None


def _shapes(function: relax.Function) -> dict[tvm.ir.Var, relax.ShapeExpr]:
    """Parameters that are shapes, and what they are."""
    return {
        param: relax.ShapeExpr(param.ty.values)
        for param in function.params
        if isinstance(param.ty, relax.ShapeType) and param.ty.values is not None
    }


@relax.expr_functor.mutator
class _Restorer(relax.PyExprMutator):
    def __init__(self, mod: tvm.IRModule) -> None:
        super().__init__(mod)
        self.new: dict[tvm.ir.GlobalVar, tvm.ir.GlobalVar] = {}
        self.shapes: dict[tvm.ir.Var, relax.ShapeExpr] = {}

    def restore(self, gvar: tvm.ir.GlobalVar, function: relax.Function) -> None:
        self.shapes = _shapes(function)
        body = self.visit_expr(function.body)
        known = relax.Function(
            function.params, body, body.ty, function.is_pure, function.attrs, function.span
        )
        self.shapes = {}
        self.new[gvar] = self.builder_.add_func(known, gvar.name_hint)

    def rewrite(self, gvar: tvm.ir.GlobalVar, function: relax.Function) -> None:
        self.builder_.update_func(gvar, self.visit_expr(function))

    def module(self) -> tvm.IRModule:
        return self.builder_.get()

    def visit_var_(self, var: tvm.ir.Var) -> relax.Expr:
        return self.shapes[var] if var in self.shapes else super().visit_var_(var)

    def visit_global_var_(self, gvar: tvm.ir.GlobalVar) -> tvm.ir.GlobalVar:
        return self.new.get(gvar, gvar)
