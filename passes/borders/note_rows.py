"""``NoteRowsInPlace``: rows of caches that a region may write where they stand.

Before   main(ids, cache, filled) -> logits, mxplan_onednn_0(...)[1]        mxplan.states [[1, 1]]
After    the same                                                           mxplan.in_place [[1, 1]]

Of the states of a function (``frontend/states.py``) those are noted that attention makes: by a step that
writes new rows alone where both are the same memory, of an input that nobody else reads, for a result that is
no other's.  ``passes/storage/rows_in_place.py`` hands the input over as the result.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import tvm
import tvm_ffi
from tvm import relax

from tvm_mxplan.core.program import program as ir
from tvm_mxplan.operators.attention.caches import IN_PLACE, STATES

from ..canonicalize.rewriter import reads_of
from ..region.attached import carries_program, program_of
from .state_weights import region_result, tensors_of


@tvm.transform.module_pass(opt_level=0, name="NoteRowsInPlace")
class NoteRowsInPlace:
    """Module pass; see the module's text."""

    def transform_module(self, mod: tvm.IRModule, _ctx: tvm.transform.PassContext) -> tvm.IRModule:
        regions = {gvar: one for gvar, one in mod.functions.items() if carries_program(one)}
        for gvar, function in list(mod.functions.items()):
            if isinstance(function, relax.Function) and function.attrs and STATES in function.attrs:
                mod = mod.clone()
                mod[gvar] = function.with_attr(IN_PLACE, tvm_ffi.convert(_in_place(function, regions)))
        return mod


def _in_place(
    function: relax.Function, regions: Mapping[tvm.ir.GlobalVar, relax.Function]
) -> list[list[int]]:
    """Pairs of an input and a result that one region makes of it, row by row."""
    made = dict(relax.analysis.get_var2val(function).items())
    reads = reads_of(function)
    whole = made.get(function.body.body, function.body.body)
    results = list(whole.fields) if isinstance(whole, relax.Tuple) else [function.body.body]
    ports = [region_result(result, made, regions) for result in results]
    found = []
    for given, result in function.attrs[STATES]:
        param, port = function.params[int(given)], ports[int(result)]
        if port is None or ports.count(port) > 1 or reads[param] != 1:
            continue
        taken = [at for at, arg in enumerate(tensors_of(made[port.call])) if arg.same_as(param)]
        program = program_of(regions[port.region])
        if len(taken) == 1 and _puts_rows(program, program.of_kind("input")[taken[0]], port.value(program)):
            found.append([int(given), int(result)])
    return found


def _puts_rows(program: ir.Program, cache: int, made: int) -> bool:
    """Whether one step reads an input as its cache and writes a result as that with new rows, both alike."""
    readers = [step for step in program.steps if cache in map(program.root, step.reads())]
    if len(readers) != 1 or not isinstance(readers[0].attrs, ir.Attention):
        return False
    roles = {operand.role: operand.value for operand in readers[0].operands}
    return "filled" in roles and any(
        _whole(program, (roles[f"past_{role}"], roles[f"joined_{role}"]), (cache, made))
        for role in ("key", "value")
    )


def _whole(program: ir.Program, values: Sequence[int], bases: Sequence[int]) -> bool:
    """Whether values are all of others, of the caller's, as these stand."""

    def stands(number: int) -> tuple[object, ...]:
        value = program.values[number]
        return program.root(number), value.shape, value.layout, value.dtype

    starts = all(program.values[value].alias_offset == 0 for value in values)
    return starts and list(map(stands, values)) == list(map(stands, bases))
