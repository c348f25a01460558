"""States dimensions of a tensor anew where they must be others, and checks when the model runs that they are.

    before   y: R.Tensor((1, min(seq, 64), 32))
    after    z: R.Tensor((1, seq, 32)) = R.call_tir(same_shape, (y,))       asserts min(seq, 64) == seq

``match_cast`` does not serve: TVM's passes take one between two known shapes for a proof that they are equal,
replace one name by the other everywhere, and drop the check, or follow ``seq = min(seq, 64)`` without end.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tvm import relax, te, tirx
from tvm.script.ir_builder import IRBuilder
from tvm.script.ir_builder import tirx as T

from .dims import Dim, expression, same
from .node import Emitter
from .values import Value, shape_of

_OPAQUE = 8
"""Among TVM's kinds of kernels: one that is not fused with others."""


def restated(emitter: Emitter, value: Value, dims: Sequence[Dim], called: str) -> relax.Var:
    """The tensor with these dimensions.

    Parameters
    ----------
    called : the node that demands them, as messages name it.
    """
    tensor = emitter.tensor(value)
    known = shape_of(tensor)
    if known is None:
        return emitter.with_shape(tensor, dims)
    equal = [(old, new) for old, new in zip(known, dims, strict=True) if not same(old, new)]
    words = [
        f"{called}: expected equal dimensions {_text(old)} and {_text(new)}, got others; "
        "mend the inputs' shapes, or state the dimension that broadcasts as 1 when compiling"
        for old, new in equal
    ]
    builder = emitter.builder
    kernel = builder.call_te(
        _same_shape,
        tensor,
        [expression(dim) for dim in dims],
        [(expression(old), expression(new)) for old, new in equal],
        words,
        primfunc_name_hint="same_shape",
    )
    function = builder.get()[kernel.args[0]].with_attr("op_pattern", _OPAQUE)
    builder.update_func(kernel.args[0], function)
    return emitter.emit(kernel)


def _text(dim: Dim) -> str:
    return str(dim).replace("T.int64(", "(").replace("T.", "")


def _same_shape(
    data: te.Tensor,
    shape: Sequence[tirx.Expr],
    equal: Sequence[tuple[tirx.Expr, tirx.Expr]],
    words: Sequence[str],
) -> te.Tensor:
    """A copy of the data in the new shape, behind assertions that dimensions are equal."""

    def body(ins: Any, outs: Any) -> tirx.Stmt:
        with IRBuilder() as builder, T.serial(0, 1):  # a frame that holds more than one statement
            for (old, new), said in zip(equal, words, strict=True):
                with T.Assert(old == new, said, "tvm_mxplan.InvalidInputError"):
                    pass
            with T.grid(*shape) as at:
                places = [at] if isinstance(at, tirx.Var) else list(at)
                T.buffer_store(outs[0], tirx.BufferLoad(ins[0], places), places)
        return builder.get()

    return te.extern([shape], [data], body, dtype=[data.dtype], name="same_shape")
