"""A machine in numbers: what it computes and moves in a second, and where those numbers come from."""

from .devices import DeviceRates
from .rates import AVX2_FLOPS, Compute, KernelRate, MachineRates, MemoryLevel, UnusableRates, default_rates

__all__ = [
    "AVX2_FLOPS",
    "Compute",
    "DeviceRates",
    "KernelRate",
    "MachineRates",
    "MemoryLevel",
    "UnusableRates",
    "default_rates",
]
