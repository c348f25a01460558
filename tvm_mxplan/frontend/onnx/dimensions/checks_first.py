"""Checks of the sizes of inputs, in front of all that a function computes.

Before   y = ...                                  a block with a check in it keeps its order, regions end
         c = R.call_tir(met, (n,));  s = R.match_cast(R.tensor_to_shape(c), R.Shape([0]))
         z = ...
After    c = R.call_tir(met, (n,));  s = R.match_cast(R.tensor_to_shape(c), R.Shape([0]))
         y = ...;  z = ...                        a block of its own

Checks of sizes that only the computation tells stay where they are.
"""

from __future__ import annotations

import tvm
from tvm import relax, tirx

ASIDE = "mxplan.aside"
"""Attribute of kernels that check sizes, on which no tensor waits."""
_BINDINGS = 3


def with_checks_first(mod: tvm.IRModule) -> tvm.IRModule:
    """The module with the checks of ``main`` that know all they need when it begins in front."""
    function = mod["main"]
    known = {dim for param in function.params for dim in _dims(param) if isinstance(dim, tirx.Var)}
    found: list[relax.Call] = []
    blocks: list[relax.BindingBlock] = []
    for block in function.body.blocks:
        bindings, kept = list(block.bindings), []
        while bindings:
            call = bindings[0].value
            if _is_check(mod, call) and known.issuperset(_sizes(call)):
                found.append(call)
                del bindings[:_BINDINGS]
            else:
                kept.append(bindings.pop(0))
        is_dataflow = isinstance(block, relax.DataflowBlock)
        blocks.append(relax.DataflowBlock(kept) if is_dataflow else relax.BindingBlock(kept))
    if not found:
        return mod
    first = relax.BindingBlock([binding for call in found for binding in _check(call)])
    body = relax.SeqExpr([first, *blocks], function.body.body)
    mod["main"] = relax.Function(function.params, body, function.ret_ty, function.is_pure, function.attrs)
    return mod


def _is_check(mod: tvm.IRModule, value: relax.Expr) -> bool:
    if not isinstance(value, relax.Call) or not value.args or not isinstance(value.args[0], tvm.ir.GlobalVar):
        return False
    attrs = mod[value.args[0]].attrs
    return bool(attrs and ASIDE in attrs)


def _sizes(call: relax.Call) -> list[tirx.Expr]:
    """The sizes that a kernel is handed, all of whose arguments are."""
    return list(call.args[1].fields)


def _dims(param: relax.Var) -> list[tirx.Expr]:
    shape = getattr(param.ty, "shape", None)
    return list(shape.values) if isinstance(shape, relax.ShapeExpr) else []


def _check(call: relax.Call) -> list[relax.Binding]:
    met = relax.Var("met", call.ty)
    told = relax.BlockBuilder().normalize(relax.op.tensor_to_shape(met))
    shape, nothing = relax.Var("told", told.ty), relax.ShapeType([tirx.const(0, "int64")])
    return [
        relax.VarBinding(met, call),
        relax.VarBinding(shape, told),
        relax.MatchCast(relax.Var("nothing", nothing), shape, nothing),
    ]
