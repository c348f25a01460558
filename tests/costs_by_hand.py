"""Costs for tests: a machine's rates in a few numbers, and oneDNN's model at them."""

from __future__ import annotations

from tvm_mxplan.byoc.onednn.backend import OneDNN
from tvm_mxplan.byoc.onednn.costs import implementation_named
from tvm_mxplan.core.description import NOTHING_KNOWN, StepInfo
from tvm_mxplan.core.machine import Compute, MachineRates, MemoryLevel
from tvm_mxplan.passes.costs.model import ModelCost


def rates(
    gflops: float = 480.0, gbytes: float = 40.0, cache_bytes: int = 2 << 20, narrow: float = 0.5
) -> MachineRates:
    """A machine with one cache, twice as fast as memory; AVX2 reaches the share ``narrow`` of the peak.

    Bytes that threads exchange take a quarter of what bytes of memory do, beyond what their own take.
    """
    compute = Compute("float32", "avx512", gflops), Compute("float32", "avx2", narrow * gflops)
    levels = MemoryLevel(cache_bytes, 2 * gbytes, 2 * gbytes), MemoryLevel(None, gbytes, gbytes)
    return MachineRates(
        2,
        compute,
        levels[not cache_bytes :],
        start_us=0.5,
        fork_us=1.5,
        exchanged=0.4 * gbytes,
        region_us=1.5,
    )


def model(
    gflops: float = 480.0, gbytes: float = 40.0, cache_bytes: int = 2 << 20, narrow: float = 0.5
) -> ModelCost:
    """oneDNN's model on such a machine."""
    return ModelCost(OneDNN(), rates(gflops, gbytes, cache_bytes, narrow))


MODEL = ModelCost(OneDNN())
"""On a machine that nobody described."""


def info(implementation: str) -> StepInfo:
    """A step that runs in ``implementation``, one of oneDNN's."""
    return NOTHING_KNOWN.running(implementation_named(implementation))
