"""Checks when the model runs what a node demands of dimensions; states them anew where they must be others.

    before   y: R.Tensor((1, min(seq, 64), 32))
    after    z: R.Tensor((1, seq, 32)) = R.call_tir(same_shape, (y,))       asserts min(seq, 64) == seq

``match_cast`` does not serve: TVM's passes take one between two known shapes for a proof that they are equal,
replace one name by the other everywhere, and drop the check, or follow ``seq = min(seq, 64)`` without end.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tvm import relax, te, tirx
from tvm.script.ir_builder import IRBuilder
from tvm.script.ir_builder import tirx as T

from ..node import Emitter
from ..values import Value, shape_of
from .dims import Dim, expression, same

_OPAQUE = 8
"""Among TVM's kinds of kernels: one that is not fused with others."""


@dataclass(frozen=True)
class Demand:
    """A condition on dimensions, and the error where it does not hold.

    Attributes
    ----------
    error : the name of one of the package's classes.
    """

    holds: tirx.Expr
    words: str
    error: str = "InvalidInputError"


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
    demands = [
        Demand(
            tirx.EQ(expression(old), expression(new)),
            f"{called}: expected equal dimensions {text_of(old)} and {text_of(new)}, got others; "
            "mend the inputs' shapes, or state the dimension that broadcasts as 1 when compiling",
        )
        for old, new in equal
    ]
    return _behind(emitter, tensor, dims, demands, "same_shape")


def demanded(emitter: Emitter, value: Value, demand: Demand) -> relax.Var:
    """The tensor behind a check: what reads it runs only where the demand is met."""
    tensor = emitter.tensor(value)
    return _behind(emitter, tensor, emitter.shape(tensor), [demand], "checked")


def text_of(dim: Dim) -> str:
    """A dimension as messages show it."""
    return str(dim).replace("T.int64(", "(").replace("T.", "")


def _behind(
    emitter: Emitter, tensor: relax.Expr, dims: Sequence[Dim], demands: Sequence[Demand], name: str
) -> relax.Var:
    builder = emitter.builder
    kernel = builder.call_te(
        _copy,
        tensor,
        [expression(dim) for dim in dims],
        [demand.holds for demand in demands],
        [(demand.error, demand.words) for demand in demands],
        primfunc_name_hint=name,
    )
    return emit_unfused(emitter, kernel)


def emit_unfused(emitter: Emitter, kernel: relax.Call) -> relax.Var:
    """Emits a kernel that ``call_te`` has made; it is not fused with others."""
    builder = emitter.builder.root
    function = builder.get()[kernel.args[0]].with_attr("op_pattern", _OPAQUE)
    builder.update_func(kernel.args[0], function)
    return emitter.emit(kernel)


def _copy(
    data: te.Tensor,
    shape: Sequence[tirx.Expr],
    conditions: Sequence[tirx.Expr],
    errors: Sequence[tuple[str, str]],
) -> te.Tensor:
    """A copy of the data in the new shape, behind assertions."""

    def body(ins: Any, outs: Any) -> tirx.Stmt:
        with IRBuilder() as builder, T.serial(0, 1):  # a frame that holds more than one statement
            for condition, (error, words) in zip(conditions, errors, strict=True):
                with T.Assert(condition, words, f"tvm_mxplan.{error}"):
                    pass
            with T.grid(*(shape or [1])) as at:
                places = [at] if isinstance(at, tirx.Var) else list(at)
                places = places if shape else []
                T.buffer_store(outs[0], tirx.BufferLoad(ins[0], places), places)
        return builder.get()

    return te.extern([shape], [data], body, dtype=[data.dtype], name="checked")
