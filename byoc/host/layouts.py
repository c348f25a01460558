"""The host library's own layouts for the registry: channels in blocks that no other library has.

Its reorder converts any layout into any other in one go; arrays get from its own names to others' by way of
the standard one.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from tvm_mxplan.byoc.runtime_functions import RuntimeFunctions
from tvm_mxplan.core.layout.layout import parse_layout, plain_layout
from tvm_mxplan.core.layout.layout_names import layout_named
from tvm_mxplan.core.layout.layout_registry import LayoutRegistry
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.core.program.operands import reorder

BLOCK = 12
"""Channels in a block: four vectors of three, three of four, and no block of anybody else's."""
_IMAGES = ("nCw{0}c", "nChw{0}c", "nCdhw{0}c")


def layout_registry(runtime: RuntimeFunctions) -> LayoutRegistry:
    """Registers the layouts that the library announces; tensors are numpy arrays."""
    registry = LayoutRegistry()
    for name in (one.format(BLOCK) for one in _IMAGES):
        layout = layout_named(name)
        plain = plain_layout(len(layout.order))
        registry.announce(
            name,
            to_standard=partial(_reorder, runtime, source=layout.tag, target=plain),
            from_standard=partial(_reorder, runtime, source=plain, target=layout.tag),
        )
    return registry


def _reorder(
    runtime: RuntimeFunctions, array: Any, shape: tuple[int, ...], *, source: str, target: str
) -> np.ndarray[Any, Any]:
    """A tensor of logical ``shape`` from one layout into another, whatever its type."""
    given = np.ascontiguousarray(array)
    values = (
        ir.Value("src", shape, str(given.dtype), "input", source, 0),
        ir.Value("dst", shape, str(given.dtype), "output", target, 0),
    )
    step = reorder("reorder", 0, 1)
    result = np.empty(parse_layout(target).physical_shape(shape), given.dtype)
    runtime.trial(ir.Program("reorder", values, (step,)), [])(given, result)
    return result
