"""``Device``: the GPU that plans are made for, by the properties that cuDNN knows one by.

A file of them is JSON as cuDNN writes it; ``tvmc device-properties -o FILE`` writes one where the GPU is.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tvm_mxplan.errors import InvalidInputError

_LISTS = ("maxGridSize", "maxBlockSize")
_NUMBERS = (
    "cudaDeviceId", "deviceVer", "driverVer", "isTccDriver", "l2CacheSize", "maxCtasPerSM",
    "maxRegistersPerSM", "maxSharedMemoryPerBlock", "maxSharedMemoryPerBlockOptin", "maxThreadsPerBlock",
    "maxThreadsPerSM", "memClockRateKHz", "multiProcessorCount", "pciDeviceId", "regsPerBlock",
    "reservedSharedMemoryPerBlock", "smClockRateKHz", "supportCoopLaunch", "totalGlobalMem", "warpSize",
)  # fmt: skip


_PLACES = ("cudaDeviceId", "pciDeviceId")
"""The GPU's slot in its machine, which plans do not depend on."""


@dataclass(frozen=True)
class Device:
    """A GPU; ``text`` are all its properties but its slot, as JSON with sorted keys."""

    name: str
    sm: int
    multiprocessors: int
    driver: int
    text: str

    @property
    def properties(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.text)
        return found

    @property
    def arch(self) -> str:
        """The name that compilers give the architecture."""
        return f"sm_{self.sm}"

    def __str__(self) -> str:
        return f"{self.name} (SM {self.sm}, {self.multiprocessors} multiprocessors, driver {self.driver})"


def read_device(path: str | os.PathLike[str]) -> Device:
    """The device of a file; InvalidInputError says what the file lacks."""
    try:
        found = json.loads(Path(path).read_bytes())
    except OSError as error:
        raise InvalidInputError(f"{path}: cannot be read ({error.strerror})") from error
    except ValueError as error:
        raise InvalidInputError(f"{path}: no device properties, but {error}; {_WAY_OUT}") from error
    return device_of(found, str(path))


_WAY_OUT = "write them with tvmc device-properties -o FILE on the machine with the GPU"


def device_of(found: object, where: str) -> Device:
    """A device from its properties; ``where`` they come from is for messages."""
    if not isinstance(found, Mapping):
        raise InvalidInputError(f"{where}: expected an object of device properties; {_WAY_OUT}")
    for name in (*_LISTS, *_NUMBERS, "deviceName"):
        if name not in found:
            raise InvalidInputError(f"{where}: the device property {name} is missing; {_WAY_OUT}")
        if not _fits(name, found[name]):
            raise InvalidInputError(f"{where}: the device property {name} is {found[name]!r}; {_WAY_OUT}")
    version = int(found["deviceVer"])
    if version < 500 or version % 10:
        raise InvalidInputError(f"{where}: deviceVer is {version}, expected for example 900 for SM 90")
    text = json.dumps({**found, **dict.fromkeys(_PLACES, 0)}, sort_keys=True)
    driver, multiprocessors = int(found["driverVer"]), int(found["multiProcessorCount"])
    return Device(str(found["deviceName"]), version // 10, multiprocessors, driver, text)


def _fits(name: str, value: object) -> bool:
    if name == "deviceName":
        return isinstance(value, str)
    if name in _LISTS:
        return isinstance(value, list) and len(value) == 3 and all(type(one) is int for one in value)
    return type(value) is int and 0 <= value < 2**63
