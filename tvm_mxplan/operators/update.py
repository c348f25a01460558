"""An optimiser's change of one weight as an operator of Relax: ``mxplan.update``.

    R.mxplan.update(weight, grad, slots..., numbers..., formula, slots) -> weight, slots...

    weight, grad, slots   of one shape, whatever it is
    numbers               without axes; what changes from step to step
    formula               the name of the arithmetic of one number, in ``FORMULAS``

Each number follows from those in its place alone, so tensors may be stored in any order that all of them
share.  One kernel for each weight, so that all that is read and written goes through caches once:

    for each chunk of the weight, in parallel: weight, slots = formula(weight, gradient, slots, numbers)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import tvm
from tvm import relax, te, tirx
from tvm.relax import op
from tvm.script.ir_builder import IRBuilder
from tvm.script.ir_builder import tirx as T

from .registration import Operator, dtype_of, same_type, shape_of

Formula = Callable[
    [tirx.Expr, tirx.Expr, Sequence[tirx.Expr], Sequence[tirx.Expr]], tuple[tirx.Expr, list[tirx.Expr]]
]
"""The new number of a weight and of its slots, of the old ones, the gradient and the step's numbers."""
FORMULAS: dict[str, Formula] = {}
"""By the names that calls state; who emits a call enters its formula first."""
_CHUNK = 4096


def update(formula: str, tensors: Sequence[relax.Expr], numbers: Sequence[relax.Expr]) -> relax.Call:
    """The call of the operator; ``tensors`` are the weight, its gradient and its slots."""
    return UPDATE.call(*tensors, *numbers, formula=formula, slots=len(tensors) - 2)


def _type(call: relax.Call) -> tvm.ir.Type:
    count = 1 + int(call.attrs["slots"])
    types = [same_type(call.args[0])] * count
    return types[0] if count == 1 else relax.TupleType(types)


def _legalize(builder: relax.BlockBuilder, call: relax.Call) -> relax.Expr:
    slots, formula = int(call.attrs["slots"]), FORMULAS[str(call.attrs["formula"])]
    tensors, numbers = call.args[: 2 + slots], call.args[2 + slots :]
    shape, dtype = shape_of(tensors[0]), dtype_of(tensors[0])
    count = math.prod(shape)

    def body(ins: Sequence[tirx.Buffer], outs: Sequence[tirx.Buffer]) -> tirx.Stmt:
        with IRBuilder() as ib:
            chunks = T.parallel(0, -(-count // _CHUNK))
            with chunks as chunk, T.serial(0, tirx.min(_CHUNK, count - chunk * _CHUNK)) as at:
                place = chunk * _CHUNK + at
                weight, grad, *kept = (buffer[place] for buffer in ins[: len(tensors)])
                given = [buffer[0] for buffer in ins[len(tensors) :]]
                new, new_kept = formula(weight, grad, kept, given)
                for buffer, value in zip(outs, (new, *new_kept), strict=True):
                    T.buffer_store(buffer, value, [place])
            return ib.get()

    def compute(*operands: te.Tensor) -> list[te.Tensor]:
        return te.extern(
            [(count,)] * (1 + slots), list(operands), body, name="update", dtype=[dtype] * (1 + slots)
        )

    flat = [builder.emit(op.reshape(tensor, (count,))) for tensor in tensors]
    flat += [builder.emit(op.reshape(number, (1,))) for number in numbers]
    made = builder.emit(builder.call_te(compute, *flat, primfunc_name_hint="update"))
    several = [made] if not slots else [relax.TupleGetItem(made, at) for at in range(1 + slots)]
    found = [builder.emit(op.reshape(builder.emit(value), shape)) for value in several]
    return relax.Tuple(found) if slots else found[0]


UPDATE = Operator("update", "an optimiser's change of one weight", _type, _legalize)
