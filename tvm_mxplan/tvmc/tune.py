"""``tvmc tune``: measure what a model's plan rests on; records out, for ``tvmc compile --tuning-records``."""

from __future__ import annotations

import argparse
import os
import shutil
from pathlib import Path
from typing import Any

from ..errors import InvalidInputError
from ..targets import DEFAULT
from .arguments import (
    Parser,
    add_gone,
    add_model,
    add_options,
    add_remote,
    add_tuning_records,
    add_verbosity,
    check_format,
    given_bounds,
    given_options,
    given_remote,
    given_states,
    positive,
)
from .output import progress_stream

_ONE_SCHEDULE = "oneDNN's kernels and layouts are what is tuned; leave it out"
_GONE = {
    "--tuner": _ONE_SCHEDULE,
    "--enable-autoscheduler": _ONE_SCHEDULE,
    "--early-stopping": "plans far behind the best are dropped anyway; leave it out",
    "--parallel": "measurements run one after the other; leave it out",
    "--min-repeat-ms": "repeats follow from what a run takes; leave it out",
    "--number": "repeats follow from what a run takes; leave it out",
    "--repeat": "repeats follow from what a run takes; leave it out",
    "--timeout": "give --seconds for the whole tuning",
}


def add_parser(verbs: Any) -> None:
    parser: Parser = verbs.add_parser(
        "tune",
        help="measure what a model's plan rests on",
        description="Measure operators, groups and whole plans; run it again to go on where it stopped.",
    )
    parser.set_defaults(verb=tune_model)
    add_model(parser)
    parser.add_argument(
        "-o", "--output", type=Path, required=True, help="the records to write, or to go on with"
    )
    parser.add_argument("--target", default=DEFAULT, help="as for tvmc compile (%(default)s)")
    add_tuning_records(parser, "records to start from")
    parser.add_argument("--seconds", type=float, help="short for --opt tune_seconds=SECONDS")
    parser.add_argument("--trials", type=positive, help="short for --opt tune_trials=TRIALS")
    parser.add_argument(
        "--for",
        dest="strategy",
        metavar="STRATEGY",
        help="latency, throughput, memory, energy or joules",
    )
    add_options(parser)
    add_remote(parser, "measure")
    add_verbosity(parser)
    add_gone(parser, _GONE)


def tune_model(args: argparse.Namespace) -> str:
    """Measure, showing how it goes; the text says what came of it."""
    check_format(args.FILE, args.model_format)
    options = given_options(args)
    for name, value in (
        ("tune_seconds", args.seconds),
        ("tune_trials", args.trials),
        ("tune_for", args.strategy),
        ("tune", "measure"),
    ):
        if value is not None and options.setdefault(name, value) != value:
            raise InvalidInputError(f"{name} is given as {options[name]} and as {value}; choose one")
    remote = given_remote(args)
    import tvm_mxplan

    from ..tuning.progress import Bar, Lines

    with progress_stream() as stream:
        columns = shutil.get_terminal_size().columns
        shown = Bar(stream, columns) if os.isatty(stream.fileno()) else Lines(stream)
        progress = None if args.quiet else shown
        try:
            ex = tvm_mxplan.tune(
                args.FILE,
                args.output,
                args.target,
                shapes=args.input_shapes,
                bounds=given_bounds(args),
                states=given_states(args),
                capacity=args.capacity,
                params=args.params,
                options=options,
                progress=progress,
                remote=remote,
            )
        finally:
            if progress is not None:
                progress.close()
    return f"{args.output}: {ex.report.tuning or 'nothing to tune'}"
