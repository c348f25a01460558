"""``MergeAxes``: operators on tensors of many axes as the same on few, which libraries take.

Before   y = R.nn.softmax(x, axis=2)                     x (2, 1, 9, 8, 8, 4, 5)
After    v = R.reshape(x, (2, 9, 1280))
         y = R.reshape(R.nn.softmax(v, axis=1), (2, 1, 9, 8, 8, 4, 5))

Axes that stand side by side become one if softmaxes and reductions take all of them, or none (norms none); if
permutations move them together; if operators that go element by element broadcast the same operands along
them: the elements stay where they are.  Tensors of up to six axes are left alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby

import tvm
from tvm import relax, tirx

from ..borders.elementwise import OPERATORS as ELEMENTWISE
from ..relax_types import constant_of, make_constant, permutation_of
from .rewriter import Site, is_call_to, rewrite_bindings

_MOST_AXES = 6
_SOFTMAXES = ("nn.softmax", "nn.log_softmax")
_NORMS = ("nn.layer_norm", "nn.rms_norm")
_REDUCTIONS = ("sum", "mean", "max", "min", "prod")


def _rule(site: Site, value: relax.Expr) -> relax.Expr | None:
    if not is_call_to(value, *_SOFTMAXES, *_REDUCTIONS, *_NORMS, *ELEMENTWISE, "permute_dims"):
        return None
    tensors = [arg for arg in value.args if isinstance(arg.ty, relax.TensorType)]
    if not all(isinstance(tensor.ty.shape, relax.ShapeExpr) for tensor in tensors):
        return None
    if max(len(tensor.ty.shape.values) for tensor in tensors) <= _MOST_AXES:
        return None
    if is_call_to(value, "permute_dims"):
        return _permuted(site, value)
    if is_call_to(value, *_NORMS):
        return _normalized(site, value)
    return _elementwise(site, value) if is_call_to(value, *ELEMENTWISE) else _reduced(site, value)


def _elementwise(site: Site, value: relax.Call) -> relax.Expr | None:
    rank, result, one = value.ty.ndim, value.ty.shape, tirx.const(1, "int64")
    if not all(isinstance(arg.ty, relax.TensorType) for arg in value.args):
        return None
    padded = [[one] * (rank - arg.ty.ndim) + list(arg.ty.shape.values) for arg in value.args]
    telling = [at for at, dim in enumerate(result.values) if not _is_one(dim)]
    kinds = {at: tuple(_is_one(dims[at]) for dims in padded) for at in telling}
    groups = [list(group) for _, group in groupby(telling, key=kinds.__getitem__)]
    if len(groups) == rank:
        return None
    operands = [
        _reshaped(site, arg, [_extent(dims, group) for group in groups])
        for arg, dims in zip(value.args, padded, strict=True)
    ]
    few = site.emit(relax.Call(value.op, operands, value.attrs, value.ty_args))
    return relax.op.reshape(few, result)


def _reshaped(site: Site, tensor: relax.Expr, shape: list[tirx.Expr]) -> relax.Expr:
    """The tensor in another shape; numbers stay as they are."""
    array = constant_of(tensor)
    if tensor.ty.ndim == 0:
        return tensor
    if array is not None:
        return make_constant(array.reshape([int(dim) for dim in shape]))
    return site.emit(relax.op.reshape(tensor, shape))


def _permuted(site: Site, value: relax.Call) -> relax.Expr | None:
    source = value.args[0]
    dims = list(source.ty.shape.values)
    telling = [axis for axis in permutation_of(value) if not _is_one(dims[axis])]
    place = {axis: at for at, axis in enumerate(sorted(telling))}
    groups: list[list[int]] = []
    for axis in telling:
        if groups and place[axis] == place[groups[-1][-1]] + 1:
            groups[-1].append(axis)
        else:
            groups.append([axis])
    if len(groups) == len(dims):
        return None
    sources = sorted(groups)
    if groups == sources:
        return relax.op.reshape(source, value.ty.shape)
    few = site.emit(relax.op.reshape(source, [_extent(dims, group) for group in sources]))
    turned = site.emit(relax.op.permute_dims(few, [sources.index(group) for group in groups]))
    return relax.op.reshape(turned, value.ty.shape)


def _normalized(site: Site, value: relax.Call) -> relax.Expr | None:
    source, *parameters = value.args
    dims = list(source.ty.shape.values)
    axes = [int(axis) % len(dims) for axis in value.attrs.axes]
    first = len(dims) - len(axes)
    if axes != list(range(first, len(dims))) or first < 2:
        return None
    few = site.emit(relax.op.reshape(source, [_extent(dims, range(first)), *dims[first:]]))
    last = list(range(1, len(axes) + 1))
    epsilon = float(value.attrs.epsilon)
    if is_call_to(value, "nn.rms_norm"):
        found = relax.op.nn.rms_norm(few, *parameters, last, epsilon)
    else:
        found = relax.op.nn.layer_norm(
            few, *parameters, last, epsilon, bool(value.attrs.center), bool(value.attrs.scale)
        )
    return relax.op.reshape(site.emit(found), value.ty.shape)


def _reduced(site: Site, value: relax.Call) -> relax.Expr | None:
    if value.attrs.axis is None:
        return None
    source = value.args[0]
    rank = len(source.ty.shape.values)
    softmax = is_call_to(value, *_SOFTMAXES)
    stated = [value.attrs.axis] if softmax else value.attrs.axis
    axes = {int(axis) % rank for axis in stated}
    shape, merged = _merged(list(source.ty.shape.values), axes)
    if len(shape) == rank:
        return None
    few = site.emit(relax.op.reshape(source, shape))
    if softmax:
        found = getattr(relax.op.nn, value.op.name.rpartition(".")[2])(few, merged[0])
    else:
        found = getattr(relax.op, value.op.name.rpartition(".")[2])(few, merged, keepdims=False)
    return relax.op.reshape(site.emit(found), value.ty.shape)


def _merged(dims: list[tirx.Expr], axes: set[int]) -> tuple[list[tirx.Expr], list[int]]:
    """The extents of groups of axes that are all among ``axes`` or all not, and the places of the former.

    Axes of one element belong to whichever group they stand in.
    """
    telling = [at for at, dim in enumerate(dims) if at in axes or not _is_one(dim)]
    shape: list[tirx.Expr] = []
    places: list[int] = []
    for reduced, group in groupby(telling, key=lambda at: at in axes):
        if reduced:
            places.append(len(shape))
        shape.append(_extent(dims, group))
    return shape, places


def _extent(dims: Sequence[tirx.Expr], axes: Iterable[int]) -> tirx.Expr:
    """The elements of some axes together."""
    extent = tirx.const(1, "int64")
    for axis in axes:
        extent = extent * dims[axis]
    return extent


def _is_one(dim: tirx.Expr) -> bool:
    return isinstance(dim, tirx.IntImm) and int(dim.value) == 1


@tvm.transform.module_pass(opt_level=0, name="MergeAxes")
class MergeAxes:
    """Module pass; see the module's text."""

    def transform_module(self, mod: tvm.IRModule, _ctx: tvm.transform.PassContext) -> tvm.IRModule:
        return rewrite_bindings(mod, _rule)
