"""Records of what networks took on a machine, beside its rates, by which estimates are checked elsewhere.

    {"machine": "AMD EPYC of the Zen 5 kind", "date": "2026-11-24", "rates": {...}, "rates_from": "measured",
     "networks": [{"name": "resnet50", "batch": 1, "taken_us": 28300.0}, ...]}

Rates are those that plans were made by (``tvm_mxplan/core/machine/rates.py``). Another machine plans the same
networks by them, and holds its estimates against the times of the record: that is the estimate which a plan
for that machine would rest on, made without it. Kernels are described by the library here, so it should be
of the same version, on a processor with the same instruction sets.
"""

from __future__ import annotations

import datetime
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tvm_mxplan.core.machine import MachineRates, UnusableRates
from tvm_mxplan.core.processor import processor_fields
from tvm_mxplan.errors import InvalidInputError

WITHIN = 1.3
"""The times that an estimate may be off by, either way."""


@dataclass(frozen=True)
class Taken:
    """Microseconds of a call of a network."""

    name: str
    batch: int
    taken_us: float


@dataclass(frozen=True)
class Record:
    """See the module's text.

    Attributes
    ----------
    rates_from : how the rates were found; what was not measured is named here.
    """

    machine: str
    date: str
    rates: MachineRates
    networks: tuple[Taken, ...]
    rates_from: str = "measured"

    def to_json(self) -> dict[str, Any]:
        return {
            "machine": self.machine,
            "date": self.date,
            "rates_from": self.rates_from,
            "rates": self.rates.to_json(),
            "networks": [vars(one) for one in self.networks],
        }

    @classmethod
    def read(cls, path: Path) -> Record:
        """Reads a file; InvalidInputError says what is wrong with it."""
        try:
            data = json.loads(path.read_text())
            networks = tuple(
                Taken(str(one["name"]), int(one["batch"]), float(one["taken_us"])) for one in data["networks"]
            )
            rates = MachineRates.from_json(data["rates"])
            return cls(data["machine"], data["date"], rates, networks, data["rates_from"])
        except OSError as error:
            raise InvalidInputError(f"{path}: {error.strerror or error}") from None
        except (ValueError, KeyError, TypeError, UnusableRates) as error:
            raise InvalidInputError(f"{path}: no record of `bench costs --record`: {error}") from None


def record_here(rates: MachineRates, taken_us: Mapping[tuple[str, int], float]) -> Record:
    """The times measured on this machine today."""
    model = processor_fields().get("model name", "an unnamed processor")
    networks = tuple(Taken(name, batch, us) for (name, batch), us in taken_us.items())
    return Record(model, datetime.date.today().isoformat(), rates, networks)


def write(record: Record, path: Path) -> None:
    path.write_text(json.dumps(record.to_json(), indent=1) + "\n")


def checked(record: Record, names: Sequence[str]) -> list[Taken]:
    """The networks of a record with these names, all where none is given; InvalidInputError for others."""
    lacking = set(names) - {one.name for one in record.networks}
    if lacking:
        raise InvalidInputError(f"--models: the record has no {', '.join(sorted(lacking))}")
    return [one for one in record.networks if not names or one.name in names]


def is_near(taken_us: float, estimated_us: float) -> bool:
    """Whether an estimate is as near as it should be."""
    return 1 / WITHIN <= taken_us / max(estimated_us, 1e-3) <= WITHIN
