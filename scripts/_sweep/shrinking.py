"""Smaller cases that go wrong in the same way: numbers are halved and post-ops left out while one does."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from dataclasses import replace

from tvm_mxplan.passes.layout.candidates import Layouts, RulesOf

from .execution import Case, Outcome, prepare
from .grammar import Problem

_SECONDS = 15.0
_KEPT = ("g", "axis")


def shrink(outcome: Outcome, rules: RulesOf) -> Outcome:
    """The smallest that is found in a few seconds; ``outcome`` itself where nothing smaller is wrong."""
    deadline = time.monotonic() + _SECONDS
    found = True
    while found and time.monotonic() < deadline:
        found = False
        for case in _smaller(outcome.case):
            smaller = _again(case, outcome, rules)
            if smaller and smaller.work <= outcome.work:
                outcome, found = smaller, True
                break
            if time.monotonic() > deadline:
                break
    return outcome


def _smaller(case: Case) -> Iterator[Case]:
    for at in range(len(case.chain)):
        yield replace(case, chain=case.chain[:at] + case.chain[at + 1 :])
    for at, (name, value) in enumerate(case.problem.fields):
        if not isinstance(value, int) or name in _KEPT:
            continue
        least = int(name[0] in "mikos")  # paddings, gaps and switches may vanish
        for less in dict.fromkeys((least, value // 2, value * 3 // 4, value - 1)):
            if least <= less < value:
                fields = (*case.problem.fields[:at], (name, less), *case.problem.fields[at + 1 :])
                yield replace(case, problem=Problem(case.problem.kind, fields))


def _again(case: Case, like: Outcome, rules: RulesOf) -> Outcome | None:
    """Runs the same implementation on a case in the same layouts and returns the outcome if it is wrong."""
    try:
        prepared = prepare(case)
    except ValueError:  # post-ops of other shapes
        return None
    if prepared is None:
        return None
    options = prepared.layouts(rules)
    layouts: Layouts = like.layouts
    if len(options[0]) != len(layouts):
        layouts = next((one for one in options if one[0] == layouts[0]), options[0])
    for outcome in prepared.outcomes(layouts, matching=f"^{re.escape(like.implementation)}$"):
        return outcome if outcome.wrong else None
    return None
