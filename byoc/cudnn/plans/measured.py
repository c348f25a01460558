"""Engines of one operation graph compared on the GPU that is here: plans timed in turns, by events.

Candidates are engines of cuDNN's heuristics (modes A and B, then fallback) that the rules let run.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from .. import library
from ..asked import ProcessEndedError
from .record import EnginePlan, engine_plan

MOST_CANDIDATES = 8
"""Plans that are compared, in the order of the heuristics: one takes seconds where cuDNN compiles it."""
_WARM_UP, _EACH, _ROUNDS = 3, 10, 7
RUNS = _EACH * _ROUNDS
"""Timed runs of each plan."""
_ITEMS = {"FLOAT": 4, "INT32": 4, "HALF": 2, "BFLOAT16": 2, "INT8": 1, "UINT8": 1}


def measure(
    answer: Mapping[str, Any], record_of: Callable[[Sequence[EnginePlan]], bytes], graph: Mapping[str, Any]
) -> dict[str, float]:
    """Microseconds of a run by the names of engines, the median of rounds; without those that failed.

    Where several fail, for one that takes the GPU from the others behind it, each is tried alone, and those
    that run are timed in turns again.

    Parameters
    ----------
    answer : the planner's, with the plan of each candidate.
    record_of : the bytes of plans for the device at hand.

    Raises
    ------
    UnsupportedError : no GPU, or another than plans were made for.
    """
    # Several modes of the heuristics may name one engine.
    names = list(dict.fromkeys(one["name"] for one in answer.get("engines", ()) if "plan" in one))
    if not names:
        return {}
    plans = {name: engine_plan(chosen(answer, name)) for name in names}
    sizes = _bytes(graph)

    def timed(names: Sequence[str]) -> dict[str, float]:
        if not names:
            return {}
        record = record_of([plans[name] for name in names])
        try:
            found = library.time_plans(record, sizes, _WARM_UP, _EACH, _ROUNDS)
        except ProcessEndedError:
            return {}
        return {
            name: statistics.median(times) for name, (times, _) in zip(names, found, strict=True) if times
        }

    together = timed(names)
    if len(names) - len(together) < 2:
        return together
    return timed([name for name in names if timed([name])])


def chosen(answer: Mapping[str, Any], name: str) -> dict[str, Any]:
    """The answer as if the planner had chosen one of its candidates."""
    engines = [
        {"name": one["name"], "error": one["error"], "workspace": one["workspace"]}
        for one in answer["engines"]
    ]
    at = [one["name"] for one in engines].index(name)
    made = answer["engines"][at]
    fields = {field: made[field] for field in ("workspace", "plan", "uids", "scalars")}
    return {"engines": engines, "chosen": at, **fields}


def title_of(graph: Mapping[str, Any]) -> str:
    """A graph in words, as ``convolution ADD RELU_FWD 1x64x56x56``."""
    kinds = [str(node.get("mode", node["kind"])) for node in graph["nodes"]]
    first = graph["nodes"][0]["in"][0]
    shape = next(one["dim"] for one in graph["tensors"] if one["uid"] == first)
    return f"{' '.join(kinds)} {'x'.join(map(str, shape))}"


def _bytes(graph: Mapping[str, Any]) -> dict[int, int]:
    """Bytes of what is stored, by uid."""
    return {
        int(one["uid"]): _ITEMS[one["type"]]
        * (1 + sum((extent - 1) * step for extent, step in zip(one["dim"], one["stride"], strict=True)))
        for one in graph["tensors"]
        if "number" not in one and not one["virtual"]
    }
