"""Names the first operator of a step that made something else than numbers.

The step runs once more, compiled by TVM alone with one more result for each operator: whether all that it
made is finite.  That is slow, and happens only when something went wrong.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import tvm
from tvm import relax
from tvm.relax import op

from ..api import compile as compile_model
from ..core.decisions.origin import told
from ..passes.origins import origins_of
from .inlining import inlined
from .model import FLOATS


def first_anomaly(mod: tvm.IRModule, arguments: Mapping[str, Any]) -> str:
    """The operator in words; arguments are those of the step in their order, by what they are called."""
    function = mod["main"]
    builder = relax.BlockBuilder(
        tvm.IRModule({gvar: f for gvar, f in mod.functions.items() if gvar.name_hint != "main"})
    )
    params = [relax.Var(f"p{at}", param.ty) for at, param in enumerate(function.params)]
    names: list[str] = []
    checks: list[relax.Expr] = []

    def watched(name: str, value: relax.Expr) -> None:
        if not isinstance(value.ty, relax.TensorType) or str(value.ty.dtype) not in FLOATS:
            return
        finite = op.astype(builder.emit(op.isfinite(value)), "int32")
        names.append(name)
        checks.append(builder.emit(op.min(builder.emit(finite))))

    def watch(call: relax.Call) -> relax.Expr:
        result = builder.emit(call)
        name = _described(call)
        if isinstance(result.ty, relax.TupleType):
            for at in range(len(result.ty.fields)):
                watched(name, builder.emit(relax.TupleGetItem(result, at)))
        else:
            watched(name, result)
        return result

    with builder.function("main", params):
        with builder.dataflow():
            for name, param in zip(arguments, params, strict=True):
                watched(f"nobody: it came in {name}", param)
            inlined(builder, function, params, watch)
            results = [builder.emit_output(check) for check in checks]
        builder.emit_func_output(relax.Tuple(results))
    found = compile_model(builder.get(), "llvm")(*arguments.values())
    for name, flag in zip(names, found, strict=True):
        if not int(flag.numpy()):
            return name
    return "an operator that TVM alone computes otherwise"


def _described(call: relax.Call) -> str:
    name = str(call.op.name) if isinstance(call.op, tvm.ir.Op) else str(call.op)
    if name == "relax.call_tir":
        name = str(call.args[0].name_hint)
    where = told(origins_of(call))
    return f"{name} ({where})" if where else name
