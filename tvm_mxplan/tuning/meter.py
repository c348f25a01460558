"""``Measurements``: what one tuning knows and may still spend; every measurement goes through it."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from ..core.fingerprint import Fingerprint
from ..core.program import codec
from ..core.program import program as ir
from ..passes.layout.measure import MeasuredKind, Sample
from .progress import Callback, Progress
from .records import Record, Records

_STAGE = {"step": "operators", "reorder": "groups", "copy": "groups", "group": "groups", "plan": "plans"}
STEPS_SHARE = 0.6
"""Of the budget, what single steps and groups may use; the rest is for whole plans."""


class Measurements:
    """A ``Meter`` with records, a budget, and somebody to tell.

    Parameters
    ----------
    records : what is known.
    keep : is given each new record at once.
    seconds, trials : the budget; no limit on trials where that is None.  With 0 seconds nothing is measured.
    threads : that questions are measured with, where it is not the process's number; part of the question.
    """

    def __init__(
        self,
        records: Records,
        keep: Callable[[Record], None],
        seconds: float,
        trials: int | None = None,
        progress: Callback | None = None,
        threads: int | None = None,
    ) -> None:
        self.records = records
        self.budget = seconds
        self.spent = 0.0
        self.measured: Counter[str] = Counter()
        self.known: Counter[str] = Counter()
        self.modelled: Counter[str] = Counter()
        self._keep = keep
        self._trials = trials
        self._progress = progress
        self._threads = threads
        self._asked: dict[tuple[str, str], float | None] = {}

    def left(self, share: float = 1.0) -> bool:
        """Whether ``share`` of the budget is not spent yet."""
        trials = self._trials is None or sum(self.measured.values()) < share * self._trials
        return trials and self.spent < share * self.budget

    def microseconds(
        self, kind: MeasuredKind, question: ir.Program, measure: Callable[[], Sample]
    ) -> float | None:
        digest = self.digest(kind, question)
        if (kind, digest) not in self._asked:
            self._asked[kind, digest] = self._answer(kind, digest, question, measure)
        return self._asked[kind, digest]

    def digest(self, kind: str, question: ir.Program) -> str:
        fingerprint = Fingerprint()
        fingerprint.add("kind", kind)
        fingerprint.add("threads", self._threads)
        fingerprint.add("question", codec.encode(question))
        return fingerprint.hexdigest()

    def note(self, record: Record) -> None:
        """Take over a measurement."""
        self.records.merge([record])
        self._keep(record)

    def tell(self, stage: str, text: str, value: float, unit: str, best: tuple[str, float] | None) -> None:
        """Count a measurement, and tell of it."""
        self.measured[stage] += 1
        if self._progress is not None:
            done = sum(self.measured.values())
            self._progress(Progress(stage, text, value, unit, best, done, self.spent, self.budget))

    @contextmanager
    def spending(self) -> Iterator[None]:
        """The seconds inside count."""
        start, before = time.perf_counter(), self.spent
        try:
            yield
        finally:
            self.spent = before + time.perf_counter() - start

    def _answer(
        self, kind: MeasuredKind, digest: str, question: ir.Program, measure: Callable[[], Sample]
    ) -> float | None:
        stage = _STAGE[kind]
        known = self.records.find(kind, digest)
        if known is not None:
            self.known[stage] += 1
            return known.value
        if not self.left(STEPS_SHARE):
            self.modelled[stage] += 1
            return None
        with self.spending():
            value, repeats = measure()
        text = describe(question)
        self.note(Record(kind, digest, text, value, repeats, time.time()))
        self.tell(stage, text, value, "us", None)
        return value


class KnownMeter:
    """A ``Meter`` that knows what ``measurements`` do, and measures nothing."""

    def __init__(self, measurements: Measurements) -> None:
        self._measurements = measurements

    def microseconds(
        self, kind: MeasuredKind, question: ir.Program, _measure: Callable[[], Sample]
    ) -> float | None:
        found = self._measurements.records.find(kind, self._measurements.digest(kind, question))
        return found.value if found else None


def describe(question: ir.Program) -> str:
    """A question in words, as ``reorder + convolution 1x64x56x56 acdb -> acdb winograd_f4``."""
    first, last = question.steps[0], question.steps[-1]
    source = question.values[first.operand("src")]
    result = question.values[last.dst]
    parts = [
        " + ".join(step.kind for step in question.steps),
        "x".join(map(str, source.shape)),
        source.layout,
        "->",
        "x".join(map(str, result.shape)),
        result.layout,
    ]
    algorithm = getattr(last.attrs, "algorithm", "")
    return " ".join([*parts, str(algorithm)]).strip()
