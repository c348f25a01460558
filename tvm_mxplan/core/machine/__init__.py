"""A machine in numbers: what it computes and moves in a second, and where those numbers come from."""

from .devices import DeviceRates
from .rates import Compute, KernelRate, MachineRates, MemoryLevel, UnusableRates, default_rates

__all__ = [
    "Compute",
    "DeviceRates",
    "KernelRate",
    "MachineRates",
    "MemoryLevel",
    "UnusableRates",
    "default_rates",
]
