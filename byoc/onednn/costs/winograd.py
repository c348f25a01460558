"""Computes the cost of a Winograd convolution: matrix products on transformed patches, and the transforms.

filters    every matrix of transformed filters is read once, from memory: a model's do not fit caches
products   at the speed of dense matrix products, or that of reading the filters if this is slower
patches    written and read once each, in caches
"""

from __future__ import annotations

from tvm_mxplan.core.element_types import item_bytes
from tvm_mxplan.core.machine import MachineRates
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.core.step_facts import StepFacts

_TILES: dict[ir.ConvolutionAlgorithm, int] = {"winograd_f2": 2, "winograd_f4": 4}

_CHANNELS = 16  # rows of patches are padded to multiples of it
_ITEM = item_bytes("float32")  # of filters and patches, in the only type there is an algorithm for
_EFFICIENCY = 0.93  # of the matrix products
_CACHE_SPEED = 2.0  # of the transforms, as a multiple of the speed of memory


def winograd_cost(facts: StepFacts, attrs: ir.Convolution, machine: MachineRates) -> float:
    """Microseconds, without what moving src and dst takes."""
    groups, src_channels = attrs.groups, facts.shape("src")[1]
    filter_size = facts.shape("weights")[-1]  # square
    gflops, gbytes_per_s = machine.gflops(facts.dtype("src")), machine.memory.copied
    size = _TILES[attrs.algorithm]
    images, channels, height, width = facts.shape("dst")
    tiles = images * -(-height // size) * -(-width // size)
    elements = groups * (size + filter_size - 1) ** 2
    rows, columns = _padded(src_channels // groups), _padded(channels // groups)
    products = 2.0 * elements * tiles * rows * columns / gflops / _EFFICIENCY / 1e3
    filters = 1.0 * _ITEM * elements * rows * columns / gbytes_per_s / 1e3
    patches = 1.0 * _ITEM * elements * tiles * (rows + columns) / (_CACHE_SPEED * gbytes_per_s) / 1e3
    return max(products, filters) + patches


def _padded(channels: int) -> int:
    return -(-channels // _CHANNELS) * _CHANNELS
