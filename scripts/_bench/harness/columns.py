"""Cells of tables that hold one engine against another: a time, a ratio over rounds, processors' seconds."""

from __future__ import annotations

from collections.abc import Mapping

from .schedule import EngineResult
from .statistics import ratio_to_best
from .table import NOTHING


def latency(result: EngineResult) -> str:
    """The median in milliseconds, or the reason for which there is none."""
    found = result.latency()
    return result.status if found is None else f"{1e3 * found.median:.2f}"


def ratio(results: Mapping[str, EngineResult], subject: str, peer: str) -> str:
    """The median of ratios of times in the same round, with its spread."""
    if not results[subject].ok or not results[peer].ok:
        return NOTHING
    spread = ratio_to_best(results[subject].round_medians(), {peer: results[peer].round_medians()})
    return NOTHING if spread is None else f"{spread.median:.2f} ({spread.p10:.2f} to {spread.p90:.2f})"


def processor(results: Mapping[str, EngineResult], subject: str, peer: str) -> str:
    """The ratio of the least seconds that all threads take for a call."""
    own, other = results[subject].processor_s, results[peer].processor_s
    return f"{min(own) / min(other):.2f}" if own and other else NOTHING
