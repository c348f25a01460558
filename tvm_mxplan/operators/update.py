"""An optimiser's change of one weight as an operator of Relax: ``mxplan.update``.

    R.mxplan.update(weight, grad, slots..., numbers..., formula, slots) -> weight, slots..., largest

    weight, grad, slots   of one shape, whatever it is
    numbers               without axes; what changes from step to step
    formula               the name of the arithmetic of one number, in ``FORMULAS``
    largest               of parts, the bits of the largest number that was written, its sign aside

Each number follows from those in its place alone, so tensors may be stored in any order that all of them
share.  One kernel for each weight, so that all that is read and written goes through caches once:

    for each chunk of the weight, in parallel: weight, slots = formula(weight, gradient, slots, numbers)

The bits of an infinity, and of what is no number, are larger than those of every number: who wants to know
whether all is finite looks at ``largest`` (``all_finite``) and reads no weight again.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
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
_CHUNK, _LANES = 4096, 16


def update(formula: str, tensors: Sequence[relax.Expr], numbers: Sequence[relax.Expr]) -> relax.Call:
    """The call of the operator; ``tensors`` are the weight, its gradient and its slots."""
    return UPDATE.call(*tensors, *numbers, formula=formula, slots=len(tensors) - 2)


def all_finite(largest: np.ndarray) -> bool:
    """Whether an update wrote finite numbers alone, by its last result."""
    return bool((largest < _INFINITY[str(largest.dtype)]).all())


_BITS = {"float32": "int32", "float64": "int64"}
"""The type of the bits of a number."""
_INFINITY = {"int32": 0x7F800000, "int64": 0x7FF0000000000000}
_MAGNITUDE = {"int32": 0x7FFFFFFF, "int64": 0x7FFFFFFFFFFFFFFF}


def _chunks(count: int) -> int:
    return max(1, -(-count // _CHUNK))


def _type(call: relax.Call) -> tvm.ir.Type:
    weight = call.args[0]
    chunks, bits = _chunks(math.prod(shape_of(weight))), _BITS[dtype_of(weight)]
    every = [same_type(weight)] * (1 + int(call.attrs["slots"]))
    return relax.TupleType([*every, relax.TensorType([chunks * _LANES], bits)])


def _legalize(builder: relax.BlockBuilder, call: relax.Call) -> relax.Expr:
    slots, formula = int(call.attrs["slots"]), FORMULAS[str(call.attrs["formula"])]
    tensors, numbers = call.args[: 2 + slots], call.args[2 + slots :]
    shape, dtype = shape_of(tensors[0]), dtype_of(tensors[0])
    count, bits = math.prod(shape), _BITS[dtype]
    magnitude = tirx.const(_MAGNITUDE[bits], bits)

    def body(ins: Sequence[tirx.Buffer], outs: Sequence[tirx.Buffer]) -> tirx.Stmt:
        *written, largest = outs

        def noted(buffer: tirx.Buffer, place: tirx.Expr, lane: tirx.Expr) -> None:
            found = tirx.reinterpret(bits, buffer[place]) & magnitude
            T.buffer_store(largest, tirx.max(largest[lane], found), [lane])

        with IRBuilder() as ib:
            with T.parallel(0, _chunks(count)) as chunk:
                begin, length = chunk * _CHUNK, tirx.min(_CHUNK, count - chunk * _CHUNK)
                with T.vectorized(0, _LANES) as lane:
                    T.buffer_store(largest, tirx.const(0, bits), [chunk * _LANES + lane])
                with T.serial(0, length) as at:
                    weight, grad, *kept = (buffer[begin + at] for buffer in ins[: len(tensors)])
                    given = [buffer[0] for buffer in ins[len(tensors) :]]
                    new, new_kept = formula(weight, grad, kept, given)
                    for buffer, value in zip(written, (new, *new_kept), strict=True):
                        T.buffer_store(buffer, value, [begin + at])
                with T.serial(0, length // _LANES) as row, T.vectorized(0, _LANES) as lane:
                    for buffer in written:
                        noted(buffer, begin + row * _LANES + lane, chunk * _LANES + lane)
                with T.serial(0, length % _LANES) as left:
                    for buffer in written:
                        noted(buffer, begin + length // _LANES * _LANES + left, chunk * _LANES)
            return ib.get()

    def compute(*operands: te.Tensor) -> list[te.Tensor]:
        shapes = [*[(count,)] * (1 + slots), (_chunks(count) * _LANES,)]
        types = [*[dtype] * (1 + slots), bits]
        return te.extern(shapes, list(operands), body, name="update", dtype=types)

    flat = [builder.emit(op.reshape(tensor, (count,))) for tensor in tensors]
    flat += [builder.emit(op.reshape(number, (1,))) for number in numbers]
    made = builder.emit(builder.call_te(compute, *flat, primfunc_name_hint="update"))
    *several, largest = (builder.emit(relax.TupleGetItem(made, at)) for at in range(2 + slots))
    return relax.Tuple([*(builder.emit(op.reshape(value, shape)) for value in several), largest])


UPDATE = Operator("update", "an optimiser's change of one weight", _type, _legalize)
