"""Finds the weights that a function updates, and where regions take them and give their gradients.

w  ->  regions, update          g  from a region  ->  update          slots  ->  update
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import tvm
from tvm import relax

from tvm_mxplan.core import program as ir
from tvm_mxplan.operators.update import UPDATE


@dataclass(frozen=True)
class RegionPort:
    """An input or a result of a region in one call, by its number among those.

    Attributes
    ----------
    call : the variable that the call is bound to.
    """

    call: tvm.ir.Var
    region: tvm.ir.GlobalVar
    kind: ir.ValueKind
    number: int

    def value(self, program: ir.Program) -> int:
        """The value of the region's program that crosses here."""
        return program.of_kind(self.kind)[self.number]


@dataclass(frozen=True)
class Weight:
    """A weight that is updated.

    Attributes
    ----------
    params : the function's parameters that are the weight, then its slots.
    ports : where regions take the weight and give its gradient.
    """

    params: tuple[relax.Var, ...]
    ports: tuple[RegionPort, ...]


@dataclass(frozen=True)
class _Update:
    """The update of a weight: the variable that it is bound to, and the gradient that it reads."""

    var: tvm.ir.Var
    weight: Weight
    gradient: relax.Expr


def weights_of(function: relax.Function, found: Mapping[tvm.ir.GlobalVar, relax.Function]) -> list[Weight]:
    """All weights of a function that it updates, whoever else reads them."""
    return [update.weight for update in _updates(_bound(function), function, found)]


def storable_weights(
    function: relax.Function, found: Mapping[tvm.ir.GlobalVar, relax.Function]
) -> list[Weight]:
    """Weights that regions alone read, and whose gradients regions give to the update alone."""
    made = _bound(function)
    updates = _updates(made, function, found)
    if not updates:
        return []
    uses: dict[tvm.ir.Var, list[tvm.ir.Var | None]] = {}
    for var, value in made.items():
        for read in _variables(value):
            uses.setdefault(read, []).append(var)
    for read in _variables(function.body.body):
        uses.setdefault(read, []).append(None)
    weights = []
    for update in updates:
        weight, *slots = update.weight.params
        given = any(port.kind == "output" for port in update.weight.ports)
        alone = all(len(uses.get(tensor, ())) == 1 for tensor in (update.gradient, *slots))
        others = [use for use in uses[weight] if use != update.var]
        in_regions = all(use is not None and _region(made[use], found) is not None for use in others)
        if given and alone and in_regions:
            weights.append(update.weight)
    return weights


def _bound(function: relax.Function) -> dict[tvm.ir.Var, relax.Expr]:
    """The values of a function's variables; nothing where one is no plain binding."""
    bindings = [binding for block in function.body.blocks for binding in block.bindings]
    if not all(isinstance(binding, relax.VarBinding) for binding in bindings):
        return {}
    return {binding.var: binding.value for binding in bindings}


def _updates(
    made: Mapping[tvm.ir.Var, relax.Expr],
    function: relax.Function,
    found: Mapping[tvm.ir.GlobalVar, relax.Function],
) -> list[_Update]:
    """The updates of parameters."""
    updates = {var: value for var, value in made.items() if UPDATE.is_called(value)}
    if not updates:
        return []
    taken: dict[tvm.ir.Var, list[RegionPort]] = {}
    for var, value in made.items():
        region = _region(value, found)
        for number, arg in enumerate(tensors_of(value) if region is not None else ()):
            if isinstance(arg, relax.Var):
                taken.setdefault(arg, []).append(RegionPort(var, region, "input", number))
    result, params = [], set(function.params)
    for var, update in updates.items():
        weight, gradient, *slots = update.args[: 2 + int(update.attrs["slots"])]
        if params.issuperset((weight, *slots)):
            source = region_result(gradient, made, found)
            ports = (*taken.get(weight, ()), *(() if source is None else (source,)))
            result.append(_Update(var, Weight((weight, *slots), ports), gradient))
    return result


def _region(value: relax.Expr, found: Mapping[tvm.ir.GlobalVar, relax.Function]) -> tvm.ir.GlobalVar | None:
    """The region that an expression calls."""
    called = isinstance(value, relax.Call) and isinstance(value.op, tvm.ir.GlobalVar) and value.op in found
    return value.op if called else None


def region_result(
    expr: relax.Expr,
    made: Mapping[tvm.ir.Var, relax.Expr],
    found: Mapping[tvm.ir.GlobalVar, relax.Function],
) -> RegionPort | None:
    """The result of a region that an expression is; None for what comes from elsewhere."""
    call, number = expr, 0
    if isinstance(made.get(call), relax.TupleGetItem):
        call, number = made[expr].tuple_value, int(made[expr].index)
    region = None if call not in made else _region(made[call], found)
    return None if region is None else RegionPort(call, region, "output", number)


def tensors_of(call: relax.Call) -> list[relax.Expr]:
    """The arguments of a region's call that are tensors, in the order of its inputs."""
    return [arg for arg in call.args if isinstance(arg.ty, relax.TensorType)]


def _variables(expr: relax.Expr) -> list[tvm.ir.Var]:
    found: list[tvm.ir.Var] = []
    relax.analysis.post_order_visit(
        expr, lambda node: found.append(node) if isinstance(node, tvm.ir.Var) else None
    )
    return [var for var in found if not isinstance(var, tvm.ir.GlobalVar)]
