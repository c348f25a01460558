"""The allocation problem as plain data: rigid groups of rectangles to be laid in an arena.

A rectangle is a piece of memory over its life: bytes ``[offset, offset + nbytes)`` from the base of
its item, during steps ``[birth, death)``.  Both intervals are half-open.  The rectangles of one item
move together, so a view, a zero-copy concatenation or an in-place chain is simply one item::

    address                                         a concatenation of two parts: one item
      180 +       +-----------+                     Rectangle(1, 4, 0, 100)     the first part
          |       |  part 2   |                     Rectangle(2, 5, 100, 80)    the second part
      100 +   +---+-----------+                     Rectangle(3, 5, 0, 180)     the whole
          |   |  part 1   |   |  <- the whole
        0 +---+---+---+---+---+---> step
          0   1   2   3   4   5

Rectangles of one item may overlap each other in time and in address: those are aliases.  Rectangles
of different items in one scope never may.  Sizes are taken as they are; the alignment of an item
restricts its base alone.
"""

from __future__ import annotations

from dataclasses import dataclass

INT64_MAX = 2**63 - 1


class ProblemError(ValueError):
    """The problem is malformed; the message names the item and what was expected."""


@dataclass(frozen=True, slots=True)
class Rectangle:
    """Bytes ``[offset, offset + nbytes)`` of an item, alive during ``[birth, death)``.

    Parameters
    ----------
    birth, death : int
        Half-open life in steps, ``0 <= birth < death``.
    offset : int
        First byte, relative to the base of the item, not negative.
    nbytes : int
        Bytes occupied, not negative; nothing is rounded.
    """

    birth: int
    death: int
    offset: int
    nbytes: int

    @property
    def end(self) -> int:
        """First byte behind the rectangle, relative to the base of the item."""
        return self.offset + self.nbytes

    def problems(self) -> list[str]:
        """Lists the errors in the numbers; empty if there are none."""
        found = [
            f"{name} is {value}, expected 0 or more"
            for name, value in (("birth", self.birth), ("offset", self.offset), ("nbytes", self.nbytes))
            if value < 0
        ]
        if self.death <= self.birth:
            found.append(f"death {self.death} is not after birth {self.birth}")
        if max(self.death, self.end) > INT64_MAX:
            found.append("a number does not fit into 64 bits")
        return found


@dataclass(frozen=True, slots=True)
class Item:
    """A rigid group: rectangles that share one base offset.

    Parameters
    ----------
    name : str
        For messages and tables; the solver never looks at it.
    rectangles : tuple of Rectangle
        One or more.
    alignment : int
        The base offset is a multiple of it.
    scope : str
        The memory the item lives in.  Scopes are independent arenas.
    """

    name: str
    rectangles: tuple[Rectangle, ...]
    alignment: int = 64
    scope: str = "global"

    @property
    def extent(self) -> int:
        """Bytes from the base to the highest end."""
        return max(rectangle.end for rectangle in self.rectangles)

    @property
    def birth(self) -> int:
        """First step at which some rectangle is alive."""
        return min(rectangle.birth for rectangle in self.rectangles)

    @property
    def death(self) -> int:
        """First step after which no rectangle is alive."""
        return max(rectangle.death for rectangle in self.rectangles)


@dataclass(frozen=True, slots=True)
class Problem:
    """Items to be laid into arenas, one arena for each scope.

    Parameters
    ----------
    items : tuple of Item
        In any order; a plan answers in the same order.
    capacity : int, optional
        Bytes of each arena.  A plan that needs more is still returned, and does not fit.

    Raises
    ------
    ProblemError
        For numbers that make no sense, or that could overflow 64 bits when stacked.
    """

    items: tuple[Item, ...]
    capacity: int | None = None

    def __post_init__(self) -> None:
        stacked: dict[str, int] = {}
        for item in self.items:
            if not item.rectangles:
                raise ProblemError(f"item {item.name!r} has no rectangles, expected one or more")
            if item.alignment < 1:
                raise ProblemError(f"item {item.name!r}: alignment is {item.alignment}, expected 1 or more")
            for index, rectangle in enumerate(item.rectangles):
                for reason in rectangle.problems():
                    raise ProblemError(f"item {item.name!r}, rectangle {index}: {reason}")
            stacked[item.scope] = stacked.get(item.scope, 0) + item.extent + item.alignment
            if stacked[item.scope] > INT64_MAX:
                raise ProblemError(
                    f"item {item.name!r}: the items of scope {item.scope!r} up to this one, stacked, "
                    "do not fit into 64 bits"
                )
        if self.capacity is not None and self.capacity < 0:
            raise ProblemError(f"capacity is {self.capacity}, expected 0 or more")

    @property
    def scopes(self) -> tuple[str, ...]:
        """Names of the scopes, sorted."""
        return tuple(sorted({item.scope for item in self.items}))
