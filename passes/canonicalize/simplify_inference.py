"""``SimplifyInference``: one form for each idea, as far as Relax operators express it.

    dropout(x)[0]                          -> x
    batch_norm(x, constants...)[0]         -> x * scale + shift      (constants, folded; with means that are
                                              (x - mean) * scale + shift      many deviations away from 0)
    split(x, ...)[i]                       -> strided_slice(x, ...)
    concat(x[a:b], x[b:c], y)              -> concat(x[a:c], y)      (also: all of x)
    concat(x[0::2], x[1::2])               -> a permutation of x     (see ``slices/phases``)
    broadcast_to(x, shape of x)            -> x                      (also reshape, astype)
    reshape(reshape(x, ...), shape of x)   -> x
    permute_dims(x, [0, 1, ...])           -> x
    permute_dims(put(permute_dims(x, p), y), inverse of p)
                                           -> put(x, permute_dims(y, inverse of p))
    reads and writes by constant indices   -> slices and puts        (see ``slices/regular_places``)
    x * 1, x / 1, x + 0, x - 0             -> x                      (real numbers; constants that leave x its
                                              shape; of -0 + 0 the sign is not kept)
    a + broadcast_to(b, shape of a)        -> a + b                  (also other binary operators)
    sum(stack((a, b, ...), axis), [axis])  -> a + b + ...            (also max and min)
    minimum(maximum(x, lo), hi)            -> clip(x, lo, hi)        (real numbers, lo <= hi)
    variance(x, axes before the last)      -> mean((x - mean(x)) * (x - mean(x)))
    where(x > 0, x, x * 0.1)               -> leakyrelu(x, 0.1)      (see ``recover_slopes``)
    max_pool2d(image with its edges again) -> max_pool2d(image, padding)   (see ``slices/pool_padding``)

The ONNX importer writes Sum, Max and Min with several inputs as a reduction over a stack of broadcast
tensors, which hides every residual connection.  What it hides in TIR is ``RecoverOperators``' work.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce

import ml_dtypes
import numpy as np
import tvm
import tvm_ffi
from tvm import relax

from tvm_mxplan.operators.put import PUT, place_of, put

from ..relax_types import constant_of, dtype_of, make_constant, permutation_of, scalar_of, shape_of
from .recover_slopes import with_slopes
from .rewriter import Site, is_call_to, rewrite_bindings
from .slices import (
    BY_INDICES,
    POOLS,
    join_phases,
    join_sections,
    of_regular_places,
    section_of_split,
    with_padding,
)

_STACK_REDUCTIONS: dict[str, Callable[[relax.Expr, relax.Expr], relax.Expr]] = {
    "sum": relax.op.add,
    "max": relax.op.maximum,
    "min": relax.op.minimum,
}

# Of a batch norm's result, relative to its deviation; float32 then takes means of up to 128 deviations.
_FOLDED_ERROR = 2.0**-16

_NEUTRAL = {"add": 0, "subtract": 0, "multiply": 1, "divide": 1}
"""Numbers that make no difference as the second operand, of sums and products as the first one too."""

_BINARY = ("add", "subtract", "multiply", "divide", "maximum", "minimum")


def _rule(site: Site, value: relax.Expr) -> relax.Expr | None:
    if isinstance(value, relax.TupleGetItem):
        call = site.definition(value.tuple_value)
        if is_call_to(call, "split"):
            return section_of_split(call, value.index)
        if value.index == 0 and is_call_to(call, "nn.dropout"):
            return call.args[0]
        if value.index == 0 and is_call_to(call, "nn.batch_norm"):
            return _scale_and_shift(site, call)
    if is_call_to(value, "concat"):
        sections = join_sections(site, value)
        return join_phases(site, value) if sections is None else sections
    if is_call_to(value, "variance"):
        return _squares(site, value)
    if is_call_to(value, *POOLS):
        return with_padding(site, value)
    if is_call_to(value, "where"):
        return with_slopes(site, value)
    if is_call_to(value, *BY_INDICES):
        return of_regular_places(site, value)
    if is_call_to(value, "broadcast_to", "reshape", "astype"):
        return _identity(site, value)
    if is_call_to(value, "permute_dims"):
        return value.args[0] if value.ty.ndim >= 0 and _keeps_order(value) else _put_unpermuted(site, value)
    if is_call_to(value, *_STACK_REDUCTIONS):
        return _chain(site, value)
    if is_call_to(value, *_NEUTRAL) and (unchanged := _unchanged(value)) is not None:
        return unchanged
    clip = _clip(site, value) if is_call_to(value, "minimum") else None
    if clip is None and is_call_to(value, *_BINARY):
        return _unbroadcast(site, value)
    return clip


def _scale_and_shift(site: Site, call: relax.Call) -> relax.Expr | None:
    x, *parameters = call.args
    arrays = [constant_of(parameter) for parameter in parameters]
    if any(array is None for array in arrays) or bool(call.attrs.training) or x.ty.ndim < 1:
        return None
    gamma, beta, mean, variance = (np.asarray(array, dtype="float64") for array in arrays)
    deviation = np.sqrt(variance + float(call.attrs.epsilon))
    scale = 1 / deviation
    if call.attrs.scale:
        scale = scale * gamma
    shift = beta if call.attrs.center else np.zeros_like(mean)
    shape = [1] * x.ty.ndim
    shape[int(call.attrs.axis)] = -1

    def constant(array: np.ndarray) -> relax.Expr:
        return make_constant(array.reshape(shape).astype(dtype_of(x)))

    if _cancels(mean, deviation, float(ml_dtypes.finfo(dtype_of(x)).eps)):
        x = site.emit(relax.op.subtract(x, constant(mean)))
    else:
        shift = shift - mean * scale
    return relax.op.add(site.emit(relax.op.multiply(x, constant(scale))), constant(shift))


def _squares(site: Site, call: relax.Call) -> relax.Expr | None:
    """A variance by what libraries have; those over the last axes are what norms are known by."""
    x = call.args[0]
    if not dtype_of(x).startswith("float") or call.attrs.axis is None or x.ty.ndim < 1:
        return None
    axes = [int(axis) % x.ty.ndim for axis in call.attrs.axis]
    if x.ty.ndim - 1 in axes:
        return None
    apart = site.emit(relax.op.subtract(x, site.emit(relax.op.mean(x, axes, keepdims=True))))
    squares = site.emit(relax.op.multiply(apart, apart))
    return relax.op.mean(squares, axes, keepdims=bool(call.attrs.keepdims))


def _cancels(mean: np.ndarray, deviation: np.ndarray, eps: float) -> bool:
    """True if the mean, seen in deviations, is so far away that x * scale + shift has few digits left.

    Both terms are about mean / deviation and round to that times eps, the result is about 1.
    """
    with np.errstate(all="ignore"):
        return not np.all(np.abs(mean) * eps <= _FOLDED_ERROR * deviation)


def _unchanged(call: relax.Call) -> relax.Expr | None:
    """The operand to which the other one, a constant, makes no difference."""
    left, right = call.args
    swaps = is_call_to(call, "add", "multiply")
    neutral = _NEUTRAL[call.op.name.removeprefix("relax.")]
    for operand, other in ((left, right), (right, left))[: 2 if swaps else 1]:
        array = constant_of(other)
        if array is None or not dtype_of(call).startswith("float") or _identity_of(operand, call) is None:
            continue
        if array.size > 0 and bool(np.all(array == neutral)):
            return operand
    return None


def _keeps_order(call: relax.Call) -> bool:
    order = permutation_of(call)
    return order == sorted(order)


def _put_unpermuted(site: Site, call: relax.Call) -> relax.Expr | None:
    """A put into a tensor permuted for it and back, as exporters write those along later axes."""
    inner = site.definition(call.args[0])
    if not PUT.is_called(inner):
        return None
    data, part = (site.definition(arg) for arg in inner.args)
    back = permutation_of(call)
    if not is_call_to(data, "permute_dims") or [permutation_of(data)[at] for at in back] != sorted(back):
        return None
    undone = is_call_to(part, "permute_dims") and permutation_of(part) == permutation_of(data)
    unpermuted = part.args[0] if undone else site.emit(relax.op.permute_dims(inner.args[1], back))
    begin, step = place_of(inner, int(inner.attrs["axis"]))
    return put(data.args[0], unpermuted, back.index(int(inner.attrs["axis"])), begin, step)


def _identity(site: Site, call: relax.Call) -> relax.Expr | None:
    source, inner = call.args[0], site.definition(call.args[0])
    if is_call_to(call, "reshape") and is_call_to(inner, "reshape"):
        source = inner.args[0]  # of two shapes the last one stands
    return _identity_of(source, call)


def _identity_of(source: relax.Expr, call: relax.Call) -> relax.Expr | None:
    """``source`` if it has the type of the call."""
    same = isinstance(source.ty, relax.TensorType) and tvm_ffi.structural_equal(source.ty, call.ty)
    return source if same else None


def _chain(site: Site, call: relax.Call) -> relax.Expr | None:
    stack = site.definition(call.args[0])
    if not is_call_to(stack, "stack") or call.attrs.keepdims or call.attrs.axis is None:
        return None
    if [int(axis) for axis in call.attrs.axis] != [int(stack.attrs.axis)]:
        return None
    tensors = site.definition(stack.args[0])
    if not isinstance(tensors, relax.Tuple):
        return None
    operator = _STACK_REDUCTIONS[call.op.name.removeprefix("relax.")]
    operands = _bare_operands(site, list(tensors.fields), call)
    if len(operands) == 1:
        return operands[0]
    left = reduce(lambda left, right: site.emit(operator(left, right)), operands[:-1])
    return operator(left, operands[-1])


def _unbroadcast(site: Site, call: relax.Call) -> relax.Expr | None:
    operands = _bare_operands(site, list(call.args), call)
    if all(bare.same_as(arg) for bare, arg in zip(operands, call.args, strict=True)):
        return None
    return relax.Call(call.op, operands, call.attrs)


def _bare_operands(site: Site, operands: list[relax.Expr], result: relax.Expr) -> list[relax.Expr]:
    """Operands without their ``broadcast_to``, if together they still broadcast to ``result``'s shape."""
    bare = []
    for operand in operands:
        definition = site.definition(operand)
        bare.append(definition.args[0] if is_call_to(definition, "broadcast_to") else operand)
    shapes, expected = [shape_of(operand) for operand in bare], shape_of(result)
    if expected is None or any(shape is None for shape in shapes):
        return operands
    reached = all(
        any(len(shape) >= back and shape[-back] == expected[-back] for shape in shapes)  # type: ignore[arg-type,index]
        for back in range(1, len(expected) + 1)
    )
    return bare if reached else operands


def _clip(site: Site, call: relax.Call) -> relax.Expr | None:
    """A clip, which takes its bounds as real numbers: bounds that cross make it another function."""
    inner = site.definition(call.args[0])
    high = scalar_of(call.args[1])
    if not is_call_to(inner, "maximum") or high is None or not dtype_of(call).startswith("float"):
        return None
    low = scalar_of(inner.args[1])
    return relax.op.clip(inner.args[0], low, high) if low is not None and low <= high else None


@tvm.transform.module_pass(opt_level=0, name="SimplifyInference")
class SimplifyInference:
    """Module pass; see the module's text."""

    def transform_module(self, mod: tvm.IRModule, _ctx: tvm.transform.PassContext) -> tvm.IRModule:
        return rewrite_bindings(mod, _rule)
