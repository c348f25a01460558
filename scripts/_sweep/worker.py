"""One process of a sweep: the cases of a shard under one instruction set, told as lines of JSON.

{"about": "convolution ... : relu : acdb,... : brgconv:avx512_core"}      before each run
{"number": 17, "kind": ..., "isa": ..., "ran": [...], "faults": [...]}    after each case
{"number": 17, "isa": ..., "nothing": "none of ..."}      where there is nothing more to try, and why
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tvm_mxplan.byoc.host.layout_rules import RULES as HOST_RULES
from tvm_mxplan.byoc.onednn import library
from tvm_mxplan.byoc.onednn.backend import OneDNN
from tvm_mxplan.byoc.onednn.rewrites.integer_products import IntegerProducts
from tvm_mxplan.passes.layout.candidates import RulesOf

from . import grammar
from .drawing import NothingToDraw, draw
from .execution import Case, Outcome, prepare
from .shrinking import shrink
from .steps import chains
from .steps.element_types import families_of, type_of
from .tally import Fault

_LAYOUTS = 3
"""Choices of layouts for each case, of those that there are."""
_DEBUGGED = 8
"""One in so many cases runs with the runtime's own checks of memory."""


@dataclass(frozen=True)
class Work:
    """The task of a worker; ends after ``seconds`` or ``cases``, whichever comes first."""

    isa: str
    seed: int = 0
    shard: int = 0
    shards: int = 1
    first: int = 0
    seconds: float = 60.0
    cases: int = 1 << 60
    kinds: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    matching: str = ""
    shrinks: bool = True
    types: tuple[str, ...] = ("f32",)


def main(text: str) -> None:
    """Do the work that ``text``, JSON of a Work, describes."""
    run(Work(**json.loads(text)), lambda message: print(json.dumps(message), flush=True))


def run(work: Work, tell: Callable[[dict[str, Any]], None]) -> None:
    """Do the work; ``tell`` is told what is about to run, and what came of each case."""
    library.load()
    library.set_errata(False)
    backend = OneDNN()
    rules = rules_of(backend)
    integers = IntegerProducts.of(backend.isa) is not IntegerProducts.NONE
    families = families_of(
        work.types, lambda dtype: "" if dtype == "int8" and integers else backend.lacks(dtype)
    )
    lines = _lines(work)
    if not families:
        return
    deadline = time.monotonic() + work.seconds
    shrunk: set[tuple[str, ...]] = set()
    for number in range(work.first, work.first + work.cases * work.shards):
        if time.monotonic() > deadline:
            return
        if number % work.shards != work.shard:
            continue
        try:
            case, random = draw(lines, work.seed, number, families)
        except NothingToDraw as error:
            tell({"number": number, "isa": backend.isa, "nothing": str(error)})
            return

        def about(what: str, number: int = number) -> None:
            tell({"about": what, "number": number})

        about(str(case))
        prepared = prepare(case)
        if prepared is None:
            continue
        # A sum's own arrangement, in which an output lives on under a view, is none that plans make.
        has_sum = any(link.name == "sum" for link in case.chain)
        library.set_debug(number % _DEBUGGED == 0 and not has_sum)
        options = prepared.layouts(rules)
        outcomes = [
            outcome
            for at in random.permutation(len(options))[:_LAYOUTS]
            for outcome in prepared.outcomes(options[int(at)], about, work.matching)
        ]
        library.set_debug(False)
        faults = [
            _fault(outcome, backend, rules, work.shrinks, shrunk) for outcome in outcomes if outcome.wrong
        ]
        tell(
            {
                "number": number,
                "kind": case.problem.kind,
                "type": type_of(case.problem),
                "isa": backend.isa,
                "ran": [outcome.implementation for outcome in outcomes],
                "faults": [asdict(fault) for fault in faults],
            }
        )


def repeat(text: str) -> list[Outcome]:
    """The case that a report names, run again: problem, chain, layouts, implementation, apart by colons."""
    library.set_errata(False)
    problem, chain, *rest = (part.strip() for part in re.split(r"\s:\s", text))
    found: list[Outcome] = []
    prepared = prepare(Case(grammar.problem(problem), chains.parse(chain), 0))
    if prepared is None:
        raise ValueError(f"{problem} makes no sense")
    layouts = [tuple(rest[0].split(","))] if rest else prepared.layouts(rules_of(OneDNN()))
    matching = f"^{re.escape(rest[1])}$" if len(rest) > 1 else ""
    for option in layouts:
        found += list(prepared.outcomes(option, matching=matching))
    return found


def rules_of(backend: OneDNN) -> RulesOf:
    """The layout rules of the library that runs a step."""
    return lambda step: HOST_RULES if step.library == "host" else backend.layout_rules(step)


def _lines(work: Work) -> Sequence[grammar.Line]:
    lines = grammar.read([Path(name) for name in work.files])
    chosen = [line for line in lines if not work.kinds or line.kind in work.kinds]
    if not chosen:
        raise ValueError(f"no problems of the kinds {', '.join(work.kinds)}")
    return chosen


def _fault(
    outcome: Outcome, backend: OneDNN, rules: RulesOf, shrinks: bool, shrunk: set[tuple[str, ...]]
) -> Fault:
    group = (outcome.case.problem.kind, outcome.implementation, _sort(outcome.wrong))
    if shrinks and group not in shrunk:
        shrunk.add(group)
        outcome = shrink(outcome, rules)
    case = f"{outcome.case} : {','.join(outcome.layouts)} : {outcome.implementation}"
    kind, implementation, sort = group
    return Fault(kind, implementation, backend.isa, sort, case, outcome.wrong, outcome.work)


def _sort(wrong: str) -> str:
    for sort, sign in (
        ("fails", "fails"), ("padding", "of the padding"), ("memory", "written"), ("name", "was described"),
    ):  # fmt: skip
        if sign in wrong:
            return sort
    return "values"
