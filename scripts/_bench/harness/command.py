"""Shared by command lines that time whole networks on several engines: options, the loop, what is written."""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tvm_mxplan.testing.environment_info import environment, format_environment

from . import table
from .beside import busy_processes
from .engines import ENGINES, REFERENCE
from .files import Files, write_expected
from .process import WorkerError
from .record import FORMAT, configuration_record, summary_records
from .schedule import Configuration, Options, measure

ROOT = Path(__file__).resolve().parents[3]
TIMED = tuple(name for name in ENGINES if name != REFERENCE.name)


@dataclass(frozen=True)
class Case:
    """A network to time: its name, its batch (None for that of a file), and what writes its files."""

    model: str
    batch: int | None
    write: Callable[[Path], Files]
    """Into the folder; what is raised there goes through `run`."""
    otherwise: str = ""
    """The way out where onnxruntime is there and does not answer."""


class _NoReferenceError(Exception):
    """A network that onnxruntime does not answer, in a line for the user."""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add what `run` reads: threads, engines, how often and how to time, and where to write."""
    parser.add_argument("--processor", action="store_true", help="processor time in the place of latency")
    parser.add_argument("--threads", type=positive_numbers, default=[1, 2], help="threads (1,2)")
    parser.add_argument(
        "--engines",
        type=names_among(TIMED),
        default=["ours", "onnxruntime", "openvino", "torch"],
        help=f"of {', '.join(TIMED)}; the first is compared with the others (all but tvm)",
    )
    parser.add_argument("--rounds", type=_positive, default=Options.rounds, help=f"({Options.rounds})")
    parser.add_argument("--iterations", type=_positive, help="calls in a burst (as many as take 0.4 s)")
    parser.add_argument(
        "--starts", type=_positive, default=Options.starts, help=f"starts to time loading ({Options.starts})"
    )
    parser.add_argument(
        "--timeout",
        type=_positive,
        default=Options.timeout,
        help=f"seconds to compile, to load, or for one burst ({Options.timeout:.0f})",
    )
    parser.add_argument(
        "--beside", type=_number, default=0, help="processes that compute all the time beside it (0)"
    )
    parser.add_argument("--realtime", action="store_true", help="real-time priority, where permitted")
    parser.add_argument("--json", type=Path, help="write the results there")
    parser.add_argument("--markdown", type=Path, help="write the tables there (standard output)")


def run(prog: str, options: argparse.Namespace, cases: Iterable[Case], **facts: Any) -> int:
    """Time all cases and write what came, after each of them; returns the exit status.

    Parameters
    ----------
    prog : opens messages.
    facts : more of what the document says about the run.
    """
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))  # runs the cleanup
    cpus = tuple(sorted(os.sched_getaffinity(0)))
    if max(options.threads) > len(cpus):
        return complain(prog, f"--threads {max(options.threads)} is more than the {len(cpus)} CPUs allowed")

    document = {
        "format": FORMAT,
        "environment": environment(ROOT),
        "engines": options.engines,
        "subject": options.engines[0],
        "rounds": options.rounds,
        "iterations": options.iterations,
        "realtime": options.realtime,
        "processor": options.processor,
        "beside": options.beside,
        **facts,
        "results": [],
        "summary": [],
    }
    print(format_environment(document["environment"]), file=sys.stderr)
    try:
        with busy_processes(options.beside):
            for record in _records(prog, options, cases, cpus):
                document["results"].append(record)
                document["summary"] = summary_records(document["results"])
                print(table.format_row(record), file=sys.stderr, flush=True)
                _write(options, document)  # a long run that is stopped leaves what it has
    except KeyboardInterrupt:
        return complain(prog, "interrupted")
    except _NoReferenceError as error:
        return complain(prog, str(error))
    if options.markdown is None:
        print(table.to_markdown(document))
    return 0


def complain(prog: str, message: str) -> int:
    """Print the message; returns the exit status of a run that failed."""
    print(f"{prog}: {message}", file=sys.stderr)
    return 1


def names_among(known: Sequence[str]) -> Callable[[str], list[str]]:
    """Of names with commas between them: the list, each once; others are refused."""

    def parse(text: str) -> list[str]:
        names = list(dict.fromkeys(text.split(",")))
        if unknown := [name for name in names if name not in known]:
            raise argparse.ArgumentTypeError(f"{unknown[0]!r} is not one of {', '.join(known)}")
        return names

    return parse


def positive_numbers(text: str) -> list[int]:
    """Of numbers with commas between them."""
    return [_positive(part) for part in text.split(",")]


def _records(
    prog: str, arguments: argparse.Namespace, cases: Iterable[Case], cpus: tuple[int, ...]
) -> Iterator[dict[str, Any]]:
    options = Options(
        rounds=arguments.rounds,
        iterations=arguments.iterations,
        starts=arguments.starts,
        timeout=arguments.timeout,
        realtime=arguments.realtime,
        processor=arguments.processor,
    )
    for case in cases:
        with tempfile.TemporaryDirectory(prefix=f"{prog.replace(' ', '_')}_") as directory:
            files = case.write(Path(directory))
            try:
                write_expected(files, cpus, options.timeout)
            except WorkerError as error:
                missing = error.kind == "not installed"
                ways = (
                    ["install the extra [bench]"] if missing else [case.otherwise] if case.otherwise else []
                )
                said = f"{case.model}: no reference answer from onnxruntime, {error}"
                raise _NoReferenceError("; ".join([said, *ways])) from error
            for threads in arguments.threads:
                configuration = Configuration(case.model, case.batch, threads)
                results = measure(configuration, arguments.engines, files, cpus, options)
                yield configuration_record(configuration, results, arguments.engines[0])


def _write(options: argparse.Namespace, document: dict[str, Any]) -> None:
    if options.json is not None:
        options.json.write_text(json.dumps(document, indent=1) + "\n")
    if options.markdown is not None:
        options.markdown.write_text(table.to_markdown(document))


def _number(text: str, least: int = 0) -> int:
    value = int(text) if text.isdecimal() else -1
    if value < least:
        kind = "a positive number" if least else "a number from 0 on"
        raise argparse.ArgumentTypeError(f"{text!r} is not {kind}")
    return value


def _positive(text: str) -> int:
    return _number(text, least=1)
