"""oneDNN's layouts for ``core.layout_registry``; its reorder converts any into any other in one go."""

from __future__ import annotations

from functools import partial
from itertools import permutations
from typing import Any

import numpy as np
import tvm_ffi

from tvm_mxplan.core.layout.layout import parse_layout, plain_layout
from tvm_mxplan.core.layout.layout_names import layout_named
from tvm_mxplan.core.layout.layout_registry import LayoutRegistry
from tvm_mxplan.core.program import operands
from tvm_mxplan.core.program import program as ir

from . import library

_IMAGES = ("ncw", "nwc", "nCw{0}c", "nchw", "nhwc", "nChw{0}c", "ncdhw", "ndhwc", "nCdhw{0}c")
_WEIGHTS = ("oihw", "hwio", "OIhw{0}i{0}o", "Oihw{0}o")


def layout_registry(block: int) -> LayoutRegistry:
    """Registers oneDNN's layouts for vectors that hold ``block`` numbers; tensors are numpy arrays."""
    registry = LayoutRegistry()
    names = [name.format(block) for name in (*_IMAGES, *_WEIGHTS)]
    for name in names:
        tag = layout_named(name).tag
        registry.announce(
            name,
            to_standard=partial(reorder, source=tag, target=plain_layout(len(layout_named(name).order))),
            from_standard=partial(reorder, source=plain_layout(len(layout_named(name).order)), target=tag),
        )
    for source, target in permutations(names, 2):
        tags = layout_named(source).tag, layout_named(target).tag
        if len(layout_named(source).order) == len(layout_named(target).order):
            registry.announce_direct(source, target, partial(reorder, source=tags[0], target=tags[1]))
    return registry


def reorder(array: Any, shape: tuple[int, ...], *, source: str, target: str) -> np.ndarray:
    """A float32 tensor of logical ``shape`` from the layout ``source`` into ``target``, by oneDNN."""
    values = (
        ir.Value("src", shape, "float32", "input", source, 0),
        ir.Value("dst", shape, "float32", "output", target, 0),
    )
    step = operands.reorder("reorder", 0, 1)
    result = np.empty(parse_layout(target).physical_shape(shape), np.float32)
    module = library.create_module("reorder", ir.Program("reorder", values, (step,)))
    module["reorder"](*(tvm_ffi.from_dlpack(tensor) for tensor in (array, result)))
    return result
