"""A step to sweep, and the numbers of the problem that it is made of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from typing import Literal

from tvm_mxplan.core.program import program as ir

from ..grammar import Number, Problem

Data = Literal[
    "numbers",  # small integers
    "weights",  # those scaled to keep sums small
    "positive",
    "signs",  # ones and minus ones, twos and halves
    "fine",  # sixteenths
    "places",  # from -4/3 to 4/3
    "integers",  # of 8 bits, from end to end
    "integer_weights",  # those with which sums stay exact
    "scale",  # powers of two
    "weights_scale",
    "zero_uint8",  # zero points of a type
    "zero_int8",
    "few",  # integers that are often equal
    "truths",
    "words",  # integers of 32 bits, any
    "indices",  # below ``below``, or as far from the end
]


@dataclass(frozen=True)
class Tensor:
    """An operand; ``layout`` is '' for the plain one."""

    role: str
    shape: tuple[int, ...]
    constant: bool = False
    data: Data = "numbers"
    layout: str = ""
    dtype: str = "float32"
    below: int = 0


@dataclass(frozen=True)
class Subject:
    """A step without post-ops.

    Attributes
    ----------
    depth : number of products in a sum, for which weights are scaled.
    exact : its result is a sum or a choice of numbers, and has no rounding with ours.
    channels : axis of the result along which a part of it can be worked out alone; -1 for none.
    layouts : of src and dst, where the problem asks for a pair.
    written, added : element types of the result, and of a tensor that a binary behind the step reads.
    others : results beside dst, by role: shape and element type.
    library : that runs it, '' for oneDNN.
    """

    attrs: ir.Attributes
    tensors: tuple[Tensor, ...]
    dst: tuple[int, ...]
    depth: int = 1
    exact: bool = True
    channels: int = -1
    layouts: tuple[str, str] | None = None
    written: str = "float32"
    added: str = "float32"
    others: tuple[tuple[str, tuple[int, ...], str], ...] = ()
    library: str = ""

    @property
    def is_float(self) -> bool:
        """True if all of it is float32."""
        types = {self.written, *(one.dtype for one in self.tensors), *(dtype for _, _, dtype in self.others)}
        return types == {"float32"}

    @property
    def work(self) -> int:
        """Multiplications, or elements where there are none."""
        return prod(self.dst) * self.depth + sum(prod(tensor.shape) for tensor in self.tensors)

    @property
    def elements(self) -> int:
        return prod(self.dst) + sum(prod(tensor.shape) for tensor in self.tensors)


class Fields:
    """The numbers of a problem by name, with what is missing by default."""

    def __init__(self, problem: Problem) -> None:
        self._fields: Mapping[str, Number] = dict(problem.fields)

    def number(self, name: str, default: int = 1) -> int:
        return int(self._fields.get(name, default))

    def text(self, name: str, default: str) -> str:
        return str(self._fields.get(name, default))

    @property
    def axes(self) -> str:
        """The letters of the spatial axes, outermost first."""
        if "id" in self._fields:
            return "dhw"
        return "hw" if "ih" in self._fields else "w"

    def spatial(self, letter: str, default: int) -> tuple[int, ...]:
        """One number for each axis: an axis that has none takes that of the axis before it."""
        numbers, last = [], default
        for axis in self.axes:
            last = self.number(letter + axis, last)
            numbers.append(last)
        return tuple(numbers)

    def padding(self) -> tuple[int, ...]:
        begin = self.spatial("p", 0)
        end = tuple(self.number(f"r{axis}", front) for axis, front in zip(self.axes, begin, strict=True))
        return (*begin, *end)

    def dims(self, default: str = "4x5") -> tuple[int, ...]:
        """``dims=2x3x4``."""
        return tuple(int(size) for size in self.text("dims", default).split("x"))


def broadcast(shape: tuple[int, ...], how: str) -> tuple[int, ...]:
    """``shape`` with ones where ``how``, a word of the lists, does not keep an axis."""
    rank = len(shape)
    kept = {
        "whole": set(range(rank)),
        "number": set(),
        "channel": {1},
        "last": {rank - 1},
        "gate": {0, 1},
        "row": {0, rank - 1},
        "tail": set(range(1, rank)),
    }[how]
    return tuple(size if axis in kept else 1 for axis, size in enumerate(shape))
