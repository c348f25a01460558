"""``EmptyReductions``: kernels whose reduced axes may be of no elements write where these begin.

Before   for i, k in grid(n, m):                       for m = 0 nothing is written, and the result is
             with init: y[i] = 0                       whatever the memory held
             y[i] += x[i, k]
After    for i in range(n):
             y[i] = 0
             for k in range(m): y[i] += x[i, k]

Axes of a known number of elements, one or more, stay as they are, and so do kernels for other devices, whose
schedules do the same.
"""

from __future__ import annotations

import tvm
import tvm_ffi
from tvm import s_tir, tirx


@tvm.transform.module_pass(opt_level=0, name="EmptyReductions")
class EmptyReductions:
    """Module pass; see the module's text.  ``target`` is that of the kernels that it is for."""

    def __init__(self, target: tvm.target.Target) -> None:
        self.target = target

    def transform_module(self, mod: tvm.IRModule, _ctx: tvm.transform.PassContext) -> tvm.IRModule:
        mod = mod.clone()
        for gvar, function in list(mod.functions.items()):
            if isinstance(function, tirx.PrimFunc) and self._is_ours(function):
                begun = with_begun_reductions(function)
                if not begun.same_as(function):
                    mod.update_func(gvar, begun)
        return mod

    def _is_ours(self, kernel: tirx.PrimFunc) -> bool:
        stated = kernel.attrs.get("target") if kernel.attrs else None
        return stated is None or stated.kind.name == self.target.kind.name


def with_begun_reductions(kernel: tirx.PrimFunc) -> tirx.PrimFunc:
    """The kernel with the beginnings of reductions over axes of unknown extent in front of these."""
    reducing: dict[str, set[tirx.Var]] = {}

    def visit(realize: s_tir.SBlockRealize) -> None:
        block = realize.block
        axes = [
            (axis, value)
            for axis, value in zip(block.iter_vars, realize.iter_values, strict=True)
            if axis.iter_type == tirx.IterVar.CommReduce
        ]
        if block.init is not None and not all(_has_elements(axis.dom.extent) for axis, _ in axes):
            reducing[str(block.name_hint)] = {value for _, value in axes if isinstance(value, tirx.Var)}

    tvm_ffi.structural_walk(kernel.body, (s_tir.SBlockRealize, visit))
    if not reducing:
        return kernel
    schedule = s_tir.Schedule(kernel)
    for name, variables in reducing.items():
        block = schedule.get_sblock(name)
        loops = schedule.get_loops(block)
        schedule.decompose_reduction(
            block, next(one for one in loops if schedule.get(one).loop_var in variables)
        )
    return schedule.mod["main"]


def _has_elements(extent: tirx.Expr) -> bool:
    return isinstance(extent, tirx.IntImm)  # of none known to be none TVM makes no reduction
