"""Translates each composite: one small function for each name in ``patterns.ROWS``."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from tvm import relax

from tvm_mxplan.byoc import movement
from tvm_mxplan.byoc.composite import Composite, product
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.core.program.dims import Dim
from tvm_mxplan.operators.put import place_of
from tvm_mxplan.passes.relax_types import dtype_of

from .checks import METHODS, SAMPLINGS, copies_of
from .patterns import BINARY, LOGICAL, REDUCTIONS, UNARY
from .places import places_of
from .slices import slice_of


def _operator(call: relax.Call) -> str:
    return str(call.op.name).removeprefix("relax.")


def _aligned(c: Composite, arg: relax.Expr) -> int:
    """An operand that is broadcast to the composite's result, with as many axes."""
    return c.builder.align(c.value(arg), len(c.shape))


def _where(c: Composite) -> int:
    condition, yes, no = (_aligned(c, arg) for arg in c.root.args)
    return c.emit("select", ir.Select(), ("condition", condition), ("src", yes), ("src1", no))


def _compare(c: Composite) -> int:
    left, right = (_aligned(c, arg) for arg in c.root.args)
    algorithm = _operator(c.root)
    algorithm = "not_equal" if algorithm == "logical_xor" else algorithm
    return c.emit("compare", ir.Compare(algorithm), ("src", left), ("src1", right))


def _logical(c: Composite) -> int:
    left, right = (_aligned(c, arg) for arg in c.root.args)
    return c.emit("binary", ir.Binary(LOGICAL[_operator(c.root)]), ("src", left), ("src1", right))


def _negation(c: Composite) -> int:
    src = c.value(c.root.args[0])
    false = c.builder.constant(np.zeros((1,) * len(c.shape), "bool"))
    return c.emit("compare", ir.Compare("equal"), ("src", src), ("src1", false))


def _isnan(c: Composite) -> int:
    """NaN alone is not equal to itself."""
    src = c.value(c.root.args[0])
    return c.emit("compare", ir.Compare("not_equal"), ("src", src), ("src1", src))


def _finite(c: Composite) -> int:
    """By the distance from zero, which of no number is not below infinity."""
    src = c.value(c.root.args[0])
    away = c.builder.step("eltwise", ir.Eltwise("abs", 0.0, 0.0), c.shape, [("src", src)])
    infinity = c.builder.constant(np.full((1,) * len(c.shape), np.inf, "float32"))
    algorithm = {"isfinite": "less", "isinf": "equal"}[_operator(c.root)]
    return c.emit("compare", ir.Compare(algorithm), ("src", away), ("src1", infinity))


def _cast(c: Composite) -> int:
    return c.emit("cast", ir.Cast(), ("src", c.value(c.root.args[0])))


def _take(c: Composite) -> int:
    data, indices = (c.value(arg) for arg in c.root.args)
    axis = c.root.attrs.axis
    shape = c.builder.values[data].shape
    if axis is None:
        data, axis = c.builder.reshape(data, (product(shape),)), 0
    attrs = ir.Gather(int(axis) % max(1, len(c.builder.values[data].shape)))
    return c.emit("gather", attrs, ("src", _plain(c, data)), ("indices", _plain(c, indices)))


def _places(c: Composite) -> int:
    takes = [c.root]
    while takes[-1].args[0] not in c.params:
        takes.append(c.definition(takes[-1].args[0]))
    attrs = places_of(takes)
    assert attrs is not None
    return c.emit("gather", attrs, ("src", c.value(takes[-1].args[0])))


def _put(c: Composite) -> int:
    src, part = (c.value(arg) for arg in c.root.args)
    begin, steps = zip(*(place_of(c.root, axis) for axis in range(len(c.shape))), strict=True)
    return c.emit("put", ir.Put(begin, steps), ("src", _plain(c, src)), ("part", part))


def _scatter(c: Composite) -> int:
    """Of whole entries, or of single elements along an axis."""
    roles = zip(("src", "indices", "updates"), c.root.args, strict=True)
    operands = [(role, _plain(c, c.value(arg))) for role, arg in roles]
    algorithm = str(c.root.attrs.reduction)
    single = _operator(c.root) == "scatter_elements"
    attrs = ir.ScatterElements(_axis(c), algorithm) if single else ir.Scatter(algorithm)
    return c.emit("scatter", attrs, *operands)


def _gather_elements(c: Composite) -> int:
    src, indices = (_plain(c, c.value(arg)) for arg in c.root.args)
    return c.emit("gather", ir.GatherElements(_axis(c)), ("src", src), ("indices", indices))


def _gather_nd(c: Composite) -> int:
    src, indices = (_plain(c, c.value(arg)) for arg in c.root.args)
    attrs = ir.GatherNd(int(c.root.attrs.batch_dims))
    return c.emit("gather", attrs, ("src", src), ("indices", indices))


def _axis(c: Composite) -> int:
    return int(c.root.attrs.axis) % len(c.shape)


def _plain(c: Composite, value: int) -> int:
    """The value in the plain layout: a transposed view is copied."""
    shape = c.builder.values[value].shape
    flat = c.builder.reshape(value, (product(shape),))
    return c.builder.reshape(flat, shape)


def _strided_slice(c: Composite) -> int:
    attrs = slice_of(c.root)
    assert attrs is not None
    return c.emit("slice", attrs, ("src", c.value(c.root.args[0])))


def _broadcast(c: Composite) -> int:
    """A slice that takes single elements of axes again and again."""
    src = _aligned(c, c.root.args[0])
    shape = c.builder.values[src].shape
    if shape == c.shape:
        return src
    steps = tuple(int(one == whole) for one, whole in zip(shape, c.shape, strict=True))
    return c.emit("slice", ir.StridedSlice((0,) * len(shape), steps), ("src", src))


def _repeated(c: Composite) -> int:
    """A slice that takes the one element of new axes again and again: in front of an axis, or behind it."""
    src, copies, in_front = c.value(c.root.args[0]), copies_of(c.root), _operator(c.root) == "tile"
    shape = c.builder.values[src].shape
    shape = (*[1] * (len(copies) - len(shape)), *shape) if in_front else shape
    if len(copies) < len(shape):
        shape = (product(shape),)
    seen: list[Dim] = []
    whole: list[Dim] = []
    steps: list[int] = []
    for dim, count in zip(shape, copies, strict=True):
        axis = [(dim, dim, 1)] if count == 1 else [(1, count, 0), (dim, dim, 1)]
        for of, to, step in axis if in_front else reversed(axis):
            seen.append(of)
            whole.append(to)
            steps.append(step)
    if 0 in steps:
        attrs = ir.StridedSlice((0,) * len(steps), tuple(steps))
        src = c.builder.step("slice", attrs, tuple(whole), [("src", c.builder.reshape(src, tuple(seen)))])
    return c.builder.reshape(src, c.shape)


def _reduction(c: Composite) -> int:
    src = c.value(c.root.args[0])
    shape = c.builder.values[src].shape
    axes = c.root.attrs.axis
    reduced = range(len(shape)) if axes is None else [int(axis) % len(shape) for axis in axes]
    kept = tuple(1 if axis in reduced else dim for axis, dim in enumerate(shape))
    if kept != shape:
        algorithm = REDUCTIONS[_operator(c.root)]
        src = c.builder.step("reduction", ir.Reduction(algorithm), kept, [("src", src)])
    return c.builder.reshape(src, c.shape)


def _cumulative_sum(c: Composite) -> int:
    reverse = _operator(c.root) == "flip"
    call = c.find("cumsum") if reverse else c.root
    src = c.only_param() if reverse else c.value(call.args[0])
    axis, dtype = call.attrs.axis, dtype_of(call)
    shape = c.builder.values[src].shape
    if axis is None or not shape:
        src, axis = c.builder.reshape(src, (product(shape),)), 0
    src = _plain(c, src)
    shape = c.builder.values[src].shape
    if c.builder.values[src].dtype != dtype:
        src = c.builder.step("cast", ir.Cast(), shape, [("src", src)], dtype)
    summed = ir.CumulativeSum(int(axis) % len(shape), bool(call.attrs.exclusive), reverse)
    return c.builder.reshape(c.builder.step("cumulative_sum", summed, shape, [("src", src)], dtype), c.shape)


def _flip(c: Composite) -> int:
    """A slice that goes along one axis backwards."""
    axis = int(c.root.attrs.axis) % len(c.shape)
    begin, steps = [0] * len(c.shape), [1] * len(c.shape)
    begin[axis], steps[axis] = int(c.shape[axis]) - 1, -1  # type: ignore[arg-type]
    attrs = ir.StridedSlice(tuple(begin), tuple(steps))
    return c.emit("slice", attrs, ("src", c.value(c.root.args[0])))


def _extreme_index(c: Composite) -> int:
    src, axis = c.value(c.root.args[0]), c.root.attrs.axis
    shape = c.builder.values[src].shape
    if axis is None or not shape:
        src, axis = c.builder.reshape(src, (product(shape),)), 0
    src = _plain(c, src)
    shape = c.builder.values[src].shape
    axis = int(axis) % len(shape)
    kept = (*shape[:axis], 1, *shape[axis + 1 :])
    attrs = ir.ExtremeIndex(_operator(c.root).removeprefix("arg"), axis, False)
    found = c.builder.step("extreme_index", attrs, kept, [("src", src)], dtype_of(c.root))
    return c.builder.reshape(found, c.shape)


def _top_k(c: Composite) -> int | tuple[int, ...]:
    attrs = c.root.attrs
    kind = str(attrs.ret_type)
    found = _ranked(c, int(attrs.axis), int(attrs.k), bool(attrs.largest), str(attrs.dtype))
    return found if kind == "both" else found[0 if kind == "values" else 1]


def _sort(c: Composite) -> int:
    attrs = c.root.attrs
    places = dtype_of(c.root) if _operator(c.root) == "argsort" else ""
    return _ranked(c, int(attrs.axis), None, bool(attrs.descending), places)[-1]


def _ranked(c: Composite, axis: int, count: int | None, largest: bool, places: str) -> tuple[int, ...]:
    """The first elements along an axis, all by default, and where they stand in a type, if it is given."""
    src = _plain(c, c.value(c.root.args[0]))
    value = c.builder.values[src]
    axis %= len(value.shape)
    dst = value.shape if count is None else (*value.shape[:axis], count, *value.shape[axis + 1 :])
    roles = {"dst": value.dtype} | ({"order": places} if places else {})
    attrs = ir.Ranking(axis, largest)
    made = c.builder.step_of_several("ranking", attrs, [("src", src)], dict.fromkeys(roles, dst), roles)
    return tuple(made)


def _resize(c: Composite) -> int:
    attrs = c.root.attrs
    coordinates, rounding = str(attrs.coordinate_transformation_mode), str(attrs.rounding_method)
    algorithm = METHODS[str(attrs.method)]
    if not rounding:
        rounding = "round" if coordinates == "align_corners" else "floor"
    rule = ir.Resize(
        algorithm,
        coordinates,
        "round_prefer_even" if rounding == "round" else rounding,
        float(attrs.cubic_alpha),
        bool(attrs.cubic_exclude),
    )
    return c.emit("resize", rule, ("src", c.value(c.root.args[0])))


def _grid_sample(c: Composite) -> int:
    attrs = c.root.attrs
    src, grid = (c.value(arg) for arg in c.root.args)
    rule = ir.GridSample(SAMPLINGS[str(attrs.method)], str(attrs.padding_mode), bool(attrs.align_corners))
    return c.emit("grid_sample", rule, ("src", src), ("grid", grid))


def _unary(c: Composite) -> int:
    return c.emit("eltwise", ir.Eltwise(UNARY[_operator(c.root)], 0.0, 0.0), ("src", c.value(c.root.args[0])))


def _binary(c: Composite) -> int:
    left, right = (_aligned(c, arg) for arg in c.root.args)
    return c.emit("binary", ir.Binary(BINARY[_operator(c.root)]), ("src", left), ("src1", right))


TRANSLATE: dict[str, Callable[[Composite], int | tuple[int, ...]]] = {
    "where": _where,
    "compare": _compare,
    "logical": _logical,
    "negation": _negation,
    "isnan": _isnan,
    "finite": _finite,
    "cast": _cast,
    "gather_elements": _gather_elements,
    "gather_nd": _gather_nd,
    "put": _put,
    "scatter": _scatter,
    "take": _take,
    "places": _places,
    "strided_slice": _strided_slice,
    "broadcast": _broadcast,
    "repeated": _repeated,
    "concat": movement.concat,
    "stack": movement.stack,
    "reduction": _reduction,
    "cumulative_sum": _cumulative_sum,
    "flip": _flip,
    "extreme_index": _extreme_index,
    "top_k": _top_k,
    "sort": _sort,
    "resize": _resize,
    "grid_sample": _grid_sample,
    "unary": _unary,
    "binary": _binary,
    "reshape": movement.reshape,
    "permute": movement.permute,
}
