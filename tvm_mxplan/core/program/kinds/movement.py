"""The kinds of steps that move, pick, compare or convert elements."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Concat:
    """src, src, ... -> dst."""

    axis: int


@dataclass(frozen=True)
class Shuffle:
    """src -> dst; channels seen as [groups, C / groups] are transposed: ShuffleNet's channel shuffle."""

    axis: int
    groups: int


@dataclass(frozen=True)
class Resampling:
    """src -> dst, spatial axes scaled, half-pixel centres; ``algorithm``: nearest or linear."""

    algorithm: str


@dataclass(frozen=True)
class Pad:
    """src -> dst with constant ``value`` around; ``begin`` has one entry for each axis."""

    begin: tuple[int, ...]
    value: float


@dataclass(frozen=True)
class Slice:
    """src -> dst, a box of dst's shape that starts at ``begin``."""

    begin: tuple[int, ...]


@dataclass(frozen=True)
class StridedSlice:
    """src -> dst, every ``steps``-th element of each axis from ``begin`` on.

    Steps below 0 go backwards; one of 0 takes the same element again and again.
    """

    begin: tuple[int, ...]
    steps: tuple[int, ...]


@dataclass(frozen=True)
class Gather:
    """src [A..., extent, B...], indices [I...] of int32 or int64 -> dst [A..., I..., B...].

    Negative indices count from the end; what is out of bounds is an error.
    """

    axis: int


@dataclass(frozen=True)
class GatherElements:
    """src, indices of int32 or int64 -> dst of indices' shape: the element at each index along ``axis``.

    Along other axes it is the one at the index's own place.  Indices are as those of a gather.
    """

    axis: int


@dataclass(frozen=True)
class GatherNd:
    """src [B..., A..., C...], indices [B..., I..., axes of A] -> dst [B..., I..., C...]: entries of src.

    The first ``batch_axes`` of all are B.  Indices are as those of a gather.
    """

    batch_axes: int


@dataclass(frozen=True)
class GatherPlaces:
    """src -> dst: along each of ``axes``, which rise, the elements at ``places``, in any order and often.

    Places are those of the first of the axes, as many as dst has elements there, then those of the next.
    """

    axes: tuple[int, ...]
    places: tuple[int, ...]


@dataclass(frozen=True)
class Put:
    """src, part -> dst: src, but for every ``steps``-th element of each axis from ``begin`` on: part's.

    The result may stand in src's place.
    """

    begin: tuple[int, ...]
    steps: tuple[int, ...]


@dataclass(frozen=True)
class Scatter:
    """src [A..., B...], indices [I..., axes of A], updates [I..., B...] -> dst of src's shape.

    Indices are int32 or int64, negative ones count from the end, and what is out of bounds is an error.
    ``algorithm`` says what an update does to the entry at its indices: update takes its place, the last of
    several; add, min and max are of both.  The result may stand in src's place.
    """

    algorithm: str


@dataclass(frozen=True)
class ScatterElements:
    """src, indices, updates of their shape -> dst of src's: an update for each element that an index names.

    Elements are named as by ``GatherElements``, and updated as by ``Scatter``.
    """

    axis: int
    algorithm: str


@dataclass(frozen=True)
class ExtremeIndex:
    """src -> dst of int32 or int64: places along ``axis``, which is kept as 1, of its extreme elements.

    ``algorithm``: max or min; of equal elements the first is taken, with ``last`` the last.  One that is no
    number is larger and smaller than all that are.
    """

    algorithm: str
    axis: int
    last: bool


@dataclass(frozen=True)
class CumulativeSum:
    """src -> dst of its type: at each place along ``axis`` the sum of the elements up to there.

    ``exclusive``: without the element itself, so that the first sum is 0; ``reverse``: from the end on.
    """

    axis: int
    exclusive: bool
    reverse: bool


@dataclass(frozen=True)
class Ranking:
    """src -> dst, order? of int32 or int64: the first elements along ``axis``, sorted, and their places.

    There are as many as dst has: the largest ones, the largest first, or the smallest ones.  Equal ones stay
    in their order; what is no number is larger than all that are.
    """

    axis: int
    largest: bool


@dataclass(frozen=True)
class Select:
    """condition of bool, src, src1 (same rank, broadcast) -> dst: src where it holds, else src1."""


@dataclass(frozen=True)
class Compare:
    """src, src1 (same rank, broadcast) -> dst of bool.

    ``algorithm``: equal, not_equal, less, less_equal, greater, greater_equal.
    """

    algorithm: str


@dataclass(frozen=True)
class Cast:
    """src -> dst of another element type."""


@dataclass(frozen=True)
class Resize:
    """src -> dst, spatial axes of other extents.

    Attributes
    ----------
    algorithm : nearest, linear or cubic.
    coordinates : half_pixel, pytorch_half_pixel, align_corners, asymmetric or tf_half_pixel_for_nn: where a
        point of dst lies in src.
    rounding : of nearest: floor, ceil, round_prefer_floor, round_prefer_ceil, round_prefer_even.
    alpha : of cubic: the spline's coefficient.
    inside_only : of cubic: points outside of src count nothing, and the others for them.
    """

    algorithm: str
    coordinates: str
    rounding: str
    alpha: float
    inside_only: bool


@dataclass(frozen=True)
class GridSample:
    """src [N, C, ...], grid [N, axes, P...] -> dst [N, C, P...]: images or volumes read at points.

    A coordinate of -1 is the beginning of an axis and one of 1 its end, and so is -1 what is no number; the
    last axis has the first coordinate.

    Attributes
    ----------
    algorithm : nearest (half way to the even pixel), linear, or cubic, Keys's with a coefficient of -0.75.
    padding_mode : outside of src: zeros, border (the nearest pixel) or reflection (src mirrored at its ends).
    align_corners : an axis begins and ends in the centres of its first and last pixel, else at their edges.
    """

    algorithm: str
    padding_mode: str
    align_corners: bool


@dataclass(frozen=True)
class Reorder:
    """src -> dst of the same logical shape in another layout (or a plain copy)."""
