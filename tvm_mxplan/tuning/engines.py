"""``EngineTuning``: times of a GPU's engines, by ``Tuning``'s records and budget.

Records are of the GPU and its libraries, whatever CPU is beside it: they are made where it is, and taken by
compilations anywhere that have the file of its properties.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import tvm

from ..byoc import registry
from ..configuration import distribution_version
from ..core.fingerprint import Fingerprint
from ..errors import InvalidInputError, UnsupportedError
from ..options import Options
from .facts import SCHEMA
from .place import Here
from .progress import Callback
from .records import PlanResult, Record
from .report import TuningReport
from .tuning import Tuning


class _OnGpu(Here):
    """This process, with the facts of a GPU in the place of the CPU's."""

    def __init__(self, facts: Mapping[str, Any]) -> None:
        self._facts = {**facts, "plug-in": distribution_version("tvm_mxplan"), "schema": [SCHEMA, "engines"]}

    @property
    def facts(self) -> Mapping[str, Any]:
        return self._facts

    def check(self, strategy: str) -> None:
        if strategy != "latency":
            raise UnsupportedError(
                f"option tune_for={strategy}: engines of a GPU are compared by their times; leave it out"
            )


class EngineTuning:
    """Measured times of a GPU's engines in one compilation; see :class:`tvm_mxplan.byoc.backend.EngineTimes`.

    Parameters
    ----------
    output : a file for all that is known in the end, and for each measurement as it is made.

    Raises
    ------
    UnsupportedError : something is to be measured, and there is no GPU.
    """

    def __init__(
        self,
        options: Options,
        library: str,
        host: tvm.target.Target,
        progress: Callback | None,
        output: Path | None,
    ) -> None:
        absent = registry.engine(library).absent() if options.tune == "measure" else ""
        if absent:
            raise UnsupportedError(
                f"option tune=measure: {absent}, or compile here with tuning_records that were made there"
            )
        self._options = options
        self._host = host
        self._progress = progress
        self._output = output
        self._tuning: Tuning | None = None
        self._asked: dict[str, str | None] = {}

    def on_device(self, facts: Mapping[str, Any]) -> EngineTuning:
        """The same with the records of a device.

        Raises
        ------
        InvalidInputError : of a file of records that cannot be used, or that is another device's.
        """
        self._tuning = Tuning(self._options, self._host, self._progress, self._output, _OnGpu(facts))
        return self

    def close(self) -> TuningReport | None:
        return None if self._tuning is None else self._tuning.close()

    def find(self, question: str) -> str | None:
        tuning = self._known
        if question not in self._asked:
            record = tuning.meter.records.find("engine", _digest(question))
            self._asked[question] = (
                dict(record.plan.decided).get("engine") if record and record.plan else None
            )
            if self._asked[question] is not None:
                tuning.meter.known["engines"] += 1
            elif not self.may_measure():
                tuning.meter.modelled["engines"] += 1
        return self._asked[question]

    def may_measure(self) -> bool:
        return self._known.measures and self._known.meter.left()

    def spending(self) -> AbstractContextManager[None]:
        return self._known.meter.spending()

    def keep(self, question: str, title: str, times: Mapping[str, float], runs: int) -> None:
        if not times:
            raise InvalidInputError(f"{title}: no times of engines")
        meter = self._known.meter
        table = tuple(sorted(times.items(), key=lambda one: one[1]))
        name, best = table[0]
        result = PlanResult(table, True, (("engine", name),))
        meter.note(Record("engine", _digest(question), title, best, runs, time.time(), result))
        meter.tell("engines", f"{title}: {name} of {len(table)}", best, "us", None)
        self._asked[question] = name

    @property
    def _known(self) -> Tuning:
        assert self._tuning is not None, "on_device comes first"
        return self._tuning


def _digest(question: str) -> str:
    fingerprint = Fingerprint()
    fingerprint.add("engine", question)
    return fingerprint.hexdigest()
