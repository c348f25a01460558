"""New weights as one kernel for each weight: all that is read and written goes through caches once.

for each chunk of the weight, in parallel: weight, slots = formula(weight, gradient, slots, numbers)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from tvm import relax, te, tirx
from tvm.relax import op
from tvm.script.ir_builder import IRBuilder
from tvm.script.ir_builder import tirx as T

from ..operators.registration import dtype_of, shape_of

Formula = Callable[
    [tirx.Expr, tirx.Expr, Sequence[tirx.Expr], Sequence[tirx.Expr]], tuple[tirx.Expr, list[tirx.Expr]]
]
"""The new number of a weight and of its slots, of the old ones, the gradient and the step's numbers."""
_CHUNK = 4096


def updated(
    builder: relax.BlockBuilder,
    formula: Formula,
    tensors: Sequence[relax.Expr],
    numbers: Sequence[relax.Expr],
) -> list[relax.Expr]:
    """The new weight and slots; ``tensors`` are the weight, its gradient and its slots."""
    shape, dtype = shape_of(tensors[0]), dtype_of(tensors[0])
    count, slots = math.prod(shape), len(tensors) - 2

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
    return [builder.emit(op.reshape(builder.emit(value), shape)) for value in several]
