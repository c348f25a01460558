"""Computes the cost of a Winograd convolution: matrix products on transformed patches, and the transforms.

filters    every matrix of transformed filters is read once, from memory: a model's do not fit caches;
           those that are no constant are transformed in each call as well
products   at the speed of dense matrix products; each batch of them takes a while to begin
patches    written and read in caches, several times each: by the transforms, and by the products
"""

from __future__ import annotations

from tvm_mxplan.core.element_types import item_bytes
from tvm_mxplan.core.machine import MachineRates
from tvm_mxplan.core.policies import ConvolutionAlgorithm
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.core.step_facts import StepFacts

from .vectors import has_narrow_vectors

_TILES: dict[ConvolutionAlgorithm, int] = {"winograd_f2": 2, "winograd_f4": 4}
_COMPUTED = "float32"  # in transforms and products, whatever type images are in
_ITEM = item_bytes(_COMPUTED)  # of filters and patches
_CHANNELS = 16  # rows of patches are padded to multiples of it
_EFFICIENCY, _COLUMNS = 1.0, 4.0  # of the matrix products: less where they have few columns
_ON_AVX2 = 0.5  # of that, where oneDNN has products by gemm alone, which packs filters in every call
_START_FORKS, _GROUP_FORKS = 20.0, 2.0  # to begin the products of a convolution, and of each of its groups
_PASSES = 4.0  # of the patches through the nearest cache
_SHOWN = 0.5  # of what threads exchange
_WRITTEN = 4.0  # of transformed filters: writing them in each call, beside reading them once from memory


def winograd_us(
    facts: StepFacts,
    attrs: ir.Convolution | ir.Deconvolution,
    machine: MachineRates,
    exchanging_us: float,
) -> float:
    """Microseconds without starting the step.

    Parameters
    ----------
    exchanging_us : for what threads read that others wrote.
    """
    groups, src_channels = attrs.groups, facts.shape("src")[1]
    filter_size = facts.shape("weights")[-1]  # square
    size = _TILES[attrs.algorithm]
    images, channels, height, width = facts.shape("dst")
    tiles = images * -(-height // size) * -(-width // size)
    elements = groups * (size + filter_size - 1) ** 2
    rows, columns = _padded(src_channels // groups), _padded(channels // groups)
    efficiency = _EFFICIENCY * (_ON_AVX2 if has_narrow_vectors(machine) else 1.0)
    rate = machine.gflops(_COMPUTED) * efficiency * columns / (columns + _COLUMNS)
    products = 2.0 * elements * tiles * rows * columns / rate / 1e3
    filters = 1.0 * _ITEM * elements * rows * columns / machine.memory.read / 1e3
    if not facts.is_constant("weights"):
        filters *= 1.0 + _WRITTEN
    patches = _PASSES * _ITEM * elements * tiles * (rows + columns) / machine.levels[0].copied / 1e3
    start = (_START_FORKS + _GROUP_FORKS * groups) * machine.fork_us
    return start + products + filters + patches + _SHOWN * exchanging_us


def _padded(channels: int) -> int:
    return -(-channels // _CHANNELS) * _CHANNELS
