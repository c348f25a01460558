"""``DeviceRates``: a device beside the CPU, as estimates of time know it."""

from __future__ import annotations

from dataclasses import dataclass

from .rates import MachineRates


@dataclass(frozen=True)
class DeviceRates:
    """A device's rates and those of the way to it.

    Attributes
    ----------
    machine : what it computes and moves in memory of its own.
    copy_start_us : to begin a copy between it and the CPU, and to wait for its end.
    copied : GB/s of such a copy.
    """

    machine: MachineRates
    copy_start_us: float
    copied: float

    def copying_us(self, nbytes: int) -> float:
        """Microseconds until so many bytes have come from one to the other."""
        return self.copy_start_us + nbytes / self.copied / 1e3
