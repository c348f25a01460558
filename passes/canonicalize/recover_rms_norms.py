"""``RecoverRmsNorms``: one operator in place of those that a norm by the mean square is written as.

    v1 = R.mean(R.power(x, 2), [-1], keepdims=True)
    v2 = R.multiply(R.multiply(x, R.rsqrt(R.add(v1, 1e-5))), weight)       -> R.nn.rms_norm(x, weight)

It is found by what it computes: a square, a power or a product of x with itself; a mean, or a sum and its
scale; a division by the root, or a product with its inverse, however that is made; the weight on either
side, or missing.  What something else reads of it stays, and so do norms by mean and variance.
"""

from __future__ import annotations

import math

import numpy as np
import tvm
from tvm import relax

from ..relax_types import constant_of, dtype_of, make_constant, scalar_of, shape_of
from .rewriter import Site, is_call_to, rewrite_bindings

_FLOAT = "float32"


def _rule(site: Site, value: relax.Expr) -> relax.Expr | None:
    if not is_call_to(value, "multiply", "divide") or dtype_of(value) != _FLOAT:
        return None
    bare = _bare(site, value)
    return bare if bare is not None else _weighted(site, value)


def _bare(site: Site, value: relax.Call) -> relax.Expr | None:
    """The norm without a weight of a quotient by the root, or of a product with its inverse."""
    x, other = value.args
    if is_call_to(value, "divide"):
        candidates = [(x, _root(site, other))]
    else:
        candidates = [(x, _inverse(site, other)), (other, _inverse(site, x))]
    for source, inside in candidates:
        if _is_centred(site, source):
            return None
        found = None if inside is None else _mean_square(site, source, inside)
        if found is not None and shape_of(source) == shape_of(value):
            epsilon, extents = found
            ones = make_constant(np.ones(extents, _FLOAT))
            return relax.op.nn.rms_norm(source, ones, list(range(-len(extents), 0)), epsilon)
    return None


def _is_centred(site: Site, expr: relax.Expr) -> bool:
    """Whether the mean is taken off, so that the norm is one by mean and variance, which libraries know."""
    call = site.definition(expr)
    if not is_call_to(call, "subtract"):
        return False
    mean = site.definition(call.args[1])
    if is_call_to(mean, "divide", "multiply"):
        mean = site.definition(mean.args[0])
    return is_call_to(mean, "mean", "sum") and site.is_same(mean.args[0], call.args[0])


def _weighted(site: Site, value: relax.Call) -> relax.Expr | None:
    """The norm with the weight that its result, which nobody else reads, is multiplied by."""
    if not is_call_to(value, "multiply"):
        return None
    for at in (0, 1):
        norm, weight = site.definition(value.args[at]), value.args[1 - at]
        if not is_call_to(norm, "nn.rms_norm") or site.reads(value.args[at]) != 1:
            continue
        ones, extents = constant_of(norm.args[1]), shape_of(norm.args[1])
        shape = shape_of(weight)
        if ones is None or not np.all(ones == 1.0) or shape is None or shape_of(value) != shape_of(norm):
            continue
        lead = len(shape) - len(extents)  # type: ignore[arg-type]
        if lead < 0 or shape != (*(1,) * lead, *extents):  # type: ignore[misc]
            continue
        if lead:
            weight = _without_ones(site, weight, lead)
        return relax.op.nn.rms_norm(norm.args[0], weight, norm.attrs.axes, norm.attrs.epsilon)
    return None


def _without_ones(site: Site, weight: relax.Expr, lead: int) -> relax.Expr:
    """A weight without the axes of one element in front."""
    numbers = constant_of(weight)
    if numbers is not None:
        return make_constant(numbers.reshape(numbers.shape[lead:]))
    return site.emit(relax.op.squeeze(weight, list(range(lead))))


def _inner(site: Site, expr: relax.Expr, *names: str) -> relax.Call | None:
    """The call that made ``expr``, which nobody else reads."""
    call = site.definition(expr)
    return call if is_call_to(call, *names) and site.reads(expr) <= 1 else None


def _root(site: Site, expr: relax.Expr) -> relax.Expr | None:
    """The operand whose square root ``expr`` is."""
    call = _inner(site, expr, "sqrt", "power")
    if call is None or (len(call.args) == 2 and scalar_of(call.args[1]) != 0.5):
        return None
    return call.args[0]


def _inverse(site: Site, expr: relax.Expr) -> relax.Expr | None:
    """The operand whose inverse square root ``expr`` is."""
    call = _inner(site, expr, "rsqrt", "divide", "power")
    if is_call_to(call, "rsqrt"):
        return call.args[0]  # type: ignore[union-attr]
    if is_call_to(call, "divide"):
        one, root = call.args  # type: ignore[union-attr]
        return _root(site, root) if scalar_of(one) == 1.0 else None
    if not is_call_to(call, "power"):
        return None
    base, exponent = call.args[0], scalar_of(call.args[1])  # type: ignore[union-attr]
    return base if exponent == -0.5 else _root(site, base) if exponent == -1.0 else None


def _mean_square(site: Site, source: relax.Expr, inside: relax.Expr) -> tuple[float, tuple[int, ...]] | None:
    """The number added to the mean square of ``source`` over its last axes, and the extents of those."""
    epsilon = 0.0
    added = _inner(site, inside, "add")
    if added is not None:
        numbers = [scalar_of(arg) for arg in added.args]
        at = next((at for at, number in enumerate(numbers) if number is not None), None)
        if at is None:
            return None
        epsilon, inside = numbers[at], added.args[1 - at]  # type: ignore[assignment]
    mean = _mean(site, inside)
    shape = shape_of(source)
    if mean is None or not shape or not math.isfinite(epsilon):
        return None
    square, axes, scale = mean
    last = list(range(len(shape) - len(axes), len(shape)))
    extents = shape[last[0] :] if last else ()
    if sorted(int(axis) % len(shape) for axis in axes) != last or not _is_square(site, square, source):
        return None
    if not extents or not all(isinstance(extent, int) and extent > 0 for extent in extents):
        return None
    if scale is not None and not math.isclose(scale * math.prod(extents), 1.0, rel_tol=1e-6):  # type: ignore[arg-type]
        return None
    return epsilon, extents  # type: ignore[return-value]


def _mean(site: Site, expr: relax.Expr) -> tuple[relax.Expr, list[int], float | None] | None:
    """Of a mean, or of a scaled sum, that keeps its axes: of what, over which axes, the scale of a sum."""
    call, scale = _inner(site, expr, "mean", "divide", "multiply"), None
    if is_call_to(call, "divide", "multiply"):
        number = scalar_of(call.args[1])  # type: ignore[union-attr]
        if not number:
            return None
        scale = 1 / number if is_call_to(call, "divide") else number
        call = _inner(site, call.args[0], "sum")  # type: ignore[union-attr]
    if call is None or call.attrs.axis is None or not bool(call.attrs.keepdims):
        return None
    return call.args[0], [int(axis) for axis in call.attrs.axis], scale


def _is_square(site: Site, expr: relax.Expr, source: relax.Expr) -> bool:
    call = _inner(site, expr, "power", "multiply", "square")
    if call is None or (is_call_to(call, "power") and scalar_of(call.args[1]) != 2.0):
        return False
    factors = list(call.args) if is_call_to(call, "multiply") else [call.args[0]]
    return all(site.is_same(factor, source) for factor in factors)


@tvm.transform.module_pass(opt_level=0, name="RecoverRmsNorms")
class RecoverRmsNorms:
    """Module pass; see the module's text."""

    def transform_module(self, mod: tvm.IRModule, _ctx: tvm.transform.PassContext) -> tvm.IRModule:
        return rewrite_bindings(mod, _rule)
