"""Leaky ReLU and PReLU in place of the choice between a number and a multiple of it that exporters write.

    where(x > 0, x, x * 0.1)         -> nn.leakyrelu(x, 0.1)
    where(x < 0, slopes * x, x)      -> nn.prelu(x, slopes, axis)      slopes along one axis

Libraries have both, also behind a convolution; a choice between tensors they read three times.
"""

from __future__ import annotations

import numpy as np
from tvm import relax

from ..relax_types import constant_of, dtype_of, make_constant, scalar_of, shape_of
from .rewriter import Site, is_call_to

_POSITIVE, _NEGATIVE = ("greater", "greater_equal"), ("less", "less_equal")


def with_slopes(site: Site, where: relax.Call) -> relax.Expr | None:
    """The choice as an activation; None where it is another one, or slopes are no finite constants."""
    condition, *branches = where.args
    compared = site.definition(condition)
    if not is_call_to(compared, *_POSITIVE, *_NEGATIVE) or scalar_of(compared.args[1]) != 0:
        return None
    x = compared.args[0]
    kept, scaled = branches if is_call_to(compared, *_POSITIVE) else reversed(branches)
    product = site.definition(scaled)
    if shape_of(x) is None or where.ty.ndim != x.ty.ndim:
        return None
    if not site.is_same(kept, x) or not is_call_to(product, "multiply"):
        return None
    factors = [factor for factor in product.args if not site.is_same(factor, x)]
    slopes = constant_of(factors[0]) if len(factors) == 1 else None
    if (
        slopes is None
        or not dtype_of(x).startswith("float")
        or not np.isfinite(slopes.astype("float64")).all()
    ):
        return None
    return _activation(x, slopes)


def _activation(x: relax.Expr, slopes: np.ndarray) -> relax.Expr | None:
    if slopes.size and bool((slopes == slopes.flat[0]).all()):
        same = slopes.ndim <= x.ty.ndim and _spans(x, slopes)
        return relax.op.nn.leakyrelu(x, float(slopes.flat[0])) if same else None
    longer = [axis - slopes.ndim for axis, extent in enumerate(slopes.shape) if extent != 1]
    if len(longer) != 1 or not _spans(x, slopes):
        return None
    return relax.op.nn.prelu(x, make_constant(slopes.reshape(-1)), x.ty.ndim + longer[0])


def _spans(x: relax.Expr, slopes: np.ndarray) -> bool:
    """Whether slopes are broadcast to a tensor, and not the tensor to them."""
    shape = shape_of(x) or ()
    behind = shape[len(shape) - slopes.ndim :] if slopes.ndim else ()
    return slopes.ndim <= len(shape) and all(
        extent in (1, dim) for extent, dim in zip(slopes.shape, behind, strict=True)
    )
