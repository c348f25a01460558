"""``Beside``: the device beside the CPU, of a function that runs on both."""

from __future__ import annotations

from dataclasses import dataclass

import tvm

from tvm_mxplan.byoc.backend import Backend, DeviceBackend
from tvm_mxplan.core.machine import DeviceRates


@dataclass(frozen=True)
class Beside:
    """A device beside the CPU.

    Attributes
    ----------
    target : TVM's for it.
    rates : of it, and of the way to it.
    preferred : whether operators are its own, unless the CPU is clearly faster; else the other way round.
    """

    target: tvm.target.Target
    rates: DeviceRates
    preferred: bool = True

    @property
    def name(self) -> str:
        return str(self.target.kind.name)

    def runs(self, backend: Backend) -> bool:
        """Whether a library's regions run on the device, and not on the CPU."""
        return isinstance(backend, DeviceBackend)
