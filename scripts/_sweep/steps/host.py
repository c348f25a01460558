"""Steps of the host library, made of problems: ``lib=host`` and element types as ``dt=s32:f32``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import prod

import numpy as np

from tvm_mxplan.core.program import program as ir

from .subject import Data, Fields, Subject, Tensor, broadcast

_KINDS_OF: dict[str, Data] = {"float32": "fine", "float64": "fine", "bool": "truths"}
"""Numbers for what is read in a type; integers are drawn from few, so that equal ones meet."""

_READ = ("src", "src1", "part", "updates")
_INDICES = {"s32": "int32", "s64": "int64"}


def select(f: Fields) -> Subject:
    """second and third: how src1 and the condition are broadcast."""
    shape = f.dims()
    tensors = (
        Tensor("condition", broadcast(shape, f.text("third", "whole")), data="truths", dtype="bool"),
        Tensor("src", shape),
        Tensor("src1", broadcast(shape, f.text("second", "whole"))),
    )
    return Subject(ir.Select(), tensors, shape)


def compare(f: Fields) -> Subject:
    shape = f.dims()
    tensors = (Tensor("src", shape), Tensor("src1", broadcast(shape, f.text("second", "whole"))))
    return Subject(ir.Compare(f.text("alg", "less")), tensors, shape)


def cast(f: Fields) -> Subject:
    return Subject(ir.Cast(), (Tensor("src", f.dims()),), f.dims())


def function(algorithm: str, shape: tuple[int, ...]) -> Subject:
    """An elementwise function, most of which round nothing."""
    data: Data = "positive" if algorithm in ("sqrt", "rsqrt") else "numbers"
    exact = algorithm not in ("cos", "erf", "exp", "log", "rsqrt", "sin", "sqrt")
    return Subject(ir.Eltwise(algorithm, 0.0, 0.0), (Tensor("src", shape, data=data),), shape, exact=exact)


def gather(f: Fields) -> Subject | None:
    """at=3x2: the shape of the indices; of=s64: their type."""
    shape, axis = f.dims(), f.number("axis", 0)
    indices = tuple(int(size) for size in f.text("at", "4").split("x"))
    if axis >= len(shape):
        return None
    kind = _INDICES[f.text("of", "s64")]
    places = Tensor("indices", indices, data="indices", dtype=kind, below=shape[axis])
    dst = (*shape[:axis], *indices, *shape[axis + 1 :])
    return Subject(ir.Gather(axis), (Tensor("src", shape), places), dst)


def gather_nd(f: Fields) -> Subject | None:
    """at=3x2: places of a sample; depth: how many axes have indices; batch: axes in front of them."""
    shape, batch, depth = f.dims(), f.number("batch", 0), f.number("depth", 1)
    if batch + depth > len(shape):
        return None
    points = tuple(int(size) for size in f.text("at", "4").split("x"))
    below = min(shape[batch : batch + depth])
    where = (*shape[:batch], *points, depth)
    places = Tensor("indices", where, data="indices", dtype=_INDICES[f.text("of", "s64")], below=below)
    return Subject(ir.GatherNd(batch), (Tensor("src", shape), places), (*where[:-1], *shape[batch + depth :]))


def gather_places(f: Fields) -> Subject:
    """pad=2: times that ends are repeated, of axes from axis=1 on; mirrored=1: what is behind them."""
    shape, pad, first = f.dims(), f.number("pad"), f.number("axis", 0)
    axes = tuple(range(first, len(shape)))
    reads = []
    for axis in axes:
        around = np.arange(-pad, shape[axis] + pad)
        ends = np.abs(around) if f.number("mirrored", 0) else around
        reads += [np.clip(ends, 0, shape[axis] - 1)]
    dst = (*shape[:first], *map(len, reads))
    places = tuple(int(place) for one in reads for place in one)
    return Subject(ir.GatherPlaces(axes, places), (Tensor("src", shape),), dst)


def put(f: Fields) -> Subject | None:
    """take=2x3: the shape of the part; from=1x0 and by=1x2: its places."""
    shape = f.dims()
    part, begin, steps = (
        tuple(int(number) for number in f.text(name, "").split("x")) for name in ("take", "from", "by")
    )
    if any(b + (n - 1) * s >= size for b, n, s, size in zip(begin, part, steps, shape, strict=True)):
        return None
    return Subject(ir.Put(begin, steps), (Tensor("src", shape), Tensor("part", part)), shape)


def scatter(f: Fields) -> Subject | None:
    """at=3: how many updates; depth: how many axes have indices; of=s64: their type."""
    shape, depth, count = f.dims(), f.number("depth", 1), f.number("at", 4)
    if depth > len(shape):
        return None
    kind = _INDICES[f.text("of", "s64")]
    places = Tensor("indices", (count, depth), data="indices", dtype=kind, below=min(shape[:depth]))
    updates = Tensor("updates", (count, *shape[depth:]))
    return Subject(ir.Scatter(f.text("alg", "update")), (Tensor("src", shape), places, updates), shape)


def elements(f: Fields) -> Subject | None:
    """at=3x2: the shape of the indices; of=s64: their type; alg: of updates, a gather without it."""
    shape, axis = f.dims(), f.number("axis", 0)
    indices = tuple(int(size) for size in f.text("at", "4").split("x"))
    if len(indices) != len(shape) or axis >= len(shape):
        return None
    if any(some > whole for at, (some, whole) in enumerate(zip(indices, shape, strict=True)) if at != axis):
        return None
    kind = _INDICES[f.text("of", "s64")]
    places = Tensor("indices", indices, data="indices", dtype=kind, below=shape[axis])
    algorithm = f.text("alg", "")
    if not algorithm:
        return Subject(ir.GatherElements(axis), (Tensor("src", shape), places), indices)
    tensors = (Tensor("src", shape), places, Tensor("updates", indices))
    return Subject(ir.ScatterElements(axis, algorithm), tensors, shape)


def cumulative_sum(f: Fields) -> Subject | None:
    """exclusive=1: without the element itself; reverse=1: from the end on."""
    shape, axis = f.dims(), f.number("axis", 0)
    if axis >= len(shape):
        return None
    attrs = ir.CumulativeSum(axis, bool(f.number("exclusive")), bool(f.number("reverse")))
    return Subject(attrs, (Tensor("src", shape),), shape)


def extreme_index(f: Fields) -> Subject | None:
    """last=1: of equal elements the last."""
    shape, axis = f.dims(), f.number("axis", 0)
    if axis >= len(shape):
        return None
    attrs = ir.ExtremeIndex(f.text("alg", "max"), axis, bool(f.number("last", 0)))
    dst = tuple(1 if at == axis else extent for at, extent in enumerate(shape))
    return Subject(attrs, (Tensor("src", shape),), dst)


def ranking(f: Fields) -> Subject | None:
    """first: how many elements are asked for, all where there are fewer."""
    shape, axis = f.dims(), f.number("axis", 0)
    if axis >= len(shape):
        return None
    first = min(f.number("first"), shape[axis])
    dst = tuple(first if at == axis else extent for at, extent in enumerate(shape))
    places = (("order", dst, _INDICES[f.text("of", "s64")]),)
    return Subject(ir.Ranking(axis, bool(f.number("largest"))), (Tensor("src", shape),), dst, others=places)


def strided_slice(f: Fields) -> Subject | None:
    """begin and steps for each axis; the result goes to the end, or to the beginning."""
    shape = f.dims()
    begin = tuple(int(one) for one in f.text("begin", "").split("x"))
    steps = tuple(int(one) for one in f.text("steps", "").split("x"))
    if not len(shape) == len(begin) == len(steps) or any(b >= n for b, n in zip(begin, shape, strict=True)):
        return None
    dst = tuple(
        (n - 1 - b) // s + 1 if s > 0 else b // -s + 1 for n, b, s in zip(shape, begin, steps, strict=True)
    )
    return Subject(ir.StridedSlice(begin, steps), (Tensor("src", shape),), dst)


def resize(f: Fields) -> Subject:
    src = f.spatial("i", 1)
    dst = tuple(f.number(f"o{axis}", f.number("o" + f.axes[0])) for axis in f.axes)
    lead = (f.number("mb"), f.number("ic"))
    algorithm = f.text("alg", "nearest")
    attrs = ir.Resize(
        algorithm, f.text("places", "half_pixel"), f.text("round", "floor"), -0.5, bool(f.number("inside", 0))
    )
    return Subject(attrs, (Tensor("src", (*lead, *src)),), (*lead, *dst), exact=algorithm == "nearest")


def grid_sample(f: Fields) -> Subject:
    """places: what counts outside of the image; corners=1: axes begin and end in centres of pixels."""
    src, lead = f.spatial("i", 1), (f.number("mb"), f.number("ic"))
    points = tuple(f.number(f"o{axis}", f.number("o" + f.axes[0])) for axis in f.axes)
    algorithm = f.text("alg", "linear")
    attrs = ir.GridSample(algorithm, f.text("places", "zeros"), bool(f.number("corners", 0)))
    grid = Tensor("grid", (lead[0], len(src), *points), data="places")
    tensors = (Tensor("src", (*lead, *src)), grid)
    return Subject(attrs, tensors, (*lead, *points), exact=algorithm == "nearest")


def in_host(made: Subject, read: str, written: str) -> Subject:
    """The step run by the host library, on data of one type, with a result of that or another."""
    tensors = []
    for tensor in made.tensors:
        if tensor.role in _READ and tensor.data not in ("positive", "signs"):
            data = _KINDS_OF.get(read, "few")
            tensor = replace(tensor, data=data)
        tensors.append(replace(tensor, dtype=read) if tensor.role in _READ else tensor)
    written = "bool" if isinstance(made.attrs, ir.Compare) else written
    written = "int64" if isinstance(made.attrs, ir.ExtremeIndex) else written
    rounds = isinstance(made.attrs, ir.Eltwise) and not made.exact
    exact = made.exact and prod(made.dst) > 0 and not rounds
    return replace(made, tensors=tuple(tensors), written=written, added=written, exact=exact, library="host")


KINDS: dict[str, Callable[[Fields], Subject | None]] = {
    "select": select,
    "compare": compare,
    "cast": cast,
    "cumulative_sum": cumulative_sum,
    "extreme_index": extreme_index,
    "ranking": ranking,
    "gather": gather,
    "gather_elements": elements,
    "scatter_elements": elements,
    "gather_nd": gather_nd,
    "gather_places": gather_places,
    "put": put,
    "scatter": scatter,
    "strided_slice": strided_slice,
    "resize": resize,
    "grid_sample": grid_sample,
}
"""Those that are the host library's alone."""
