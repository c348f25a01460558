"""``SplitLongSums``: long sums over other axes than the last ones in stages, against rounding errors.

Before   y = R.mean(x, axis=[0, 2, 3])                  x: [64, 17, 56, 56]
After    a = R.mean(x, axis=[2, 3], keepdims=True);  y = R.mean(a, axis=[0]) reshaped

Before   y = R.sum(x)                                   x: [1000, 1000]
After    a = R.sum(R.reshape(x, (1, 1000000)), axis=[1], keepdims=True);  y = R.reshape(a, ())

Libraries take sums over the last axes, long ones in stages of their own (``core.long_sums``); TVM's kernels
add one number after the other.  An axis that is too long by itself becomes two where it has divisors.
"""

from __future__ import annotations

import math

import tvm
from tvm import relax

from tvm_mxplan.core.long_sums import fits, stages, terms_at_once
from tvm_mxplan.core.program.dims import is_static

from ..relax_types import dtype_of, shape_of
from .rewriter import Site, is_call_to, rewrite_bindings


def _rule(site: Site, value: relax.Expr) -> relax.Expr | None:
    if not is_call_to(value, "sum", "mean") or not dtype_of(value).startswith("float"):
        return None
    shape, result = shape_of(value.args[0]), shape_of(value)
    if shape is None or result is None or not is_static(shape):
        return None
    rank = len(shape)
    named = value.attrs.axis
    axes = list(range(rank)) if named is None else sorted({int(axis) % rank for axis in named})
    taken = named is not None and result and axes == list(range(rank - len(axes), rank))
    if taken or math.prod(shape[axis] for axis in axes) <= terms_at_once():  # type: ignore[misc]
        return None
    reduce = {"sum": relax.op.sum, "mean": relax.op.mean}[value.op.name.removeprefix("relax.")]
    x = value.args[0]
    if len(axes) == rank:
        x = site.emit(relax.op.reshape(x, (1, math.prod(shape))))  # type: ignore[arg-type]
        return relax.op.reshape(site.emit(reduce(x, [1], True)), result)
    behind = [axis for axis in axes if all(other in axes for other in range(axis, rank))]
    if behind:
        x = site.emit(reduce(x, behind, True))
    for axis in reversed([axis for axis in axes if axis not in behind]):
        for part in _parts(shape[axis]):  # type: ignore[arg-type]
            now = shape_of(x)
            split = (*now[:axis], now[axis] // part, part, *now[axis + 1 :])  # type: ignore[index,operator]
            x = site.emit(reduce(site.emit(relax.op.reshape(x, split)), [axis + 1], False))
    return relax.op.reshape(x, result)


def _parts(extent: int) -> list[int]:
    limit = terms_at_once()
    return stages(extent, limit) if fits(extent, limit) else [extent]


@tvm.transform.module_pass(opt_level=0, name="SplitLongSums")
class SplitLongSums:
    """Module pass; see the module's text."""

    def transform_module(self, mod: tvm.IRModule, _ctx: tvm.transform.PassContext) -> tvm.IRModule:
        return rewrite_bindings(mod, _rule)
