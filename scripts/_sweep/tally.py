"""Counts of what was tried, and what was wrong: the report of a sweep."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True)
class Fault:
    """One thing that an implementation does wrong, by its smallest case."""

    kind: str
    implementation: str
    isa: str
    sort: str
    case: str
    wrong: str
    work: int
    count: int = 1

    @property
    def group(self) -> tuple[str, str, str, str]:
        return (self.kind, self.implementation, self.isa, self.sort)

    def joined(self, other: Fault) -> Fault:
        """Both as one: the smaller case, and how many there were."""
        smaller = min(self, other, key=lambda one: one.work)
        return Fault(**{**asdict(smaller), "count": self.count + other.count})


@dataclass
class Tally:
    """The results of any number of cases."""

    runs: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    """By kind, instruction set and implementation."""
    cases: Counter[tuple[str, str]] = field(default_factory=Counter)
    """Problems with post-ops, by kind and instruction set."""
    faults: dict[tuple[str, str, str, str], Fault] = field(default_factory=dict)
    ended: dict[str, str] = field(default_factory=dict)
    """By instruction set, why a sweep had nothing more to try."""
    seconds: float = 0.0

    def add_fault(self, fault: Fault) -> None:
        known = self.faults.get(fault.group)
        self.faults[fault.group] = fault if known is None else known.joined(fault)

    def add(self, message: dict[str, Any]) -> None:
        """Adds the results in a worker's message."""
        if "nothing" in message:
            self.ended[message["isa"]] = message["nothing"]
            return
        self.cases[message["kind"], message["isa"]] += 1
        for implementation in message["ran"]:
            self.runs[message["kind"], message["isa"], implementation] += 1
        for fault in message["faults"]:
            self.add_fault(Fault(**fault))

    def lines(self) -> Iterator[str]:
        """The report in Markdown."""
        isas = sorted({isa for _, isa in self.cases})
        yield f"| kind | {' | '.join(isas)} | runs | implementations |"
        yield "| --- |" + " ---: |" * (len(isas) + 2)
        for kind in sorted({kind for kind, _ in self.cases}):
            counts = " | ".join(f"{self.cases[kind, isa]:,}" for isa in isas)
            own = {key: count for key, count in self.runs.items() if key[0] == kind}
            names = len({implementation for _, _, implementation in own})
            yield f"| {kind} | {counts} | {sum(own.values()):,} | {names} |"
        yield ""
        yield f"{sum(self.cases.values()):,} cases, {sum(self.runs.values()):,} runs, {self.seconds:,.0f} s"
        yield ""
        for isa, reason in sorted(self.ended.items()):
            yield f"{isa} ended early: {reason}"
        yield from self._fault_lines()

    def by_implementation(self) -> Iterator[str]:
        """Runs of each implementation."""
        for (kind, isa, implementation), count in sorted(self.runs.items()):
            yield f"{kind:22} {isa:24} {count:8,}  {implementation}"

    def _fault_lines(self) -> Iterator[str]:
        if self.cases and not self.faults:
            yield "nothing is wrong"
        for fault in sorted(self.faults.values(), key=lambda one: one.group):
            total = self.runs[fault.kind, fault.isa, fault.implementation]
            what = f"{fault.kind} {fault.implementation} on {fault.isa}, {fault.sort}"
            yield f"WRONG {what}: {fault.count} of {total} runs"
            yield f"      smallest  {fault.case}"
            yield f"                {fault.wrong}"
