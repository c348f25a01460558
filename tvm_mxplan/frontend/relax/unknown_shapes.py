"""Says which operator of a module has no kernel since a shape is not known: why TVM could not build it.

    c = R.add(a, b)          (n, 4) and (m, 4): equal or not is known only when the model runs
    d = R.exp(c)             of a tensor with 2 dimensions that nothing is known of

Asked once the build failed; an operator that a module can do without a shape is never refused.
"""

from __future__ import annotations

from collections.abc import Sequence

import tvm
from tvm import relax

from ...passes.origins import origins_of


def unknown_shape(mod: tvm.IRModule) -> str:
    """The first operator that TVM would need a shape for; empty where there is none."""
    for gvar, function in sorted(mod.functions.items(), key=lambda item: item[0].name_hint):
        if not isinstance(function, relax.Function):
            continue
        for variable, value in relax.analysis.get_var2val(function).items():
            lacking = _lacking(variable, value)
            if lacking:
                operator = value.op.name.removeprefix("relax.")
                made = ", ".join(f"{one.kind} {one.name!r}" for one in origins_of(value))
                where = made or f"Relax function {gvar.name_hint}: {variable.name!r}"
                return (
                    f"{where} ({operator}): {lacking}, and no kernel is built for that; state the shape "
                    "(R.match_cast in Relax, shapes= for an ONNX model)"
                )
    return ""


def _lacking(variable: tvm.ir.Var, value: relax.Expr) -> str:
    if not isinstance(value, relax.Call) or not isinstance(value.op, tvm.ir.Op):
        return ""
    if value.op.get_attr("FLegalize") is None or value.op.get_attr("FDataDependent"):
        return ""
    operands = [
        part for arg in value.args for part in (arg.fields if isinstance(arg, relax.Tuple) else [arg])
    ]
    tensors = [one.ty for one in operands if isinstance(one.ty, relax.TensorType)]
    for kind in tensors:
        if not isinstance(kind.shape, relax.ShapeExpr):
            return f"an operand of {_dimensions(kind)} has a shape that is not known"
    if isinstance(variable.ty, relax.TensorType) and not isinstance(variable.ty.shape, relax.ShapeExpr):
        return f"the shape of its result does not follow from {_shapes(tensors)}"
    return ""


def _dimensions(kind: relax.TensorType) -> str:
    return f"{int(kind.ndim)} dimensions" if int(kind.ndim) >= 0 else "unknown rank"


def _shapes(tensors: Sequence[relax.TensorType]) -> str:
    return " and ".join(f"[{', '.join(map(str, kind.shape.values))}]" for kind in tensors) or "its operands"
