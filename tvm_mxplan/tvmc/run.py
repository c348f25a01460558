"""``tvmc run``: run a compiled model, for its outputs or for its times."""

from __future__ import annotations

import argparse
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import InvalidInputError
from .arguments import (
    Parser,
    add_gone,
    add_input_shapes,
    add_remote,
    add_verbosity,
    given_remote,
    positive,
    seed,
)

if TYPE_CHECKING:
    from ..execution.executable import Executable

_GONE = {
    "--profile": "profiling is not in this build yet; ONEDNN_VERBOSE=1 with -v prints each primitive's time",
    "--project-dir": "microTVM is gone from TVM; leave it out",
    "--list-options": "microTVM is gone from TVM; leave it out",
}

_INDEX = "an index is out of bounds"
"""Words of the error that an input made up at random may be the cause of."""


def add_parser(verbs: Any) -> None:
    parser: Parser = verbs.add_parser(
        "run",
        help="run a compiled model",
        description="Run a compiled model, for its outputs or for its times.",
    )
    parser.set_defaults(verb=run_model)
    parser.add_argument("FILE", type=Path, help="the library that tvmc compile wrote")
    parser.add_argument("--device", choices=("cpu",), default="cpu", help="only cpu today")
    parser.add_argument(
        "--fill-mode",
        choices=("random", "zeros", "ones"),
        help="how to make up inputs (random where none are given); with -i, for inputs that its file lacks",
    )
    parser.add_argument("--seed", type=seed, default=0, help="for --fill-mode random (%(default)s)")
    parser.add_argument("-i", "--inputs", type=Path, help="an .npz file with the inputs by name")
    add_input_shapes(parser, "shapes for inputs with symbolic dimensions, else 1")
    parser.add_argument(
        "-o", "--outputs", "--output", type=Path, help="the .npz file to write the outputs to"
    )
    parser.add_argument("--print-time", action="store_true", help="print a table of times")
    parser.add_argument("--repeat", type=positive, default=1, help="number of measurements (%(default)s)")
    parser.add_argument("--number", type=positive, default=1, help="calls in each measurement (%(default)s)")
    parser.add_argument("--end-to-end", action="store_true", help="time copies from and to numpy too")
    parser.add_argument(
        "--print-top", type=positive, metavar="N", help="print each output's N largest elements"
    )
    parser.add_argument(
        "--opcheck", action="store_true", help="work out every step a second time, in float64, and compare"
    )
    parser.add_argument(
        "--opcheck-dir", type=Path, metavar="DIR", help="where to write the first step that differs"
    )
    add_remote(parser, "run")
    add_verbosity(parser)
    add_gone(parser, _GONE)


def run_model(args: argparse.Namespace) -> str:
    """Run and write; the text has the table, the largest elements, or the outputs' types."""
    from ..execution import runner
    from ..execution.executable import load
    from ..export.files import check_destination
    from ..opcheck import checking

    if args.outputs:
        check_destination(args.outputs, ".npz")
    if args.opcheck and args.print_time:
        raise InvalidInputError("--opcheck makes times meaningless; leave --print-time out")
    if args.opcheck_dir and not args.opcheck:
        raise InvalidInputError("--opcheck-dir says where --opcheck writes; give --opcheck too")
    remote = given_remote(args)
    if args.opcheck and remote:
        raise InvalidInputError("--opcheck looks at runs in this process; run tvmc over there for it")
    ex = load(args.FILE)
    inputs = _inputs(args, ex)
    repeat = args.repeat if args.print_time else 0
    amount = (repeat, args.number, args.end_to_end)
    with checking(args.opcheck_dir) if args.opcheck else nullcontext() as checker:
        if remote:
            from ..remote.run import measure_there

            outputs, timing = measure_there(remote, args.FILE, ex.signature, inputs, *amount)
        else:
            outputs, timing = _measured(args, ex, inputs, amount)
    if checker:
        checker.result().raise_first()
    named = dict(zip(runner.output_names(ex.signature, len(outputs)), outputs, strict=True))
    if args.outputs:
        runner.save_outputs(args.outputs, named)
    parts = [str(timing)] if args.print_time else [str(checker.result())] if checker else []
    if args.print_top:
        for name, output in named.items():
            rows = [f"{index:>9}  {value:g}" for index, value in runner.top_elements(output, args.print_top)]
            parts.append("\n".join([f"{name}, largest elements:", *rows]))
    if ex.report.determinism and not remote:
        parts += [f"not deterministic: {reason}" for reason in ex.determinism_lost]
    if not parts:
        parts = [f"{name}: {a.dtype}[{', '.join(map(str, a.shape))}]" for name, a in named.items()]
    return "\n".join(parts)


def _measured(args: argparse.Namespace, ex: Executable, inputs: dict[str, Any], amount: Any) -> Any:
    from ..execution import runner

    try:
        return runner.measure(ex, inputs, *amount)
    except InvalidInputError as error:
        mode = args.fill_mode or ("" if args.inputs else "random")
        if mode != "random" or _INDEX not in str(error):
            raise
        way = "inputs were made up: give some with -i, or --fill-mode zeros"
        raise InvalidInputError(f"{error}; {way}") from error


def _inputs(args: argparse.Namespace, ex: Executable) -> dict[str, Any]:
    from ..execution import runner

    given = runner.read_inputs(args.inputs) if args.inputs else {}
    if args.inputs and args.fill_mode is None:
        return given
    return runner.fill_inputs(ex.signature, args.fill_mode or "random", args.seed, args.input_shapes, given)
