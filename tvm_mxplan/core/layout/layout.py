"""Physical layouts as values: tags, their permutations and the bytes they take.

A tag lists dimensions from the outermost to the innermost.  Letters name logical dimensions (``a`` the
first); an upper-case letter says that the dimension is blocked, and its inner blocks follow at the end as
number and letter, e.g. ``aBcd16b``: 16 channels innermost, the channel count rounded up to 16.  A single
number, of rank 0, has the empty tag.
"""

from __future__ import annotations

import functools
import math
import re
import string
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

_TAG = re.compile(r"^([a-zA-Z]*)((?:\d+[a-z])*)$")
_BLOCK = re.compile(r"(\d+)([a-z])")


@dataclass(frozen=True)
class Layout:
    """A parsed tag.

    Attributes
    ----------
    order : logical dimensions from the outermost to the innermost.
    blocks : (block size, logical dimension), outermost first.
    """

    order: tuple[int, ...]
    blocks: tuple[tuple[int, int], ...]

    @property
    def tag(self) -> str:
        blocked = {dim for _, dim in self.blocks}
        letters = [
            string.ascii_uppercase[dim] if dim in blocked else string.ascii_lowercase[dim]
            for dim in self.order
        ]
        return "".join(letters) + "".join(f"{size}{string.ascii_lowercase[dim]}" for size, dim in self.blocks)

    def tails(self, shape: Sequence[Any]) -> dict[int, int]:
        """Returns the elements added to each dimension that blocks do not divide."""
        multiples: dict[int, int] = {}
        for size, dim in self.blocks:
            multiples[dim] = multiples.get(dim, 1) * size
        return {dim: -shape[dim] % multiple for dim, multiple in multiples.items() if shape[dim] % multiple}

    def padded_shape(self, shape: Sequence[Any]) -> tuple[Any, ...]:
        """``shape`` with every blocked dimension rounded up to its blocks."""
        tails = self.tails(shape)
        return tuple(extent + tails[dim] if dim in tails else extent for dim, extent in enumerate(shape))

    def elements(self, shape: Sequence[int]) -> int:
        """Number of elements stored for ``shape``, padding included."""
        return math.prod(self.padded_shape(shape))

    def strides(self, shape: Sequence[int]) -> tuple[int, ...]:
        """For each logical dimension the elements from one index (or block of indices) to the next."""
        outer = self._outer(shape)
        result = [0] * len(shape)
        step = math.prod(size for size, _ in self.blocks)
        for dim in reversed(self.order):
            result[dim] = step
            step *= outer[dim]
        return tuple(result)

    def pads(self, shape: Sequence[int]) -> bool:
        """True if storing ``shape`` takes more elements than it has."""
        return bool(self.tails(shape))

    def physical_shape(self, shape: Sequence[Any]) -> tuple[Any, ...]:
        """The stored order read as dimensions: (1, 17, 8, 8) in aBcd16b is (1, 2, 8, 8, 16).

        Dimensions that are not blocked may be expressions of any kind.
        """
        outer = self._outer(shape)
        return (*(outer[dim] for dim in self.order), *(size for size, _ in self.blocks))

    def split_shape(self, shape: Sequence[Any]) -> tuple[Any, ...]:
        """The padded shape with every blocked dimension split where it stands, into outer part and blocks.

        (1, 17, 8, 8) in aBcd16b is (1, 2, 16, 8, 8), stored in the order (0, 1, 3, 4, 2) of these.
        """
        extents = dict(zip(self._axes(), self.physical_shape(shape), strict=True))
        return tuple(extents[axis] for axis in sorted(extents))

    def stored_order(self) -> tuple[int, ...]:
        """Axes of the split shape from the outermost to the innermost: what ``transpose`` takes to store."""
        split = sorted(self._axes())
        return tuple(split.index(axis) for axis in self._axes())

    def split_order(self) -> tuple[int, ...]:
        """The inverse: axes of the physical shape in the order of the split one."""
        stored = self._axes()
        return tuple(stored.index(axis) for axis in sorted(stored))

    def _axes(self) -> list[tuple[int, int]]:
        """Returns the physical axes: (dimension, 0) counts its blocks, (dimension, k) is its k-th block."""
        axes = [(dim, 0) for dim in self.order]
        for at, (_, dim) in enumerate(self.blocks):
            axes.append((dim, 1 + sum(other == dim for _, other in self.blocks[:at])))
        return axes

    def _outer(self, shape: Sequence[Any]) -> list[Any]:
        """Number of blocks along each logical dimension."""
        outer = list(shape)
        for size, dim in self.blocks:
            outer[dim] = -(-outer[dim] // size)
        return outer


@functools.lru_cache(maxsize=1024)
def parse_layout(tag: str) -> Layout:
    """Parse a tag; ValueError if it names a dimension twice, misses one, or blocks a lower-case one."""
    match = _TAG.match(tag)
    if not match:
        raise ValueError(f"layout {tag!r}: expected letters and blocks such as abcd, acdb or aBcd16b")
    letters, tail = match.groups()
    order = tuple(string.ascii_lowercase.index(letter.lower()) for letter in letters)
    blocks = tuple((int(size), string.ascii_lowercase.index(dim)) for size, dim in _BLOCK.findall(tail))
    upper = {string.ascii_lowercase.index(letter.lower()) for letter in letters if letter.isupper()}
    if sorted(order) != list(range(len(order))) or upper != {dim for _, dim in blocks}:
        raise ValueError(f"layout {tag!r}: every dimension once, and blocks for the upper-case ones only")
    return Layout(order, blocks)


def plain_layout(rank: int) -> str:
    """Row-major: ``abcd`` for rank 4, nothing for rank 0."""
    return string.ascii_lowercase[:rank]


def channels_last(rank: int) -> str:
    """Channels (dimension 1) innermost: ``acdb`` for rank 4; plain where there are no channels."""
    letters = string.ascii_lowercase[:rank]
    return letters[:1] + letters[2:] + letters[1:2]


def channels_blocked(rank: int, block: int) -> str:
    """Channels (dimension 1) blocked: ``aBcd16b`` for rank 4 and block 16; plain where there are none."""
    letters = string.ascii_lowercase[:rank]
    if rank < 2:
        return letters
    return f"{letters[0]}{letters[1].upper()}{letters[2:]}{block}b"


def permute_layout(tag: str, axes: Sequence[int]) -> str:
    """Tag of the same bytes after ``transpose(axes)``: new dimension i is old dimension axes[i]."""
    new_of_old = {old: new for new, old in enumerate(axes)}
    layout = parse_layout(tag)
    return Layout(
        tuple(new_of_old[dim] for dim in layout.order),
        tuple((size, new_of_old[dim]) for size, dim in layout.blocks),
    ).tag


def dense_box(tag: str, shape: Sequence[int], begin: Sequence[int], extents: Sequence[int]) -> int | None:
    """Returns the offset of a box of a tensor, in elements, if it is stored as one piece; None if it is not.

    Such a box is a tensor in the same layout itself: blocked dimensions begin with a block, and what is
    padded of their last one is padding of the whole.

        8 channels of 32, one image     abcd: one piece     acdb: one piece for each pixel
    """
    layout = parse_layout(tag)
    blocks = layout.padded_shape([1] * len(shape))
    stride = math.prod(blocks)
    offset, partial = 0, False
    for dim in reversed(layout.order):
        size, low, high = blocks[dim], begin[dim], begin[dim] + extents[dim]
        if low % size or (high % size and high != shape[dim]):
            return None
        if partial and extents[dim] > size:
            return None
        partial = partial or extents[dim] != shape[dim]
        offset += low // size * stride
        stride *= -(-shape[dim] // size)
    return offset


def same_bytes(a: str, b: str, shape: Sequence[object]) -> bool:
    """True if both layouts store ``shape`` in the same order, for what dimensions of extent 1 allow."""
    if a == b:
        return True
    first, second = parse_layout(a), parse_layout(b)

    def significant(layout: Layout) -> list[tuple[int, int]] | None:
        """Dimensions with more than one element in storage order, blocks merged where that is exact."""
        sequence = [(dim, 0) for dim in layout.order if shape[dim] != 1]
        for size, dim in layout.blocks:
            extent = shape[dim]
            if not isinstance(extent, int) or extent % size:
                return None
            if sequence and sequence[-1][0] == dim:
                continue
            if extent != size:
                return None
            sequence = [item for item in sequence if item[0] != dim] + [(dim, 0)]
        return sequence

    left, right = significant(first), significant(second)
    return left is not None and left == right
