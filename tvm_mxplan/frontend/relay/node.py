"""A call of Relay's with its operands in Relax, and what a converter may ask of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn, TypeAlias

import numpy as np
import tvm
from tvm import relax, tirx

from ...errors import InvalidInputError, UnsupportedError
from ..constants import constant
from .attributes import REQUIRED, fields_of

Dim: TypeAlias = int | tvm.ir.Expr
Value: TypeAlias = relax.Expr | list
"""A tensor, or a list of values for a tuple."""
_HANDLES = ("", "void", "handle")
"""The names of an element type that is not stated."""


@dataclass(frozen=True)
class Node:
    """One call.

    Attributes
    ----------
    called : how messages name it: the file, the place in there, the operator.
    attributes : those that the file states; :meth:`attribute` knows the others.
    """

    operator: str
    called: str
    args: Sequence[Value]
    attributes: Mapping[str, Any]
    builder: relax.BlockBuilder

    def emit(self, expr: relax.Expr) -> relax.Var:
        return self.builder.emit(expr)

    def tensor(self, index: int) -> relax.Expr:
        """The operand at an index."""
        if index >= len(self.args):
            self.wrong(f"expected {index + 1} operands or more, got {len(self.args)}")
        value = self.args[index]
        if isinstance(value, list):
            self.wrong(f"expected a tensor as operand {index}, got a tuple")
        return value

    def tensors(self, index: int) -> list[relax.Expr]:
        """The tensors of the tuple at an index."""
        value = self.args[index] if index < len(self.args) else None
        if not isinstance(value, list) or any(isinstance(one, list) for one in value):
            self.wrong(f"expected a tuple of tensors as operand {index}")
        return value

    def attribute(self, name: str) -> Any:
        """Returns the value that the file states, or the default where it states none."""
        if name in self.attributes:
            return self.attributes[name]
        default = fields_of(self.operator)[name].default
        if default is REQUIRED:
            self.wrong(f"attribute {name} is missing; expected one")
        return default

    def integer(self, name: str) -> int:
        value = self.attribute(name)
        if isinstance(value, bool) or not isinstance(value, int):
            self.wrong(f"expected a number as {name}, got {value!r}")
        return value

    def number(self, name: str) -> float:
        value = self.attribute(name)
        if isinstance(value, bool) or not isinstance(value, int | float):
            self.wrong(f"expected a number as {name}, got {value!r}")
        return float(value)

    def flag(self, name: str) -> bool:
        value = self.attribute(name)
        if not isinstance(value, bool | int):
            self.wrong(f"expected True or False as {name}, got {value!r}")
        return bool(value)

    def text(self, name: str) -> str:
        value = self.attribute(name)
        if not isinstance(value, str):
            self.wrong(f"expected a text as {name}, got {value!r}")
        return value

    def dtype(self, name: str, otherwise: str) -> str:
        value = self.text(name)
        return otherwise if value in _HANDLES else value

    def ints(self, name: str) -> list[int]:
        """A list of numbers; one number is a list of it."""
        value = self.attribute(name)
        listed = value if isinstance(value, list) else [value]
        if any(isinstance(one, bool) or not isinstance(one, int) for one in listed):
            self.wrong(f"expected numbers as {name}, got {value!r}")
        return listed

    def maybe_ints(self, name: str) -> list[int] | None:
        return None if self.attribute(name) is None else self.ints(name)

    def each(self, name: str, count: int) -> list[int]:
        """One number for each of ``count`` axes; a single one is for all."""
        numbers = self.ints(name)
        if len(numbers) == 1:
            numbers = numbers * count
        if len(numbers) != count:
            self.wrong(f"expected {count} numbers as {name}, got {numbers}")
        return numbers

    def shape(self, value: relax.Expr) -> list[Dim]:
        """The extents of a tensor."""
        shape = value.ty.shape if isinstance(value.ty, relax.TensorType) else None
        if not isinstance(shape, relax.ShapeExpr):
            self.unsupported(
                "an operand's shape depends on its numbers; expected one that follows from the inputs"
            )
        return [int(dim) if isinstance(dim, tirx.IntImm) else dim for dim in shape.values]

    def fixed(self, value: relax.Expr) -> list[int]:
        """The extents of a tensor, all numbers."""
        shape = self.shape(value)
        if not all(isinstance(dim, int) for dim in shape):
            self.unsupported(
                f"the shape {shape} is not known; expected numbers: give the inputs fixed shapes"
            )
        return [int(dim) for dim in shape]

    def rank(self, value: relax.Expr) -> int:
        return len(self.shape(value))

    def axis(self, name: str, rank: int) -> int:
        """An axis counted from the front."""
        return self.from_front(self.integer(name), rank, name)

    def from_front(self, axis: int, rank: int, name: str = "axis") -> int:
        if not -rank <= axis < rank:
            self.wrong(f"{name} = {axis}; expected {-rank} to {rank - 1}")
        return axis % rank

    def known(self, value: Value) -> np.ndarray | None:
        """The numbers of a constant; None for what is computed."""
        return value.value.numpy() if isinstance(value, tvm.ir.GenericConst) else None

    def like(self, number: float, value: relax.Expr) -> relax.Expr:
        """A scalar of the element type of another tensor."""
        return constant(np.asarray(number, dtype_of(value)))

    def wrong(self, message: str) -> NoReturn:
        raise InvalidInputError(f"{self.called}: {message}")

    def unsupported(self, message: str) -> NoReturn:
        raise UnsupportedError(f"{self.called}: {message}")


def dtype_of(value: relax.Expr) -> str:
    return str(value.ty.dtype)
