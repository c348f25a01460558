"""The two devices of a function, and the record on the IR of which of them runs each operator.

    R.func_attr({"mxplan.devices": {"conv2d_0": "cuda", "take_0": "llvm"}})

Operators are known by the names that ``NameOperators`` gave them; those without are the CPU's.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import tvm
from tvm import relax

from tvm_mxplan.byoc.backend import Backend, DeviceBackend
from tvm_mxplan.core.machine import DeviceRates

CPU = "llvm"
"""The CPU, by the kind of TVM's target; other devices are called by theirs."""
DEVICES = "mxplan.devices"


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


def with_devices(function: relax.Function, chosen: Mapping[str, str]) -> relax.Function:
    """``function`` with the device of each of its operators, by their names."""
    return function.with_attr(DEVICES, dict(chosen))


def devices_in(mod: tvm.IRModule) -> dict[str, str] | None:
    """The devices of all operators of a module; None for a module of one device."""
    found: dict[str, str] | None = None
    for function in mod.functions.values():
        written = function.attrs.get(DEVICES) if getattr(function, "attrs", None) else None
        if written is not None:
            found = {} if found is None else found
            found |= {str(name): str(device) for name, device in written.items()}
    return found
