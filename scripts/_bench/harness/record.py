"""The results as plain JSON: one record per configuration, and a summary per batch and number of threads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from .schedule import Configuration, EngineResult, subject_ratio
from .statistics import Spread, geometric_mean, median

FORMAT = 1
MILLISECONDS = 1e3


def configuration_record(
    configuration: Configuration, results: dict[str, EngineResult], subject: str
) -> dict[str, Any]:
    """One configuration; ``ratio`` is subject / better peer, below one is faster."""
    return {
        **asdict(configuration),
        "subject": subject,
        "ratio": _spread(subject_ratio(results, subject)),
        "engines": {name: _engine_record(result) for name, result in results.items()},
    }


def summary_records(records: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Geometric means over the models whose ratio is known, by batch and threads."""
    groups: dict[tuple[int | None, int], list[float]] = {}
    for record in records:
        ratios = groups.setdefault((record["batch"], record["threads"]), [])
        if record["ratio"] is not None:
            ratios.append(record["ratio"]["median"])
    return [
        {"batch": batch, "threads": threads, "models": len(ratios), "geomean_ratio": geometric_mean(ratios)}
        for (batch, threads), ratios in groups.items()
    ]


def _engine_record(result: EngineResult) -> dict[str, Any]:
    latency = result.latency()
    return {
        "status": result.status,
        "detail": result.detail,
        "relative_l2": result.relative_l2,
        "compile_s": result.compile_s,
        "import_s": _median(result.imports_s),
        "load_s": _median(result.loads_s),
        "base_mib": _median(result.bases_mib),
        "imported_mib": _median(result.imported_mib),
        "peak_mib": _median(result.peaks_mib),
        "realtime": result.realtime,
        "iterations": len(result.rounds[0]) if result.rounds else 0,
        "latency_ms": _spread(latency.scaled(MILLISECONDS) if latency else None),
        "round_medians_ms": [value * MILLISECONDS for value in result.round_medians()],
    }


def _median(values: Sequence[float]) -> float | None:
    return median(values) if values else None


def _spread(values: Spread | None) -> dict[str, float] | None:
    return asdict(values) if values else None
