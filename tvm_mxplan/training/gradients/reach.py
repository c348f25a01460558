"""Weights that the loss depends on, and operators between them and the loss that have no gradients."""

from __future__ import annotations

from collections.abc import Sequence

import tvm
from tvm import relax

from ...core.decisions.origin import Origins
from ...errors import UnsupportedError
from ...passes.origins import origins_of
from ..inlining import stops
from ..model import FLOATS
from .recurrent import RECURRENT, untrained
from .table import differentiable


def reached(function: relax.Function, results: Sequence[relax.Expr]) -> set[relax.Var]:
    """Variables on which results depend by paths of real numbers that no operator stops.

    PyTorch has no gradient for other weights, rather than zeros, and its optimisers leave them alone: they
    neither decay nor move on by their momentum.
    """
    found = {var for result in results for var in relax.analysis.free_vars(result)}
    for block in reversed(function.body.blocks):
        for binding in reversed(block.bindings):
            value = getattr(binding, "value", None)
            if binding.var in found and value is not None and is_float(binding.var.ty) and not stops(value):
                found.update(relax.analysis.free_vars(value))
    return found


def named_origins(function: relax.Function) -> dict[str, Origins]:
    """Origins of calls, by the names of the variables that hold their results."""
    bindings = [binding for block in function.body.blocks for binding in block.bindings]
    return {str(binding.var.name): origins_of(binding.value) for binding in bindings}


def depending(function: relax.Function, weights: Sequence[relax.Var]) -> set[relax.Var]:
    """Weights, and variables that depend on them by paths of real numbers that no operator stops."""
    found = set(weights)
    for block in function.body.blocks:
        for binding in block.bindings:
            value = binding.value
            if (
                is_float(binding.var.ty)
                and not stops(value)
                and found.intersection(relax.analysis.free_vars(value))
            ):
                found.add(binding.var)
    return found


def check_gradients(function: relax.Function, loss: relax.Expr, wanted: Sequence[relax.Var]) -> None:
    """UnsupportedError for an operator without a gradient between a trained weight and the loss."""
    bindings = [binding for block in function.body.blocks for binding in block.bindings]
    between = reached(function, [loss]) & depending(function, wanted)
    for binding in bindings:
        value = binding.value
        if binding.var not in between or not isinstance(value, relax.Call):
            continue
        if not isinstance(value.op, tvm.ir.Op) or not differentiable(value.op):
            where = "".join(f" ({origin})" for origin in origins_of(value)[:1])
            called = value.op.name if isinstance(value.op, tvm.ir.Op) else value.op
            called = value.args[0].name_hint if str(called) == "relax.call_tir" else called
            reason = untrained(value) if str(called) in RECURRENT else None
            why = f": {reason}" if reason else ""
            raise UnsupportedError(
                f"{called}{where} has no gradient here, and weights before it are trained{why}"
            )


def is_float(kind: tvm.ir.Type) -> bool:
    if isinstance(kind, relax.TupleType):
        return any(is_float(field) for field in kind.fields)
    return isinstance(kind, relax.TensorType) and str(kind.dtype) in FLOATS
