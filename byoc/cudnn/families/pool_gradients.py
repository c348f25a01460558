"""Gradients of average pools: transposed convolutions, a group for each channel, by filters that all share.

    dx = R.mxplan.average_pool_backward(x, dy, ...)      deconvolution(dy, w), w [C, 1, k...] of 1 / prod(k)

All windows have to average as many elements.  cudnn-frontend has no gradient of a resample node, so that of a
maximum pool, which looks for the places again, is TVM's.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from tvm import relax

from tvm_mxplan.byoc.composite import Composite
from tvm_mxplan.core.element_types import numpy_type
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.core.program.dims import static_shape
from tvm_mxplan.operators.pooling_gradients import ADAPTIVE_BACKWARD, Pool
from tvm_mxplan.passes.relax_types import static_shape_of

from ..products import stored_filters


@dataclass(frozen=True)
class _Windows:
    """Windows of one extent; ``same`` where each averages all of its elements."""

    size: tuple[int, ...]
    strides: tuple[int, ...]
    padding: tuple[int, ...]
    dilation: tuple[int, ...]
    same: bool


def _windows(call: relax.Call) -> _Windows:
    image, grad = (static_shape_of(arg) for arg in call.args)
    extents, places = image[2:], grad[2:]
    axes = range(len(extents))
    if ADAPTIVE_BACKWARD.is_called(call):
        size = tuple(extents[i] // places[i] for i in axes)
        even = all(extents[i] == size[i] * places[i] for i in axes)
        return _Windows(size, size, (0,) * 2 * len(size), (1,) * len(size), even)
    pool = Pool.of(call)
    counted = pool.padding if call.attrs["count_include_pad"] else (0,) * len(pool.padding)
    first = [-pool.padding[i] for i in axes]
    last = [
        (places[i] - 1) * pool.strides[i] - pool.padding[i] + (pool.size[i] - 1) * pool.dilation[i]
        for i in axes
    ]
    same = all(first[i] >= -counted[i] and last[i] < extents[i] + counted[len(extents) + i] for i in axes)
    return _Windows(pool.size, pool.strides, pool.padding, pool.dilation, same)


def why_not(call: relax.Call) -> str | None:
    """Returns the reason why a gradient is no convolution by one filter."""
    return None if _windows(call).same else "windows that average different numbers of elements"


def average_backward(c: Composite) -> int:
    """The transposed convolution; of the pool's source only the shape counts."""
    windows = _windows(c.root)
    gradient = c.value(c.root.args[1])
    dtype = c.builder.values[gradient].dtype
    channels = static_shape(c.shape)[1]
    share = np.full((channels, 1, *windows.size), 1 / math.prod(windows.size), numpy_type(dtype))
    filters = stored_filters(c, share, channels, transposed=True)
    made = ir.Deconvolution(windows.strides, windows.padding, windows.dilation, channels)
    return c.emit("average_pool_backward", made, ("src", gradient), ("weights", filters))
