"""Finds the weights of a function that its regions alone use, and the one update of each.

w  ->  regions, update          g  from a region  ->  update          slots  ->  update
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import tvm
from tvm import relax

from tvm_mxplan.core import program as ir
from tvm_mxplan.operators.update import UPDATE

STATE = "mxplan.state"
"""Attribute of a function whose updated weights may be stored as its steps want them; then, how they are."""


@dataclass(frozen=True)
class Port:
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
    """A weight that is updated once.

    Attributes
    ----------
    params : the function's parameters that are the weight, then its slots.
    ports : where regions take the weight and give its gradient.
    """

    params: tuple[relax.Var, ...]
    ports: tuple[Port, ...]


def updated_weights(
    function: relax.Function, found: Mapping[tvm.ir.GlobalVar, relax.Function]
) -> list[Weight]:
    """Weights that regions alone read, and whose gradients regions give to the update alone."""
    bindings = [binding for block in function.body.blocks for binding in block.bindings]
    if not all(isinstance(binding, relax.VarBinding) for binding in bindings):
        return []
    made = {binding.var: binding.value for binding in bindings}
    uses: dict[tvm.ir.Var, list[tvm.ir.Var | None]] = {}
    for var, value in made.items():
        for read in _variables(value):
            uses.setdefault(read, []).append(var)
    for read in _variables(function.body.body):
        uses.setdefault(read, []).append(None)
    weights, params = [], set(function.params)
    for var, update in made.items():
        if not UPDATE.is_called(update):
            continue
        slots = int(update.attrs["slots"])
        weight, gradient, *kept = update.args[: 2 + slots]
        source = _given(gradient, made, found)
        alone = all(len(uses.get(tensor, ())) == 1 for tensor in (gradient, *kept))
        if source is None or not alone or not params.issuperset((weight, *kept)):
            continue
        others = [use for use in uses[weight] if use != var]
        if all(use is not None and _region(made[use], found) is not None for use in others):
            ports = [
                Port(use, made[use].op, "input", number)  # type: ignore[arg-type]
                for use in dict.fromkeys(others)
                for number, arg in enumerate(_tensors(made[use]))  # type: ignore[index]
                if arg.same_as(weight)
            ]
            weights.append(Weight((weight, *kept), (*ports, source)))
    return weights


def _region(value: relax.Expr, found: Mapping[tvm.ir.GlobalVar, relax.Function]) -> tvm.ir.GlobalVar | None:
    """The region that an expression calls."""
    called = isinstance(value, relax.Call) and isinstance(value.op, tvm.ir.GlobalVar) and value.op in found
    return value.op if called else None


def _given(
    gradient: relax.Expr,
    made: Mapping[tvm.ir.Var, relax.Expr],
    found: Mapping[tvm.ir.GlobalVar, relax.Function],
) -> Port | None:
    """The result of a region that a gradient is; None for what comes from elsewhere."""
    call, number = gradient, 0
    if isinstance(made.get(call), relax.TupleGetItem):
        call, number = made[gradient].tuple_value, int(made[gradient].index)
    region = None if call not in made else _region(made[call], found)
    return None if region is None else Port(call, region, "output", number)


def _tensors(call: relax.Call) -> list[relax.Expr]:
    return [arg for arg in call.args if isinstance(arg.ty, relax.TensorType)]


def _variables(expr: relax.Expr) -> list[tvm.ir.Var]:
    found: list[tvm.ir.Var] = []
    relax.analysis.post_order_visit(
        expr, lambda node: found.append(node) if isinstance(node, tvm.ir.Var) else None
    )
    return [var for var in found if not isinstance(var, tvm.ir.GlobalVar)]
