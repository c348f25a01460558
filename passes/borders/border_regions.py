"""Regions whose inputs and results cross in physical layouts: their programs, types and bodies.

Before   def region(x: (1, 16, 8, 8)): y = ...; return y
After    def region(x_aBcd16b: (1, 1, 8, 8, 16)):
             x = reshape(permute_dims(x_aBcd16b));  y = ...;  return permute_dims(reshape(y))

The body says what the program computes, layouts included, so it stays true, and TVM can run it.
"""

from __future__ import annotations

from dataclasses import replace

import tvm
from tvm import relax

from tvm_mxplan.byoc.backend import Backend
from tvm_mxplan.core.layout.layout import plain_layout

from ..physical import physical_type, to_physical, to_plain
from ..region.annotate import annotate
from ..region.attached import attach, program_of
from .border_programs import Forms, cross_borders, ports_of


def cross_region(
    region: relax.Function, name: str, takes: Forms, gives: Forms, backend: Backend
) -> relax.Function:
    """``region`` as ``name`` with its inputs and results in the layouts given, body and program alike."""
    program = replace(annotate(cross_borders(program_of(region), takes, gives), backend), name=name)
    params, entry = _parameters(region, takes)
    leave, results = _results(region, gives)
    blocks = [relax.BindingBlock(entry), *region.body.blocks, relax.BindingBlock(leave)]
    if len(results) == 1 and not isinstance(region.ret_ty, relax.TupleType):
        body, type_ = results[0], results[0].ty
    else:
        body, type_ = relax.Tuple(results), relax.TupleType([result.ty for result in results])
    body = relax.SeqExpr([block for block in blocks if len(block.bindings)], body)
    crossed = relax.Function(params, body, type_, region.is_pure, region.attrs)
    return attach(crossed.with_attr("global_symbol", name), program)


def _parameters(region: relax.Function, takes: Forms) -> tuple[list[tvm.ir.Var], list[relax.Binding]]:
    """New parameters, and bindings that give the old ones their values."""
    tensors = [param for param in region.params if isinstance(param.ty, relax.TensorType)]
    entry: list[relax.Binding] = []
    ports: list[tvm.ir.Var] = []
    for number, layout in ports_of(takes):
        old = tensors[number]
        if layout == plain_layout(old.ty.ndim):
            ports.append(old)
            continue
        ports.append(relax.Var(f"{old.name}_{layout}", physical_type(old.ty, layout)))
        if layout == takes[number][0]:
            entry.append(relax.VarBinding(old, to_plain(ports[-1], layout, old.ty)))
    first = iter(ports)
    params = [next(first) if isinstance(param.ty, relax.TensorType) else param for param in region.params]
    return [*params, *first], entry


def _results(region: relax.Function, gives: Forms) -> tuple[list[relax.Binding], list[tvm.ir.Var]]:
    """Bindings that bring results into their layouts, and the variables that they are in."""
    leave: list[relax.Binding] = []
    plain = [region.body.body]
    if isinstance(region.ret_ty, relax.TupleType):
        plain = [relax.Var(f"result{number}", type_) for number, type_ in enumerate(region.ret_ty.fields)]
        for number, var in enumerate(plain):
            leave.append(relax.VarBinding(var, relax.TupleGetItem(region.body.body, number)))
    results = []
    for number, layout in ports_of(gives):
        if layout == plain_layout(plain[number].ty.ndim):
            results.append(plain[number])
            continue
        results.append(relax.Var(f"result{number}_{layout}", physical_type(plain[number].ty, layout)))
        leave.append(relax.VarBinding(results[-1], to_physical(plain[number], layout)))
    return leave, results
