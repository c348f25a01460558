"""Regions that take weights, and give gradients, in the forms in which state is stored.

Before   def region(w: (64, 64, 3, 3)): y = ...;  return y
After    def region(w_ABcd16b16a: (4, 4, 3, 3, 16, 16)):
             w = reshape(permute_dims(w_ABcd16b16a));  y = ...;  return permute_dims(reshape(y))
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TypeAlias

from tvm import relax

from tvm_mxplan.byoc.backend import Backend
from tvm_mxplan.core.program import program as ir

from ..physical import physical_type, to_physical, to_plain
from ..region.annotate import annotate
from ..region.attached import attach, program_of
from .state_programs import StoredForm, stored

Port: TypeAlias = tuple[ir.ValueKind, int]
"""An input or an output of a region, by the number among those."""


def with_forms(
    region: relax.Function, name: str, ports: Mapping[Port, StoredForm], backend: Backend
) -> relax.Function:
    """A region as ``name`` with some inputs and results in forms of their own, body and program alike."""
    region = relax.utils.copy_with_new_vars(region)
    program = program_of(region)
    values = {program.of_kind(kind)[number]: form for (kind, number), form in ports.items()}
    params, entry = _parameters(region, ports)
    results, leave = _results(region, ports)
    blocks = [relax.BindingBlock(entry), *region.body.blocks, relax.BindingBlock(leave)]
    several = isinstance(region.ret_ty, relax.TupleType)
    body = relax.SeqExpr(
        [block for block in blocks if len(block.bindings)], relax.Tuple(results) if several else results[0]
    )
    kinds = [result.ty for result in results]
    made = relax.Function(
        params, body, relax.TupleType(kinds) if several else kinds[0], region.is_pure, region.attrs
    )
    program = replace(annotate(stored(program, values), backend), name=name)
    return attach(made.with_attr("global_symbol", name), program)


def form_type(plain: relax.TensorType, form: StoredForm) -> relax.TensorType:
    """The type of a tensor that is stored in a form."""
    return physical_type(_seen(plain, form), form.layout)


def _seen(plain: relax.TensorType, form: StoredForm) -> relax.TensorType:
    return relax.TensorType(list(form.shape), plain.dtype, plain.vdevice)


def _parameters(
    region: relax.Function, ports: Mapping[Port, StoredForm]
) -> tuple[list[relax.Var], list[relax.Binding]]:
    """New parameters, and bindings that give the old ones their values."""
    params, entry, number = [], [], 0
    for param in region.params:
        form = None
        if isinstance(param.ty, relax.TensorType):
            form, number = ports.get(("input", number)), number + 1
        if form is None:
            params.append(param)
            continue
        params.append(relax.Var(f"{param.name}_{form.layout}", form_type(param.ty, form)))
        value = to_plain(params[-1], form.layout, _seen(param.ty, form))
        if len(form.shape) != param.ty.ndim:
            value = relax.op.reshape(value, param.ty.shape)
        entry.append(relax.VarBinding(param, value))
    return params, entry


def _results(
    region: relax.Function, ports: Mapping[Port, StoredForm]
) -> tuple[list[relax.Var], list[relax.Binding]]:
    """Variables of the results, and the bindings that give them their values."""
    several = isinstance(region.ret_ty, relax.TupleType)
    kinds = list(region.ret_ty.fields) if several else [region.ret_ty]
    results, leave = [], []
    for number, kind in enumerate(kinds):
        plain = region.body.body
        if several:
            plain = relax.Var(f"result{number}", kind)
            leave.append(relax.VarBinding(plain, relax.TupleGetItem(region.body.body, number)))
        form = ports.get(("output", number))
        if form is not None:
            if len(form.shape) != kind.ndim:
                seen = relax.Var(f"result{number}_seen", _seen(kind, form))
                leave.append(relax.VarBinding(seen, relax.op.reshape(plain, seen.ty.shape)))
                plain = seen
            made = relax.Var(f"result{number}_{form.layout}", form_type(kind, form))
            leave.append(relax.VarBinding(made, to_physical(plain, form.layout)))
            plain = made
        results.append(plain)
    return results, leave
