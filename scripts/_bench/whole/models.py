"""The command line of scripts/bench models: whole networks, ours against other engines.

    scripts/bench models --models resnet50,mobilenet_v2 --batch 1,8 --threads 1,2 --json out.json
    scripts/bench models --zoo modern --batch 1 --threads 1 --processor --exporting-python other/bin/python

The second takes networks of timm and transformers (`_exports/modern.py`), exported once and kept in --folder.
Every engine's answer is checked before it is timed. The first of ``--engines`` is compared with the others.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from tvm_mxplan.testing import zoo
from tvm_mxplan.testing.environment_info import environment, format_environment

from ..harness import table
from ..harness.beside import busy_processes
from ..harness.engines import ENGINES, REFERENCE
from ..harness.files import Files, write_expected, write_exported, write_model
from ..harness.process import WorkerError
from ..harness.record import FORMAT, configuration_record, summary_records
from ..harness.schedule import Configuration, Options, measure
from ..inputs import modern
from ..inputs.modern import NotExported

ROOT = Path(__file__).resolve().parents[3]
PUBLISHED = (*zoo.LIGHT, *zoo.BUILT)
_ZOOS = {"published": (zoo.names(), PUBLISHED)} | {
    name: (known, known) for name, known in modern.NAMES.items()
}
"""The names that there are, and those that run where none is given."""
TIMED = tuple(name for name in ENGINES if name != REFERENCE.name)


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parsed(arguments)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))  # runs the cleanup
    cpus = tuple(sorted(os.sched_getaffinity(0)))
    if max(options.threads) > len(cpus):
        return _complain(f"--threads {max(options.threads)} is more than the {len(cpus)} CPUs allowed")

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
        "zoo": options.zoo,
        "results": [],
        "summary": [],
    }
    print(format_environment(document["environment"]), file=sys.stderr)
    try:
        with busy_processes(options.beside):
            for record in _run(options, cpus):
                document["results"].append(record)
                document["summary"] = summary_records(document["results"])
                print(table.format_row(record), file=sys.stderr, flush=True)
                _write(options, document)  # a long run that is stopped leaves what it has
    except KeyboardInterrupt:
        return _complain("interrupted")
    except NotExported as error:
        return _complain(str(error))
    except WorkerError as error:
        return _complain(f"no reference answer from onnxruntime, {error}; install the extra [bench]")
    if options.markdown is None:
        print(table.to_markdown(document))
    return 0


def _run(arguments: argparse.Namespace, cpus: tuple[int, ...]) -> Iterator[dict[str, Any]]:
    options = Options(
        rounds=arguments.rounds,
        iterations=arguments.iterations,
        starts=arguments.starts,
        timeout=arguments.timeout,
        realtime=arguments.realtime,
        processor=arguments.processor,
    )
    exports = modern.Exports(arguments.folder, arguments.exporting_python, arguments.exporter, arguments.zoo)
    for name, batch in itertools.product(arguments.models, arguments.batch):
        with tempfile.TemporaryDirectory(prefix="bench_models_") as directory:
            files = Files(Path(directory))
            if arguments.zoo in modern.ZOOS:
                write_exported(exports.model(name, batch), modern.inputs(name, batch, arguments.zoo), files)
            else:
                write_model(name, batch, files)
            write_expected(files, cpus, options.timeout)
            for threads in arguments.threads:
                configuration = Configuration(name, batch, threads)
                results = measure(configuration, arguments.engines, files, cpus, options)
                yield configuration_record(configuration, results, arguments.engines[0])


def _write(options: argparse.Namespace, document: dict[str, Any]) -> None:
    if options.json is not None:
        options.json.write_text(json.dumps(document, indent=1) + "\n")
    if options.markdown is not None:
        options.markdown.write_text(table.to_markdown(document))


def _parsed(arguments: Sequence[str] | None) -> argparse.Namespace:
    """The options, with the names of the zoo that is asked for."""
    parser = _parser()
    options = parser.parse_args(arguments)
    known, every = _ZOOS[options.zoo]
    try:
        options.models = list(every) if options.models is None else _names_among(known)(options.models)
    except argparse.ArgumentTypeError as error:
        parser.error(f"argument --models: {error}")
    if options.zoo in modern.ZOOS and (missing := set(options.batch) - set(modern.BATCHES[options.zoo])):
        there = ", ".join(map(str, modern.BATCHES[options.zoo]))
        parser.error(f"argument --batch: the {options.zoo} zoo has {there}, not {min(missing)}")
    return options


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="bench models", description=__doc__.partition("\n")[0])
    engines = _names_among(TIMED)
    parser.add_argument("--zoo", choices=list(_ZOOS), default="published", help="networks (published)")
    parser.add_argument(
        "--models",
        help=f"of {', '.join(zoo.names())} (all but tiny); "
        + "; ".join(f"{name}: of {', '.join(known)} (all)" for name, known in modern.NAMES.items()),
    )
    parser.add_argument(
        "--folder", type=Path, default=modern.default_folder(), help="of the modern zoo's exports"
    )
    parser.add_argument(
        "--exporting-python", default=sys.executable, help="a Python with torch, timm and transformers"
    )
    parser.add_argument("--exporter", choices=["new", "old"], default="new", help="of PyTorch's two (new)")
    parser.add_argument("--processor", action="store_true", help="processor time in the place of latency")
    parser.add_argument("--batch", type=_positive_numbers, default=[1, 8], help="batches (1,8)")
    parser.add_argument("--threads", type=_positive_numbers, default=[1, 2], help="threads (1,2)")
    parser.add_argument(
        "--engines",
        type=engines,
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
    return parser


def _names_among(known: Sequence[str]) -> Callable[[str], list[str]]:
    def parse(text: str) -> list[str]:
        names = list(dict.fromkeys(text.split(",")))
        if unknown := [name for name in names if name not in known]:
            raise argparse.ArgumentTypeError(f"{unknown[0]!r} is not one of {', '.join(known)}")
        return names

    return parse


def _number(text: str, least: int = 0) -> int:
    value = int(text) if text.isdecimal() else -1
    if value < least:
        kind = "a positive number" if least else "a number from 0 on"
        raise argparse.ArgumentTypeError(f"{text!r} is not {kind}")
    return value


def _positive(text: str) -> int:
    return _number(text, least=1)


def _positive_numbers(text: str) -> list[int]:
    return [_positive(part) for part in text.split(",")]


def _complain(message: str) -> int:
    print(f"bench models: {message}", file=sys.stderr)
    return 1
