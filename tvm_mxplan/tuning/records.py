"""Measurements, as plain values and as lines of text; no clock and no library in here.

    {"mxplan_tuning": 1, "machine": {...}}                          one header
    {"check": "...", "digest": "...", "kind": "step", ...}          a line for each record

A record answers one question, which its digest stands for.  ``check`` is a digest over the rest of the line,
so that a line that was cut or changed is told from a good one.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

VERSION = 1
KINDS = ("step", "reorder", "copy", "group", "plan", "dispatch", "engine")
_COMPARED = ("plan", "dispatch", "engine")


class UnusableRecords(Exception):
    """A file of records that cannot be used; the message is the reason."""


@dataclass(frozen=True)
class Record:
    """One measurement.

    Attributes
    ----------
    kind : ``step`` for an operator in one layout and algorithm; ``reorder``, ``copy`` and ``group`` (a
        reorder and what reads it) for movement; ``plan`` for a whole model, ``dispatch`` for who runs its
        operators; ``engine`` for a GPU library's engines for one graph.
    digest : of the question.
    text : the question for who reads it.
    value : microseconds; of a plan, what its strategy counts.
    repeats : how many runs it rests on.
    when : seconds since 1970.
    plan : of those three, how the candidates did and what the best one decided.
    """

    kind: str
    digest: str
    text: str
    value: float
    repeats: int
    when: float
    plan: PlanResult | None = None


@dataclass(frozen=True)
class PlanResult:
    """Whole plans compared.

    Attributes
    ----------
    table : value of each candidate by its name, the best one first; those that are one program share theirs.
    complete : whether all candidates were compared; else the budget was spent before.
    decided : programs of the best one, in base64, by ``kind/digest`` of the questions they answer; of a
        dispatch, implementations by the kinds of operators that they get; of engines, the fastest.
    """

    table: tuple[tuple[str, float], ...]
    complete: bool
    decided: tuple[tuple[str, str], ...]

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> PlanResult:
        """Inverse of ``dataclasses.asdict``."""
        table = tuple((str(name), float(value)) for name, value in data["table"])
        decided = tuple((str(key), str(value)) for key, value in data["decided"])
        return cls(table, data["complete"] is True, decided)


class Records:
    """Records of one machine, the better supported of each question."""

    def __init__(self, records: Iterable[Record] = ()) -> None:
        self._by_question: dict[tuple[str, str], Record] = {}
        self._origins: dict[tuple[str, str], str] = {}
        self.merge(records)

    def __len__(self) -> int:
        return len(self._by_question)

    def __iter__(self) -> Iterator[Record]:
        return iter(self._by_question.values())

    def find(self, kind: str, digest: str) -> Record | None:
        return self._by_question.get((kind, digest))

    def origin(self, record: Record) -> str:
        """The file that the record of this question was read from; '' where it was made here."""
        return self._origins.get((record.kind, record.digest), "")

    def merge(self, others: Iterable[Record], origin: str = "") -> None:
        """Take over what is new, or complete, or rests on more runs; at equal numbers the later one."""
        for record in others:
            key = record.kind, record.digest
            known = self._by_question.get(key)
            if known is None or _support(record) > _support(known):
                self._by_question[key] = record
                self._origins[key] = origin


def _support(record: Record) -> tuple[bool, int, float]:
    return record.plan is None or record.plan.complete, record.repeats, record.when


def header_line(machine: Mapping[str, Any]) -> str:
    return json.dumps({"machine": machine, "mxplan_tuning": VERSION}, sort_keys=True) + "\n"


def record_line(record: Record) -> str:
    fields = {name: value for name, value in asdict(record).items() if value is not None}
    return json.dumps({**fields, "check": _check(fields)}, sort_keys=True) + "\n"


def parse(text: str, machine: Mapping[str, Any]) -> tuple[Records, int]:
    """The records of a file, and the number of damaged lines, which are left out.

    Raises
    ------
    UnusableRecords : no header, or one of another version or machine; the reason names what differs.
    """
    lines = text.splitlines()
    _check_header(lines[0] if lines else "", machine)
    parsed = [_parse_line(line) for line in lines[1:] if line]
    return Records(record for record in parsed if record), sum(record is None for record in parsed)


def _check_header(line: str, machine: Mapping[str, Any]) -> None:
    try:
        header = json.loads(line)
        version, theirs = header["mxplan_tuning"], dict(header["machine"])
    except (ValueError, KeyError, TypeError, RecursionError):
        raise UnusableRecords("no tuning records: the first line is not their header") from None
    if version != VERSION:
        raise UnusableRecords(f"records of version {version}, this build reads {VERSION}")
    ours = json.loads(json.dumps(machine))
    for name in sorted({*theirs, *ours}):
        if name not in theirs or theirs[name] != ours.get(name):
            raise UnusableRecords(f"measured with {name} {theirs.get(name)!r}, here it is {ours.get(name)!r}")


def _parse_line(line: str) -> Record | None:
    try:
        fields = json.loads(line)
        if fields.pop("check") != _check(fields):
            return None
        plan = fields.pop("plan", None)
        if plan is not None:
            plan = PlanResult.from_json(plan)
        record = Record(**fields, plan=plan)
        usable = record.kind in KINDS and math.isfinite(record.value) and record.repeats > 0
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None
    return record if usable and (record.kind in _COMPARED) == (record.plan is not None) else None


def _check(fields: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(fields, sort_keys=True).encode()).hexdigest()[:16]
