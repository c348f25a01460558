"""Largest elements of images that are padded by their edges: pools with padding.

    max_pool2d(take(take(x, [0, 0, 1, ..., n - 1], 2), [0, 0, 1, ..., m - 1], 3), padding=0)
        -> max_pool2d(x, padding=(1, 1, 0, 0))

A window that reaches into such padding has the edge in it, so that what is repeated makes nothing larger.
Keras pads so in front of pools on PyTorch (`padding="same"`).
"""

from __future__ import annotations

import numpy as np
from tvm import relax

from ...relax_types import shape_of
from ..fold_constants import numbers_of
from ..rewriter import Site, is_call_to

POOLS = ("nn.max_pool1d", "nn.max_pool2d", "nn.max_pool3d")


def with_padding(site: Site, pool: relax.Call) -> relax.Expr | None:
    """The pool of the image without its edges repeated; None where they are not, or not within a window."""
    attrs, image = pool.attrs, pool.args[0]
    if attrs.ceil_mode or any(int(one) != 1 for one in attrs.dilation):
        return None
    spatial = len(attrs.pool_size)
    axes = [str(attrs.layout).find(axis) for axis in "DHW"[-spatial:]]
    padding = [int(one) for one in attrs.padding]
    while is_call_to(take := site.definition(image), "take"):
        axis = -1 if take.attrs.axis is None else int(take.attrs.axis) % take.ty.ndim
        repeated = _repeated(site, take, axis) if axis in axes else None
        if repeated is None:
            break
        at = axes.index(axis)
        begin, end = padding[at] + repeated[0], padding[at + spatial] + repeated[1]
        if max(begin, end) >= int(attrs.pool_size[at]):
            break
        padding[at], padding[at + spatial] = begin, end
        image = take.args[0]
    if image.same_as(pool.args[0]):
        return None
    settings = {name: getattr(attrs, name) for name in ("pool_size", "strides", "dilation", "ceil_mode")}
    settings |= {name: str(getattr(attrs, name)) for name in ("layout", "out_layout")}
    operator = getattr(relax.op.nn, pool.op.name.removeprefix("relax.nn."))
    found: relax.Call = operator(
        image, padding=padding, count_include_pad=attrs.count_include_pad, **settings
    )
    return found


def _repeated(site: Site, take: relax.Call, axis: int) -> tuple[int, int] | None:
    """The number of times that the first and the last element are read once more; None for other reads."""
    numbers, shape = numbers_of(site, take.args[1]), shape_of(take.args[0])
    extent = shape[axis] if shape else None
    if numbers is None or numbers.ndim != 1 or not isinstance(extent, int):
        return None
    begin = int(np.count_nonzero(numbers == 0)) - 1
    end = len(numbers) - extent - begin
    if min(begin, end) < 0:
        return None
    places = np.clip(np.arange(-begin, extent + end), 0, extent - 1)
    return (begin, end) if np.array_equal(numbers, places) else None
