"""``Tuning``: what one compilation measures, where that is kept, and what is told about it."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import tvm

from .. import environment
from ..byoc.backend import Backend
from ..cache.container import UnusableCache
from ..cache.safe_file import check_owner
from ..errors import InvalidInputError
from ..options import Options
from ..passes.costs.source import CostSource
from ..passes.layout.measure import Meter, StepTimer
from .facts import digest_of
from .meter import KnownMeter, Measurements
from .place import Here, Place
from .progress import Callback
from .record_file import RecordFile
from .records import PlanResult, Record, Records, UnusableRecords
from .report import TuningReport
from .values import UNITS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


class Tuning:
    """One compilation's measurements.

    Parameters
    ----------
    target : what whole plans are built for.
    output : a file for all that is known in the end, and for each measurement as it is made.
    place : where measurements are made, and what they are kept by.

    Attributes
    ----------
    measures : whether anything may be measured; else only what records know counts.
    times_steps : whether single operators are timed; byte counts and joules need no such times.

    Raises
    ------
    InvalidInputError : the file of records to start from, or ``output``, cannot be used.
    UnsupportedError : that machine lacks what the strategy needs.
    """

    def __init__(
        self,
        options: Options,
        target: tvm.target.Target,
        progress: Callback | None = None,
        output: Path | None = None,
        place: Place | None = None,
    ) -> None:
        self.target = target
        self.place = Here() if place is None else place
        self.measures = options.tune == "measure"
        self.times_steps = options.tune_for in ("latency", "throughput")
        self._options = options
        self._notes: list[str] = []
        self._result: PlanResult | None = None
        self._tried: PlanResult | None = None
        self.place.check(options.tune_for)
        facts = self.place.facts
        records = Records()
        self._files: list[RecordFile] = []
        if options.tuning_records is not None:
            given = RecordFile(Path(options.tuning_records), facts)
            records.merge(self._loaded(given, must=True), str(given.path))
        if output is not None:
            file = RecordFile(output, facts)
            records.merge(self._loaded(file, must=output.exists()), str(output))
            file.merge(records)
            self._files.append(file)
        if self.measures and options.cache != "disabled":
            records.merge(self._stored(facts), "stored tuning records")
        single = options.tune_for == "throughput" and self.place.threads > 1
        self._threads = 1 if single else None
        self.meter = Measurements(
            records,
            self._keep,
            options.tune_seconds if self.measures else 0.0,
            options.tune_trials,
            progress,
            threads=self._threads,
        )

    def cost(self, backend: Backend, model: CostSource) -> CostSource:
        """Returns the source of the costs of steps, measured or else from ``model``."""
        return self._cost(backend, model, self.meter)

    def known_cost(self, backend: Backend, model: CostSource) -> CostSource:
        """The same, without measuring anything, and without a trace in what is told about the compilation."""
        return self._cost(backend, model, KnownMeter(self.meter))

    def _cost(self, backend: Backend, model: CostSource, meter: Meter) -> CostSource:
        if not self.times_steps:
            return model
        timing = partial(self.place.time, backend, threads=self._threads)
        return StepTimer(timing, model, meter)

    def skipped(self, reason: str) -> None:
        self._notes.append(reason)

    def origin_of(self, record: Record) -> str:
        """The file that a record is from, for who has to say what is wrong with it."""
        return self.meter.records.origin(record)

    def found(self, result: PlanResult) -> None:
        """Whole plans that records know of."""
        self.meter.known["plans"] += len({value for _, value in result.table})
        self._result = result

    def compared(self, result: PlanResult) -> None:
        self._result = result

    def tried(self, result: PlanResult) -> None:
        """Whole plans with operators in TVM, measured now or known."""
        self._tried = result

    def close(self) -> TuningReport:
        """Merge what is known into the output, and say what came of it all."""
        for file in self._files:
            try:
                file.merge(self.meter.records)
            except InvalidInputError as error:
                self._notes.append(str(error))
        table = self._result.table if self._result else ()
        return TuningReport(
            self._options.tune_for,
            UNITS[self._options.tune_for],
            dict(self.meter.measured),
            dict(self.meter.known),
            dict(self.meter.modelled),
            round(self.meter.spent, 3),
            table,
            table[0][0] if table else "",
            tuple(dict.fromkeys(self._notes)),
            self._tried.table if self._tried and len(self._tried.table) > 1 else (),
        )

    def _keep(self, record: Record) -> None:
        for file in list(self._files):
            try:
                file.append(record)
            except OSError as error:
                self._files.remove(file)
                self._notes.append(f"{file.path}: not kept ({error.strerror or error})")

    def _stored(self, facts: Mapping[str, object]) -> Iterable[Record]:
        """Records that earlier compilations left in the cache folder; what cannot be used is a note."""
        folder = environment.cache_folder()
        try:
            if folder is None:
                raise UnusableRecords("no absolute folder for records; set TVM_MXPLAN_CACHE_DIR to one")
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)  # a mode is for the last one alone
            folder /= "tuning"
            folder.mkdir(mode=0o700, exist_ok=True)
            check_owner(folder.lstat())
            file = RecordFile(folder / f"{digest_of(facts)[:16]}.jsonl", facts)
            self._files.append(file)
            return self._loaded(file, must=False)
        except (OSError, UnusableCache, UnusableRecords) as error:
            self._notes.append(f"records are not kept: {error}")
            return ()

    def _loaded(self, file: RecordFile, must: bool) -> Iterable[Record]:
        try:
            records, damaged = file.load()
        except UnusableRecords as error:
            if must:
                raise InvalidInputError(f"{file.path}: {error}") from None
            if file.path.exists():
                self._notes.append(f"{file.path}: not used, {error}")
            return ()
        if damaged:
            self._notes.append(f"{file.path}: {damaged} damaged line(s) left out")
        return records
