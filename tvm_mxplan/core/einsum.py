"""Equations of Einstein sums as products of matrices: which axes of two operands are what.

    bij,bjk->bik    batch b, rows i, summed j, columns k
    ijkl,bil->bijk  batch i, rows j k, summed l, columns b

Labels are letters, and of the axes behind an ellipsis their numbers from the end.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import combinations
from math import prod
from typing import TypeAlias

from .program.dims import Dim, Shape

Label: TypeAlias = str
Labels: TypeAlias = tuple[Label, ...]


@dataclass(frozen=True)
class Equation:
    """Labels of each operand's axes and of the result's, and the extents of all."""

    operands: tuple[Labels, ...]
    result: Labels
    extents: dict[Label, Dim]

    @property
    def text(self) -> str:
        """The equation written out, a letter for each label."""
        spare = iter(letter for letter in _LETTERS if letter not in self.extents)
        letters = {label: label if label in _LETTERS else next(spare) for label in self.extents}
        words = ["".join(letters[label] for label in labels) for labels in (*self.operands, self.result)]
        return f"{','.join(words[:-1])}->{words[-1]}"


_LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"


@dataclass(frozen=True)
class Pair:
    """One product of two operands: the labels that are of both and kept, of either alone, and summed over."""

    batch: Labels
    rows: Labels
    columns: Labels
    summed: Labels

    @property
    def result(self) -> Labels:
        return (*self.batch, *self.rows, *self.columns)


def parse(text: str, shapes: list[Shape]) -> Equation | None:
    """The equation; None where it takes a diagonal, broadcasts an axis of extent 1, or does not fit."""
    words, arrow, written = text.replace(" ", "").partition("->")
    terms = words.split(",")
    if len(terms) != len(shapes):
        return None
    operands = []
    for term, shape in zip(terms, shapes, strict=True):
        labels = _labels(term, len(shape))
        if labels is None or len(labels) != len(shape) or len(set(labels)) < len(labels):
            return None
        operands.append(labels)
    counts = Counter(label for labels in operands for label in labels)
    behind = sorted((label for label in counts if label not in _LETTERS), key=int, reverse=True)
    if arrow:
        if "..." in written:
            front, _, back = written.partition("...")
            result = (*front, *behind, *back)
        else:
            result = tuple(written)
    else:
        once = sorted(label for label, count in counts.items() if count == 1 and label in _LETTERS)
        result = (*behind, *once)
    extents: dict[Label, Dim] = {}
    for labels, shape in zip(operands, shapes, strict=True):
        for label, extent in zip(labels, shape, strict=True):
            if extents.setdefault(label, extent) != extent:
                return None
    if len(set(result)) < len(result) or not set(result) <= set(extents) or len(extents) > len(_LETTERS):
        return None
    return Equation(tuple(operands), result, extents)


def _labels(term: str, rank: int) -> Labels | None:
    front, dots, back = term.partition("...")
    if not all(letter in _LETTERS for letter in front + back):
        return None
    count = rank - len(front) - len(back)
    if count < 0 or (count and not dots):
        return None
    return (*front, *(str(at) for at in range(count, 0, -1)), *back)


def pair_of(first: Labels, second: Labels, kept: set[Label]) -> Pair:
    """The product of two operands, of which the labels ``kept`` are read later; all others are of both."""
    shared = [label for label in first if label in second]
    return Pair(
        tuple(label for label in shared if label in kept),
        tuple(label for label in first if label not in second),
        tuple(label for label in second if label not in first),
        tuple(label for label in shared if label not in kept),
    )


def next_pair(operands: list[Labels], result: Labels, extents: dict[Label, Dim]) -> tuple[int, int]:
    """The two operands to multiply first: those whose product is the least larger than they are."""

    def growth(pair: tuple[int, int]) -> int:
        first, second = (operands[at] for at in pair)
        others = {label for at, labels in enumerate(operands) if at not in pair for label in labels}
        made = pair_of(first, second, others | set(result)).result
        return _size(made, extents) - _size(first, extents) - _size(second, extents)

    return min(combinations(range(len(operands)), 2), key=growth)


def _size(labels: Labels, extents: dict[Label, Dim]) -> int:
    """Elements, where extents that are not known yet count as some."""
    return prod(extent if isinstance(extent := extents[label], int) else 16 for label in labels)
