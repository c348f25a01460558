"""Rates of a GPU, worked out from its properties: no GPU was at hand to measure one.

arithmetic   multiprocessors, their clock, and what one of them does in a cycle, as NVIDIA states it
memory       clock of the memory, twice a cycle, on a bus whose width the properties do not have: stated
starting     stated, as is the way to the CPU's memory
"""

from __future__ import annotations

from tvm_mxplan.core.machine import Compute, DeviceRates, MachineRates, MemoryLevel

from .device import Device

_LANES = {60: 64, 70: 64, 72: 64, 75: 64, 80: 64}
_NEWER_LANES = 128
"""Multiply-adds of float32 that a multiprocessor does in a cycle, by SM."""
_TENSOR = ((120, 512), (100, 4096), (90, 2048), (86, 512), (80, 1024), (70, 512))
"""The same of float16 on tensor cores, from an SM on; the first row that holds."""
_FIRST_OF_INTEGERS = 75
"""The first SM whose tensor cores multiply integers of 8 bits, twice as many as numbers of float16."""
_BUS_BITS = {60: 4096, 70: 4096, 80: 5120, 90: 5120, 100: 8192, 103: 8192}
_OTHER_BUS_BITS = 256
"""The width of the memory's bus in the usual GPU of an SM; smaller ones (A30, A2, L4) have less."""
_CACHE_SPEED = 3.0
"""Times the memory's speed: what the second cache has."""
_START_US, _COPY_START_US, _COPIED = 3.0, 10.0, 12.0
"""To begin a kernel; to begin and await a copy; GB/s of the CPU's pageable memory over PCIe."""
CORES, TENSOR_CORES = "cores", "tensor cores"
TF32 = "tf32"
"""Float32 on tensor cores, as an element type of its own."""


def rates_of(device: Device) -> DeviceRates:
    """The rates of a GPU; see the module's text."""
    found = device.properties
    cycles = device.multiprocessors * int(found["smClockRateKHz"]) / 1e6
    plain = 2 * cycles * _LANES.get(device.sm, _NEWER_LANES)
    compute = [Compute("float32", CORES, plain)]
    tensor = next((2 * cycles * each for sm, each in _TENSOR if device.sm >= sm), 0.0)
    if tensor:
        compute += [Compute(dtype, TENSOR_CORES, tensor) for dtype in ("float16", "bfloat16")]
        if device.sm >= _FIRST_OF_INTEGERS:
            compute += [Compute(dtype, TENSOR_CORES, 2 * tensor) for dtype in ("int8", "uint8")]
        compute.append(Compute(TF32, TENSOR_CORES, tensor / 2 if device.sm >= 80 else plain))
    bus = _BUS_BITS.get(device.sm, _OTHER_BUS_BITS)
    memory = 2 * int(found["memClockRateKHz"]) * bus / 8 / 1e6
    cache = int(found["l2CacheSize"])
    levels = [MemoryLevel(cache, _CACHE_SPEED * memory, _CACHE_SPEED * memory)] if cache else []
    machine = MachineRates(
        threads=1,
        compute=tuple(compute),
        levels=(*levels, MemoryLevel(None, memory, memory)),
        start_us=_START_US,
        fork_us=0.0,
        exchanged=memory,
        region_us=_START_US,
        source="default",
    )
    return DeviceRates(machine, _COPY_START_US, _COPIED)
