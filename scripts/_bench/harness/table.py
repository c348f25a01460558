"""The records as markdown: latencies, start and memory, and what went wrong."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from tvm_mxplan.testing.environment_info import format_environment

Record = Mapping[str, Any]
NOTHING = "-"


def to_markdown(document: Record) -> str:
    """The whole document that `models` writes as JSON."""
    records, engines = document["results"], document["engines"]
    parts = ["# Model benchmarks", format_environment(document["environment"]), _legend(document)]
    for summary in document["summary"]:
        batch, threads = summary["batch"], summary["threads"]
        group = [r for r in records if (r["batch"], r["threads"]) == (batch, threads)]
        parts.append(f"## {_place(batch, threads).capitalize()}")
        parts.append(_latency_table(group, engines, summary))
        parts.append(_start_table(group, engines))
    if failures := _failures(records):
        parts.append("## Not timed\n\n" + "\n".join(failures))
    return "\n\n".join(parts) + "\n"


def format_row(record: Record) -> str:
    """One configuration on one line, for the terminal."""
    cells = [f"{name} {_latency(engine)}" for name, engine in record["engines"].items()]
    where = f"{record['model']}, {_place(record['batch'], record['threads'])}"
    return f"{where}: {', '.join(cells)}; ratio {_ratio(record['ratio'])}"


def _place(batch: int | None, threads: int) -> str:
    """In words; models that are given as files have no batch that is known."""
    count = f"{threads} thread{'s' if threads > 1 else ''}"
    return count if batch is None else f"batch {batch}, {count}"


def _legend(document: Record) -> str:
    engines = [engine for record in document["results"] for engine in record["engines"].values()]
    refused = document["realtime"] and any(e["status"] == "ok" and not e["realtime"] for e in engines)
    timed = "Processor time of all threads" if document.get("processor") else "Latency"
    return (
        f"{timed} in ms: median (10th to 90th percentile) over all rounds. "
        f"Ratio: {document['subject']} / the best other engine of the same round, median over rounds "
        "(10th to 90th percentile); below 1 is faster. Load: from the engine's import to its first answer. "
        "MiB: peak of the process after its first answers, less what Python with numpy holds."
        + (" Real-time priority was asked for and not permitted." if refused else "")
    )


def _latency_table(records: Sequence[Record], engines: Sequence[str], summary: Record) -> str:
    rows = [
        [record["model"], *(_latency(record["engines"][name]) for name in engines), _ratio(record["ratio"])]
        for record in records
    ]
    mean = summary["geomean_ratio"]
    label = f"geometric mean of {summary['models']}"
    rows.append([label, *([""] * len(engines)), NOTHING if mean is None else f"{mean:.3f}"])
    return _table(["model", *engines, "ratio"], rows)


def _start_table(records: Sequence[Record], engines: Sequence[str]) -> str:
    ahead = [name for name in engines if any(r["engines"][name]["compile_s"] is not None for r in records)]
    columns: list[tuple[str, str, Callable[[Record], str]]] = [
        *((f"{name} compile s", name, lambda engine: _number(engine["compile_s"], 1)) for name in ahead),
        *((f"{name} import + load s", name, _load) for name in engines),
        *((f"{name} MiB", name, _memory) for name in engines),
    ]
    rows = [
        [record["model"], *(cell(record["engines"][name]) for _, name, cell in columns)] for record in records
    ]
    return _table(["model", *(title for title, _, _ in columns)], rows)


def _failures(records: Iterable[Record]) -> list[str]:
    """A line for each; an engine that is not installed has one for all."""
    lines = []
    for record in records:
        where = f"{record['model']}, {_place(record['batch'], record['threads'])}, "
        for name, engine in record["engines"].items():
            if engine["status"] != "ok":
                place = "" if engine["status"] == "not installed" else where
                lines.append(f"- {place}{name}: {engine['status']}: {engine['detail']}")
    return list(dict.fromkeys(lines))


def _latency(engine: Record) -> str:
    latency = engine["latency_ms"]
    if latency is None:
        return engine["status"]
    return f"{_digits(latency['median'])} ({_digits(latency['p10'])}-{_digits(latency['p90'])})"


def _digits(value: float) -> str:
    """At least three significant digits."""
    return f"{value:.2f}" if value >= 1 else f"{value:.3g}"


def _ratio(ratio: Record | None) -> str:
    return NOTHING if ratio is None else f"{ratio['median']:.3f} ({ratio['p10']:.3f}-{ratio['p90']:.3f})"


def _load(engine: Record) -> str:
    if engine["load_s"] is None:
        return NOTHING
    return f"{engine['import_s']:.2f} + {engine['load_s']:.2f}"


def _memory(engine: Record) -> str:
    return NOTHING if engine["peak_mib"] is None else f"{engine['peak_mib'] - engine['base_mib']:.0f}"


def _number(value: float | None, digits: int) -> str:
    return NOTHING if value is None else f"{value:.{digits}f}"


def _table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    alignment = ["---", *("---:" for _ in header[1:])]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (header, alignment, *rows))
