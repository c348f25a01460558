"""Engines on one case: answers judged first, then bursts of calls in turns."""

from __future__ import annotations

import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import numpy as np

from tvm_mxplan.testing.reference import worst_relative_l2

from ..harness.statistics import median
from .answers import reason
from .cases import Case
from .engines import Engine, Runner

BURST_SECONDS = 0.15
LEAST_CALLS = 3
clock = time.perf_counter


@dataclass
class Outcome:
    """The outcome of one engine on one case."""

    engine: Engine
    runner: Runner | None = None
    """None before it is prepared, and from the moment at which it fails."""
    compile_s: float | None = None
    first_call_s: float | None = None
    error: float | None = None
    bursts: list[float] = field(default_factory=list)
    """Seconds of a call, by round."""
    reason: str = ""
    """The reason where it has no times, else empty."""

    @property
    def ok(self) -> bool:
        return not self.reason

    @property
    def seconds(self) -> float | None:
        """The median of a call."""
        return median(self.bursts) if self.ok and self.bursts else None

    def fail(self, why: str) -> None:
        self.reason, self.runner = why, None


def measure(
    case: Case,
    engines: Sequence[Engine],
    right: Sequence[np.ndarray],
    rounds: int,
    prepare_seconds: float = 0.0,
) -> dict[str, Outcome]:
    """Outcomes by the engines' names; what an engine throws is the reason of its outcome.

    An engine has ``prepare_seconds`` to prepare and answer, 0 for as long as it takes: what comes later is
    its reason, and the others are timed.
    """
    outcomes = [Outcome(engine) for engine in engines]
    for outcome in outcomes:
        try:
            with _limited(prepare_seconds):
                _guarded(outcome, case, lambda one: _judge(one, case, right))
        except _Late:
            outcome.fail(f"not prepared in {prepare_seconds:g} s")
            _say(case, outcome, outcome.reason)
    calls: dict[str, int] = {}
    for outcome in outcomes:
        _guarded(outcome, case, lambda one: calls.update({one.engine.name: _calls_of_a_burst(one)}))
    for _ in range(rounds):
        for outcome in outcomes:
            _guarded(outcome, case, lambda one: one.bursts.append(_burst(one, calls[one.engine.name])))
    return {outcome.engine.name: outcome for outcome in outcomes}


class _Late(BaseException):
    """No Exception: compilers take one for a choice that failed, and go on."""


@contextmanager
def _limited(seconds: float) -> Iterator[None]:
    """Raises `_Late` in what takes longer, as soon as Python runs and each second again; 0 for no limit."""

    def over(*_: object) -> None:
        raise _Late

    before = signal.signal(signal.SIGALRM, over)
    signal.setitimer(signal.ITIMER_REAL, seconds, 1.0)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _guarded(outcome: Outcome, case: Case, do: Callable[[Outcome], object]) -> None:
    if not outcome.ok:
        return
    try:
        do(outcome)
    except Exception as error:  # whatever an engine throws is a dash in the table, not the end of the run
        if outcome.engine.ours:
            traceback.print_exc()
        outcome.fail(reason(error))
    if not outcome.ok:
        _say(case, outcome, outcome.reason)


def _judge(outcome: Outcome, case: Case, right: Sequence[np.ndarray]) -> None:
    """Prepares an engine and holds its first and third answer against the right one."""
    start = clock()
    outcome.runner = runner = outcome.engine.prepare(case)
    outcome.compile_s = clock() - start
    start = clock()
    answer = runner.run()
    runner.sync()
    outcome.first_call_s = clock() - start
    first = runner.fetch(answer)
    for _ in range(2):
        answer = runner.run()
        runner.sync()
    third = runner.fetch(answer)
    if outcome.engine.ours and not _same_bits(first, third):
        _say(case, outcome, "its first and third answer differ in bits")
    outcome.error = max(worst_relative_l2(one, right) for one in (first, third))
    told = f"prepared in {outcome.compile_s:.1f} s, first call {1e3 * outcome.first_call_s:.1f} ms"
    _say(case, outcome, f"{told}, error {outcome.error:.1e}")
    if not outcome.error <= case.tolerance:
        outcome.fail(f"wrong: a relative L2 of {outcome.error:.1e}, allowed is {case.tolerance:.1e}")
    if outcome.ok and runner.executable is not None and (failed := runner.executable.report.failed_plans):
        _say(case, outcome, f"{len(failed)} plans failed and have successors: {failed}")


def _same_bits(first: Sequence[np.ndarray], second: Sequence[np.ndarray]) -> bool:
    return [one.tobytes() for one in first] == [one.tobytes() for one in second]


def _calls_of_a_burst(outcome: Outcome) -> int:
    return max(LEAST_CALLS, int(BURST_SECONDS / max(_burst(outcome, LEAST_CALLS), 1e-6)))


def _burst(outcome: Outcome, calls: int) -> float:
    """Seconds of a call; each ends when the GPU has computed."""
    assert outcome.runner is not None
    run, sync = outcome.runner.run, outcome.runner.sync
    start = clock()
    for _ in range(calls):
        run()
        sync()
    return (clock() - start) / calls


def _say(case: Case, outcome: Outcome, what: str) -> None:
    print(f"bench gpu: {case.title} batch {case.batch}: {outcome.engine.name}: {what}", file=sys.stderr)
