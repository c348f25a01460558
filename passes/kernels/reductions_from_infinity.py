"""``ReductionsFromInfinity``: kernels of largest and smallest elements start at infinity.

Before   y = R.max(x, axis=[1])             TVM's kernel starts at the least number: -3.4e38 for a row of -inf
After    y = R.call_tir(largest, (x,))      starts at -inf, so a row of -inf, as masks have them, gives -inf

Of the types that have infinities; others keep TVM's kernels, and so does a reduction over no elements.
"""

from __future__ import annotations

import math

import tvm
from tvm import relax, te, tirx

from ..canonicalize.rewriter import is_call_to
from .replace_calls import REAL_TYPES, is_tensor_of, replace_calls


@tvm.transform.module_pass(opt_level=0, name="ReductionsFromInfinity")
class ReductionsFromInfinity:
    """Module pass; see the module's text."""

    def transform_module(self, mod: tvm.IRModule, _ctx: tvm.transform.PassContext) -> tvm.IRModule:
        return replace_calls(mod, _from_infinity)


def _from_infinity(builder: relax.BlockBuilder, call: relax.Call) -> relax.Expr | None:
    if not is_call_to(call, "max", "min") or not _is_taken(call):
        return None
    axes = None if call.attrs.axis is None else [int(axis) for axis in call.attrs.axis]
    largest = is_call_to(call, "max")
    return builder.call_te(
        _reduced,
        call.args[0],
        axes,
        bool(call.attrs.keepdims),
        largest,
        primfunc_name_hint="largest" if largest else "smallest",
    )


def _is_taken(call: relax.Call) -> bool:
    if not is_tensor_of(REAL_TYPES, call.args[0]):
        return False
    return not any(isinstance(dim, tirx.IntImm) and int(dim) == 0 for dim in call.args[0].ty.shape.values)


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
