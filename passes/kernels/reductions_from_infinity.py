"""``ReductionsFromInfinity``: kernels of largest and smallest elements start at infinity.

Before   y = R.max(x, axis=[1])             TVM's kernel starts at the least number: -3.4e38 for a row of -inf
After    y = R.call_tir(largest, (x,))      starts at -inf, so a row of -inf, as masks have them, gives -inf

Of the types that have infinities; others keep TVM's kernels, and so does a reduction over no elements.
"""

from __future__ import annotations

import math

import tvm
from tvm import relax, te, tirx

from ..relax_types import is_arithmetic

_TYPES = ("float16", "bfloat16", "float32", "float64")


@tvm.transform.module_pass(opt_level=0, name="ReductionsFromInfinity")
class ReductionsFromInfinity:
    """Module pass; see the module's text."""

    def transform_module(self, mod: tvm.IRModule, _ctx: tvm.transform.PassContext) -> tvm.IRModule:
        rewriter = _Rewriter(mod)
        for gvar, function in mod.functions.items():
            if isinstance(function, relax.Function):
                rewriter.builder_.update_func(gvar, rewriter.visit_expr(function))
        return rewriter.builder_.get()


@relax.expr_functor.mutator
class _Rewriter(relax.PyExprMutator):
    def visit_call_(self, call: relax.Call) -> relax.Expr:
        if is_arithmetic(call):
            return call
        call = self.visit_expr_post_order(call)
        name = str(call.op.name) if isinstance(call.op, tvm.ir.Op) else ""
        if name not in ("relax.max", "relax.min") or not _is_taken(call):
            return call
        axes = None if call.attrs.axis is None else [int(axis) for axis in call.attrs.axis]
        largest = name == "relax.max"
        return self.builder_.call_te(
            _reduced,
            call.args[0],
            axes,
            bool(call.attrs.keepdims),
            largest,
            primfunc_name_hint="largest" if largest else "smallest",
        )


def _is_taken(call: relax.Call) -> bool:
    kind = call.args[0].ty
    if not isinstance(kind.shape, relax.ShapeExpr) or str(kind.dtype) not in _TYPES:
        return False
    return not any(isinstance(dim, tirx.IntImm) and int(dim) == 0 for dim in kind.shape.values)


def _reduced(data: te.Tensor, axes: list[int] | None, keep: bool, largest: bool) -> te.Tensor:
    rank = len(data.shape)
    reduced = range(rank) if axes is None else sorted({axis % rank for axis in axes})
    loops = {axis: te.reduce_axis((0, data.shape[axis]), f"r{axis}") for axis in reduced}
    kept = [axis for axis in range(rank) if axis not in loops]
    start = tirx.const(-math.inf if largest else math.inf, data.dtype)
    reducer = te.comm_reducer(
        lambda a, b: tirx.max(a, b) if largest else tirx.min(a, b), lambda _: start, name="reduced"
    )

    def element(*index: tirx.Var) -> tirx.Expr:
        outer = dict(enumerate(index) if keep else zip(kept, index, strict=True))
        place = [loops[axis].var if axis in loops else outer[axis] for axis in range(rank)]
        return reducer(data(*place), axis=list(loops.values()))

    shape = [1 if axis in loops else data.shape[axis] for axis in (range(rank) if keep else kept)]
    return te.compute(shape, element, "reduced")
