"""Checks when the model runs what a node demands of dimensions; states them anew where they must be others.

    before   y: R.Tensor((1, min(seq, 64), 32))
    after    z: R.Tensor((1, seq, 32)) = R.call_tir(same_shape, (y,))       asserts min(seq, 64) == seq

``match_cast`` does not serve: TVM's passes take one between two known shapes for a proof that they are equal,
replace one name by the other everywhere, and drop the check, or follow ``seq = min(seq, 64)`` without end.

A check of what no kernel relies on for the memory that it writes stands aside, and costs no copy:

    c: R.Tensor((1,)) = R.call_tir(met, (n,))               asserts n % 2 == 0, and gives 0
    s: R.Shape([0]) = R.match_cast(R.tensor_to_shape(c), R.Shape([0]))

TVM keeps that ``match_cast``, whose operand it does not know, and the order of a block that has one: checks
of inputs' sizes move to the front (``checks_first.py``).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tvm import relax, te, tirx
from tvm.script.ir_builder import IRBuilder
from tvm.script.ir_builder import tirx as T

from ....errors import InvalidInputError
from ..values import Value, shape_of
from .checks_first import ASIDE
from .dims import Dim, divided, expression, product, same, simplified

if TYPE_CHECKING:
    from ..node import Emitter

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


def met_aside(emitter: Emitter, *demands: Demand) -> None:
    """Emits a check that no tensor stands behind: the call fails where a demand is not met."""
    if not demands:
        return
    kernel = emitter.builder.call_te(
        _nothing,
        [demand.holds for demand in demands],
        [(demand.error, demand.words) for demand in demands],
        primfunc_name_hint="met",
    )
    root, gvar = emitter.builder.root, kernel.args[0]
    root.update_func(gvar, root.get()[gvar].with_attr(ASIDE, True))
    shape = emitter.emit(relax.op.tensor_to_shape(emit_unfused(emitter, kernel)))
    emitter.builder.match_cast(shape, relax.ShapeType([expression(0)]))


def within(emitter: Emitter, numbers: relax.Expr, low: Dim, high: Dim, words: str) -> relax.Var:
    """A row of integers behind a check that each is in bounds, both of which it may be."""
    ends = [expression(low), expression(high)]
    kernel = emitter.builder.call_te(_bounded, numbers, *ends, words, primfunc_name_hint="within")
    return emit_unfused(emitter, kernel)


def multiple_of(dim: Dim, number: int, words: str) -> list[Demand]:
    """The demand that a dimension is a multiple of a number; none where it is known to be.

    Raises
    ------
    InvalidInputError : it is known to be none.
    """
    rest = simplified(tirx.floormod(expression(dim), expression(number)))
    if same(rest, 0) or same(product([divided(dim, number), number]), dim):
        return []
    if isinstance(rest, int):
        raise InvalidInputError(words)
    return [Demand(tirx.EQ(expression(rest), expression(0)), words)]


def text_of(dim: Dim) -> str:
    """A dimension as messages show it."""
    return re.sub(r"T\.int64\((\d+)\)", r"\1", str(dim)).replace("T.int64(", "(").replace("T.", "")


def row_of(dims: Sequence[Dim]) -> str:
    """A shape as messages show it."""
    return f"[{', '.join(map(text_of, dims))}]"


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
            _assert(conditions, errors)
            with T.grid(*(shape or [1])) as at:
                places = [at] if isinstance(at, tirx.Var) else list(at)
                places = places if shape else []
                T.buffer_store(outs[0], tirx.BufferLoad(ins[0], places), places)
        return builder.get()

    return te.extern([shape], [data], body, dtype=[data.dtype], name="checked")


def _nothing(conditions: Sequence[tirx.Expr], errors: Sequence[tuple[str, str]]) -> te.Tensor:
    """The number 0, behind assertions."""

    def body(_ins: Any, outs: Any) -> tirx.Stmt:
        with IRBuilder() as builder, T.serial(0, 1):
            _assert(conditions, errors)
            T.buffer_store(outs[0], tirx.const(0, "int64"), [0])
        return builder.get()

    return te.extern([[1]], [], body, dtype=["int64"], name="met")


def _bounded(numbers: te.Tensor, low: tirx.Expr, high: tirx.Expr, words: str) -> te.Tensor:
    """A copy of the numbers, behind an assertion for each."""

    def body(ins: Any, outs: Any) -> tirx.Stmt:
        source, result = T.buffer_proxy(ins[0]), T.buffer_proxy(outs[0])
        with IRBuilder() as builder, T.serial(0, numbers.shape[0]) as at:
            number = tirx.Cast("int64", source[at])
            _assert([tirx.And(number >= low, number <= high)], [("InvalidInputError", words)])
            result[at] = source[at]
        return builder.get()

    return te.extern([numbers.shape], [numbers], body, dtype=[numbers.dtype], name="within")


def _assert(conditions: Sequence[tirx.Expr], errors: Sequence[tuple[str, str]]) -> None:
    for condition, (error, words) in zip(conditions, errors, strict=True):
        with T.Assert(condition, words, f"tvm_mxplan.{error}"):
            pass
