"""Stops of gradients where data enters what trained weights take part in.

    y = flip(x)                      y = flip(x)
    z = conv2d(y, w)        ->       s = no_grad(y)
                                     z = conv2d(s, w)

TVM's pass goes through every operand of real numbers, wanted or not, and fails at an operator without a
gradient; it computes none behind a stop.
"""

from __future__ import annotations

from collections.abc import Sequence, Set

from tvm import relax

from ...passes.origins import origins_of, with_origins
from .reach import depending, is_float


def with_stops(function: relax.Function, wanted: Sequence[relax.Var]) -> relax.Function:
    """The function with a stop on each real operand without weights, of calls that have others with some."""
    depends = depending(function, wanted)
    blocks = []
    for block in function.body.blocks:
        bindings: list[relax.Binding] = []
        for binding in block.bindings:
            value = binding.value
            if binding.var in depends and isinstance(value, relax.Call | relax.Tuple):
                binding = relax.VarBinding(binding.var, _stopped(value, depends, bindings))
            bindings.append(binding)
        is_dataflow = isinstance(block, relax.DataflowBlock)
        blocks.append(relax.DataflowBlock(bindings) if is_dataflow else relax.BindingBlock(bindings))
    body = relax.SeqExpr(blocks, function.body.body)
    return relax.Function(function.params, body, function.ret_ty, function.is_pure, function.attrs)


def _stopped(value: relax.Expr, depends: Set[relax.Var], bindings: list[relax.Binding]) -> relax.Expr:
    """A value with stops on operands, which are bound in front of it."""
    if isinstance(value, relax.Tuple):
        return _normalized(relax.Tuple([_stopped(field, depends, bindings) for field in value.fields]))
    if isinstance(value, relax.Call):
        args = [_stopped(arg, depends, bindings) for arg in value.args]
        call = relax.Call(value.op, args, value.attrs, value.ty_args, value.span)
        return _normalized(with_origins(call, origins_of(value)))
    is_data = isinstance(value, relax.Var) and isinstance(value.ty, relax.TensorType) and is_float(value.ty)
    if not is_data or value in depends:
        return value
    stop = relax.DataflowVar("stopped", value.ty)
    bindings.append(relax.VarBinding(stop, _normalized(relax.op.grad.no_grad(value))))
    return stop


def _normalized(expr: relax.Expr) -> relax.Expr:
    return relax.BlockBuilder().normalize(expr)
