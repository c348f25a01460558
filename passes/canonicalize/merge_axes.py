"""``MergeAxes``: softmaxes and reductions of many axes as those of few, which libraries take.

Before   y = R.nn.softmax(x, axis=2)                     x (2, 1, 9, 8, 8, 4, 5)
After    v = R.reshape(x, (2, 9, 1280))
         y = R.reshape(R.nn.softmax(v, axis=1), (2, 1, 9, 8, 8, 4, 5))

Axes that stand side by side and are all reduced, or all kept, become one: the elements stay where they are.
Tensors of up to six axes are left alone.
"""

from __future__ import annotations

from itertools import groupby

import tvm
from tvm import relax, tirx

from .rewriter import Site, is_call_to, rewrite_bindings

_MOST_AXES = 6
_SOFTMAXES = ("nn.softmax", "nn.log_softmax")
_REDUCTIONS = ("sum", "mean", "max", "min", "prod")


def _rule(site: Site, value: relax.Expr) -> relax.Expr | None:
    if not is_call_to(value, *_SOFTMAXES, *_REDUCTIONS) or value.attrs.axis is None:
        return None
    source = value.args[0]
    if not isinstance(source.ty.shape, relax.ShapeExpr) or len(source.ty.shape.values) <= _MOST_AXES:
        return None
    rank = len(source.ty.shape.values)
    softmax = is_call_to(value, *_SOFTMAXES)
    stated = [value.attrs.axis] if softmax else value.attrs.axis
    axes = {int(axis) % rank for axis in stated}
    shape, merged = _merged(list(source.ty.shape.values), axes)
    if len(shape) == rank:
        return None
    few = site.emit(relax.op.reshape(source, shape))
    if softmax:
        found = getattr(relax.op.nn, value.op.name.rpartition(".")[2])(few, merged[0])
    else:
        found = getattr(relax.op, value.op.name.rpartition(".")[2])(few, merged, keepdims=False)
    return relax.op.reshape(site.emit(found), value.ty.shape)


def _merged(dims: list[tirx.Expr], axes: set[int]) -> tuple[list[tirx.Expr], list[int]]:
    """The extents of groups of axes that are all among ``axes`` or all not, and the places of the former.

    Axes of one element belong to whichever group they stand in.
    """
    telling = [at for at, dim in enumerate(dims) if at in axes or not _is_one(dim)]
    shape: list[tirx.Expr] = []
    places: list[int] = []
    for reduced, group in groupby(telling, key=lambda at: at in axes):
        if reduced:
            places.append(len(shape))
        extent = tirx.const(1, "int64")
        for at in group:
            extent = extent * dims[at]
        shape.append(extent)
    return shape, places


def _is_one(dim: tirx.Expr) -> bool:
    return isinstance(dim, tirx.IntImm) and int(dim.value) == 1


@tvm.transform.module_pass(opt_level=0, name="MergeAxes")
class MergeAxes:
    """Module pass; see the module's text."""

    def transform_module(self, mod: tvm.IRModule, _ctx: tvm.transform.PassContext) -> tvm.IRModule:
        return rewrite_bindings(mod, _rule)
