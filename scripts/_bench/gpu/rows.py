"""The table of scripts/bench gpu: a row for each case."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..harness.table import NOTHING
from .engines import ENGINES
from .starts import WAYS
from .timing import Outcome


def header(names: Sequence[str], starts: bool) -> list[str]:
    """Columns for engines: times, ratios of ours to each peer, errors, seconds to compile, first answers."""
    return [
        "model",
        "batch",
        *(f"{name} ms" for name in names),
        *(f"{ours} / {peer}" for ours, peer in _pairs(names)),
        *(f"{name} error" for name in names),
        *(f"{name} compile s" for name in names),
        *(f"{way} s" for way in WAYS if starts),
    ]


def row(
    title: str, batch: int, outcomes: Mapping[str, Outcome], first_answers: Mapping[str, float] | None
) -> list[str]:
    """The cells of a case, in the order of `header`; ``first_answers`` where it has columns for them."""
    seconds = {name: outcome.seconds for name, outcome in outcomes.items()}
    return [
        title,
        str(batch),
        *(_cell(_times(seconds[name], 1e3), ".3f") for name in outcomes),
        *(_cell(_ratio(seconds[ours], seconds[peer]), ".3f") for ours, peer in _pairs(list(outcomes))),
        *(_cell(outcome.error, ".1e") for outcome in outcomes.values()),
        *(_cell(outcome.compile_s, ".1f") for outcome in outcomes.values()),
        *(_cell(first_answers.get(way), ".2f") for way in WAYS if first_answers is not None),
    ]


def line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def rule(columns: int) -> str:
    """The line between the header and the rows."""
    return line(["---", *["---:"] * (columns - 1)])


def _pairs(names: Sequence[str]) -> list[tuple[str, str]]:
    ours = [name for name in names if ENGINES[name].ours]
    return [(one, peer) for one in ours for peer in names if not ENGINES[peer].ours]


def _times(value: float | None, factor: float) -> float | None:
    return None if value is None else value * factor


def _ratio(above: float | None, below: float | None) -> float | None:
    return None if above is None or not below else above / below


def _cell(value: float | None, form: str) -> str:
    return NOTHING if value is None else format(value, form)
