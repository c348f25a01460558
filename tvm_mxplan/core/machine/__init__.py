"""A machine in numbers: what it computes and moves in a second, and where those numbers come from."""

from .rates import Compute, MachineRates, MemoryLevel, UnusableRates, default_rates

__all__ = ["Compute", "MachineRates", "MemoryLevel", "UnusableRates", "default_rates"]
