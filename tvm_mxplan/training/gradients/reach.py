"""Weights that the loss depends on, and operators between them and the loss that have no gradients."""

from __future__ import annotations

from collections.abc import Sequence

import tvm
from tvm import relax

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


def check_gradients(function: relax.Function, loss: relax.Expr, wanted: Sequence[relax.Var]) -> None:
    """UnsupportedError for an operator without a gradient between a trained weight and the loss."""
    bindings = [binding for block in function.body.blocks for binding in block.bindings]
    reaches = reached(function, [loss])
    depends = set(wanted)
    for binding in bindings:
        value = binding.value
        read = relax.analysis.free_vars(value)
        if not depends.intersection(read) or not is_float(binding.var.ty) or stops(value):
            continue
        depends.add(binding.var)
        if binding.var not in reaches or not isinstance(value, relax.Call):
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
