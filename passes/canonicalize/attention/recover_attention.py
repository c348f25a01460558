"""``RecoverAttention``: one operator in place of the products and the softmax that attention is written as.

    scores  = R.matmul(q, R.permute_dims(k, [0, 1, 3, 2]))
    weights = R.nn.softmax(R.add(R.multiply(scores, scale), mask))     -> R.mxplan.attention(q, k, v, mask)
    result  = R.matmul(weights, v)

It is found by what it computes, whoever wrote it: a scale in front of queries, keys or scores or behind a
mask; any number of masks, added, also while images and their windows are apart, or chosen by a condition;
IsNaN and Where behind the softmax, as PyTorch's exporters write them; keys turned in three dimensions; heads
of keys and values repeated for those of queries.  What something else reads as well stays as it is.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
import tvm
from tvm import relax

from tvm_mxplan.core.program.dims import Shape, is_static
from tvm_mxplan.operators.attention import Attention, attention

from ...relax_types import constant_of, dtype_of, permutation_of, scalar_of, shape_of
from ..rewriter import Site, is_call_to, rewrite_bindings

_TYPES = ("float32", "float16", "bfloat16")
_LEAST, _MASKED = -1e9, float(np.finfo(np.float32).min)
"""A choice of at most the one in place of a score leaves nothing of it; the other, added, does the same."""


@dataclass(frozen=True)
class _Choice:
    """A number in place of scores: those where the condition is, or is not, ``where``."""

    condition: relax.Expr
    where: bool
    far: float


@dataclass(frozen=True)
class _Scores:
    """The scores that a softmax is applied to.

    Attributes
    ----------
    query, turned : operands of the product, keys with their last two axes swapped.
    scale : of the product.
    masks : what is done to that, one after the other: what is added, or what is chosen instead.
    """

    query: relax.Expr
    turned: relax.Expr
    scale: float
    masks: tuple[relax.Expr | _Choice, ...] = ()


def _rule(site: Site, value: relax.Expr) -> relax.Expr | None:
    if not is_call_to(value, "matmul"):
        return None
    weights, values = value.args
    shape = shape_of(weights)
    if dtype_of(weights) not in _TYPES or dtype_of(values) != dtype_of(weights) or shape is None:
        return None
    dead, weights = _dead_rows(site, weights)
    softmax, nan_is_zero = _softmax(site, weights)
    if softmax is None:
        return None
    found = _scores(site, softmax.args[0], 1.0, shape)
    result = None if found is None else _attention(site, found, values, shape, nan_is_zero)
    if result is None or dead is None:
        return result
    return relax.op.where(dead, relax.const(0.0, dtype_of(values)), site.emit(result))


def _dead_rows(site: Site, weights: relax.Expr) -> tuple[relax.Expr | None, relax.Expr]:
    """The condition by which whole rows of weights are 0, as ONNX defines its operator, and what they were.

    Rows of the result are 0 then, so the choice can stand behind the product.
    """
    call = site.definition(weights)
    if not is_call_to(call, "where") or scalar_of(call.args[1]) != 0.0 or site.reads(weights) != 1:
        return None, weights
    rows = shape_of(call.args[0])
    if rows is None or rows[-1:] != (1,) or len(shape_of(call.args[2]) or ()) < len(rows):
        return None, weights
    numbers = constant_of(call.args[0])
    return (None if numbers is not None and not numbers.any() else call.args[0]), call.args[2]


def _softmax(site: Site, weights: relax.Expr) -> tuple[relax.Call | None, bool]:
    """The softmax whose result nobody else reads, and whether its NaN become 0."""
    if site.reads(weights) != 1:
        return None, False
    call, expected = site.definition(weights), 1
    nan_is_zero = is_call_to(call, "where") and scalar_of(call.args[1]) == 0.0
    if nan_is_zero:
        asked, weights, expected = site.definition(call.args[0]), call.args[2], 2
        if not is_call_to(asked, "isnan") or not asked.args[0].same_as(weights):
            return None, False
        call = site.definition(weights)
    shape = shape_of(weights)
    if not is_call_to(call, "nn.softmax") or shape is None or site.reads(weights) != expected:
        return None, False
    return (call if int(call.attrs.axis) % len(shape) == len(shape) - 1 else None), nan_is_zero


def _scores(site: Site, expr: relax.Expr, scale: float, shape: Shape) -> _Scores | None:
    """``expr``, read by nobody else, as ``scale`` of a product and masks; None where it is anything else."""
    if site.reads(expr) != 1 or shape_of(expr) != shape:
        return None
    call = site.definition(expr)
    if is_call_to(call, "matmul"):
        return _Scores(call.args[0], call.args[1], scale)
    if is_call_to(call, "reshape"):
        return _in_windows(site, call, scale, shape)
    factor = _factor(call)
    if factor is not None:
        return _scores(site, factor[0], scale * factor[1], shape)
    if is_call_to(call, "add"):
        for inner, mask in (call.args, reversed(call.args)):
            found = _scores(site, inner, scale, shape)
            if found is not None:
                return replace(found, masks=(*found.masks, _scaled(site, mask, scale)))
    if is_call_to(call, "where") and scale > 0:
        condition, *choices = call.args
        for at in (0, 1):
            far = scalar_of(choices[1 - at])
            found = _scores(site, choices[at], scale, shape) if _is_far(far, scale) else None
            if found is not None:
                choice = _Choice(condition, at == 0, far * scale)  # type: ignore[operator]
                return replace(found, masks=(*found.masks, choice))
    return None


def _in_windows(site: Site, call: relax.Call, scale: float, shape: Shape) -> _Scores | None:
    """Scores to which a mask for each window of an image is added while images and windows are apart.

    scores (N * W, H, S, T)    reshape    (N, W, H, S, T) + mask    reshape    (N * W, H, S, T)
    """
    apart = shape_of(call.args[0])
    added = site.definition(call.args[0])
    if apart is None or len(apart) != 5 or apart[2:] != shape[1:] or site.reads(call.args[0]) != 1:
        return None
    if not is_call_to(added, "add") or not is_static((*apart, shape[0])) or math.prod(apart[:2]) != shape[0]:  # type: ignore[arg-type]
        return None
    for inner, mask in (added.args, reversed(added.args)):
        back = site.definition(inner)
        if is_call_to(back, "reshape") and shape_of(back.args[0]) == shape and site.reads(inner) == 1:
            found = _scores(site, back.args[0], scale, shape)
            narrow = None if found is None else _of_windows(site, mask, apart)
            if found is not None and narrow is not None:
                return replace(found, masks=(*found.masks, _scaled(site, narrow, scale)))
    return None


def _of_windows(site: Site, mask: relax.Expr, apart: Shape) -> relax.Expr | None:
    """A mask of images and windows apart as one of all windows."""
    own = shape_of(mask)
    if own is None or len(own) > len(apart):
        return None
    own = (1,) * (len(apart) - len(own)) + own
    if any(dim not in (1, wanted) for dim, wanted in zip(own, apart, strict=True)):
        return None
    lead = own[:2] if own[:2] in ((1, 1), apart[:2]) else apart[:2]
    if lead != own[:2]:
        mask = site.emit(relax.op.broadcast_to(site.emit(relax.op.reshape(mask, own)), (*lead, *own[2:])))
    return site.emit(relax.op.reshape(mask, (math.prod(lead), *own[2:])))  # type: ignore[arg-type]


def _is_far(number: float | None, scale: float) -> bool:
    """Whether a number in place of a score leaves nothing of it, before and behind a scale."""
    return number is not None and number <= _LEAST and number * scale <= _LEAST / 1000


def _factor(call: relax.Expr) -> tuple[relax.Expr, float] | None:
    """An operand and the number that it is multiplied by."""
    if is_call_to(call, "divide"):
        number = scalar_of(call.args[1])
        return None if not number or _widens(call, 0) else (call.args[0], 1 / number)
    if is_call_to(call, "multiply"):
        for at in (0, 1):
            number = scalar_of(call.args[1 - at])
            if number is not None and math.isfinite(number) and not _widens(call, at):
                return call.args[at], number
    return None


def _widens(call: relax.Call, at: int) -> bool:
    """Whether the number beside operand ``at`` has more dimensions than that."""
    shapes = [shape_of(arg) for arg in call.args]
    return any(shape is None for shape in shapes) or len(shapes[1 - at]) > len(shapes[at])  # type: ignore[arg-type]


def _scaled(site: Site, mask: relax.Expr, scale: float) -> relax.Expr:
    return mask if scale == 1.0 else site.emit(relax.op.multiply(mask, relax.const(scale, dtype_of(mask))))


def _joined(site: Site, masks: tuple[relax.Expr | _Choice, ...], dtype: str) -> relax.Expr | None:
    """The one mask that does the same as all when it is added.

    A row of which nothing is left has equal scores everywhere: choices of one number are one number as large
    as there is, which no score changes. Beside what is added, which may be as far, they stay what they are.
    """
    choices = [mask for mask in masks if isinstance(mask, _Choice)]
    near = all(isinstance(mask, _Choice) or _is_near(mask) for mask in masks)
    alike = len({choice.far for choice in choices}) == 1 and near
    found = None
    for mask in masks:
        if isinstance(mask, _Choice):
            far = _MASKED if alike and math.isfinite(mask.far) else mask.far
            inner = relax.const(0.0, dtype) if found is None else found
            terms = [inner, relax.const(far, dtype)]
            found = site.emit(relax.op.where(mask.condition, *(terms if mask.where else reversed(terms))))
        else:
            found = mask if found is None else site.emit(relax.op.add(found, mask))
    return found


def _is_near(mask: relax.Expr) -> bool:
    """Whether what is added is constant, and leaves something of a score."""
    numbers = constant_of(mask)
    return numbers is not None and bool(np.all(np.abs(numbers.astype("float32")) < -_LEAST / 10))


# --- operands ------------------------------------------------------------------------------------------


def _attention(
    site: Site, found: _Scores, values: relax.Expr, shape: Shape, nan_is_zero: bool
) -> relax.Expr | None:
    query, scale = _unscaled(site, found.query, found.scale)
    turned, scale = _unscaled(site, found.turned, scale)
    ranks = {len(shape_of(expr) or ()) for expr in (query, turned, values)} | {len(shape)}
    if ranks not in ({3}, {4}) or not math.isfinite(scale):
        return None
    dtype = dtype_of(query)
    if any(("float32" if isinstance(one, _Choice) else dtype_of(one)) != dtype for one in found.masks):
        return None
    mask = _joined(site, found.masks, dtype)
    if mask is not None and (mask := _aligned(site, mask, shape)) is None:
        return None
    key, scale = _unscaled(site, _turned(site, turned), scale)
    if ranks == {3}:
        query, key, values = (site.emit(relax.op.expand_dims(expr, 1)) for expr in (query, key, values))
    key, value = _shared(site, key, values)
    if not _fit(query, key, value):
        return None
    call = attention(Attention(scale, "no", nan_is_zero), query, key, value, mask)
    return call if ranks == {4} else relax.op.squeeze(site.emit(call), [1])


def _unscaled(site: Site, expr: relax.Expr, scale: float) -> tuple[relax.Expr, float]:
    """The expression of which ``expr`` is a multiple, and ``scale`` times the multiples."""
    factor = _factor(site.definition(expr))
    return (expr, scale) if factor is None else _unscaled(site, factor[0], scale * factor[1])


def _aligned(site: Site, mask: relax.Expr, shape: Shape) -> relax.Expr | None:
    """A mask in four dimensions; None where it does not fit the scores."""
    own = shape_of(mask)
    if own is None or len(own) > len(shape):
        return None
    if any(dim not in (1, wanted) for dim, wanted in zip(own[::-1], shape[::-1], strict=False)):
        return None
    missing = len(shape) - len(own)
    axes = list(range(missing))
    if len(shape) == 3:
        axes = [1] if missing == 0 else [0, *(axis + 1 for axis in axes)]
    return site.emit(relax.op.expand_dims(mask, axes)) if axes else mask


def _turned(site: Site, expr: relax.Expr) -> relax.Expr:
    """``expr`` with its last two axes swapped, by as few permutations as it takes."""
    call, rank = site.definition(expr), len(shape_of(expr))  # type: ignore[arg-type]
    swap = [*range(rank - 2), rank - 1, rank - 2]
    if is_call_to(call, "permute_dims"):
        order = permutation_of(call)
        composed = [order[axis] for axis in swap]
        if composed == list(range(rank)):
            return call.args[0]
        return site.emit(relax.op.permute_dims(call.args[0], composed))
    whole = _turned_in_three(site, call, expr)
    return whole if whole is not None else site.emit(relax.op.permute_dims(expr, swap))


def _turned_in_three(site: Site, call: relax.Expr, expr: relax.Expr) -> relax.Expr | None:
    """x, of x whose last two axes were swapped while the others were merged, split as those of ``expr``."""
    middle = site.definition(call.args[0]) if is_call_to(call, "reshape") else None
    if middle is None or not is_call_to(middle, "permute_dims") or permutation_of(middle) != [0, 2, 1]:
        return None
    merged = site.definition(middle.args[0])
    if not is_call_to(merged, "reshape"):
        return None
    whole, flat, shape = (shape_of(one) for one in (merged.args[0], middle.args[0], expr))
    if whole is None or flat is None or shape is None or not whole[-2:] == flat[-2:] == shape[:-3:-1]:
        return None
    if whole[:-2] == shape[:-2]:
        return merged.args[0]
    *others, columns, rows = expr.ty.shape.values
    return site.emit(relax.op.reshape(merged.args[0], relax.ShapeExpr([*others, rows, columns])))


def _shared(site: Site, key: relax.Expr, value: relax.Expr) -> tuple[relax.Expr, relax.Expr]:
    """Keys and values before heads of both were repeated; as they are where not both were, alike."""
    bases = [_unrepeated(site, expr) for expr in (key, value)]
    if any(base is None for base in bases):
        return key, value
    shapes = [shape_of(base) for base in bases]
    return (bases[0], bases[1]) if shapes[0][1] == shapes[1][1] else (key, value)  # type: ignore[index]


def _unrepeated(site: Site, expr: relax.Expr) -> relax.Expr | None:
    """[N, G, T, D] of what repeats each head for several in a row."""
    call, shape = site.definition(expr), shape_of(expr)
    if is_call_to(call, "repeat"):
        axis = call.attrs.axis
        return call.args[0] if axis is not None and int(axis) % 4 == 1 else None
    spread = site.definition(call.args[0]) if is_call_to(call, "reshape") else None
    if not is_call_to(spread, "broadcast_to"):
        return None
    apart = site.definition(spread.args[0])  # type: ignore[union-attr]
    if not is_call_to(apart, "reshape", "expand_dims"):
        return None
    whole, several = shape_of(apart.args[0]), shape_of(call.args[0])
    single = shape_of(spread.args[0])  # type: ignore[union-attr]
    if whole is None or several is None or shape is None or len(whole) != 4 or len(several) != 5:
        return None
    heads, times = whole[1], several[2]
    if not isinstance(heads, int) or not isinstance(times, int):
        return None
    fits = single == (*whole[:2], 1, *whole[2:]) and several == (*whole[:2], times, *whole[2:])
    return apart.args[0] if fits and shape == (whole[0], heads * times, *whole[2:]) else None


def _fit(query: relax.Expr, key: relax.Expr, value: relax.Expr) -> bool:
    """Whether the operands are those of attention, with heads that are known."""
    shapes = [shape_of(expr) for expr in (query, key, value)]
    if any(shape is None or len(shape) != 4 for shape in shapes):
        return False
    q, k, v = shapes
    heads, groups = q[1], k[1]  # type: ignore[index]
    if not isinstance(heads, int) or not isinstance(groups, int) or groups == 0 or heads % groups:
        return False
    return q[0] == k[0] and q[3] == k[3] and k[:3] == v[:3]  # type: ignore[index]


@tvm.transform.module_pass(opt_level=0, name="RecoverAttention")
class RecoverAttention:
    """Module pass; see the module's text."""

    def transform_module(self, mod: tvm.IRModule, _ctx: tvm.transform.PassContext) -> tvm.IRModule:
        return rewrite_bindings(mod, _rule)
