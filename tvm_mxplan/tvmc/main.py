"""The entry point: parses, calls a verb, prints what it returns, and turns errors into one line and a code.

Exit codes: 0 done; 1 a model, file or input that cannot be used (or a mistake of ours); 2 wrong usage.
"""

from __future__ import annotations

import argparse
import gc
import importlib.metadata
import os
import sys
import traceback
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..errors import MxplanError
from .output import captured, open_closed

if TYPE_CHECKING:
    from .arguments import Parser

LONGEST = 600
"""Characters of a message; TVM's may quote whole modules."""
_INTERRUPTED = 130


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; ``argv`` is without the program's name."""
    open_closed()
    try:
        return _main(argv)
    except KeyboardInterrupt:  # before the verb began, or behind its end
        print("tvmc: error: interrupted", file=sys.stderr)
        return _INTERRUPTED


def _main(argv: Sequence[str] | None) -> int:
    try:
        args = _parser().parse_args(argv)
    except SystemExit as stop:
        return int(stop.code or 0)
    with captured(show=args.verbose):
        text, code = _call(args)
    if code:
        print(f"tvmc: error: {text}", file=sys.stderr)
    elif text and not args.quiet:
        return _print(text)
    return code


def _print(text: str) -> int:
    try:
        print(text, flush=True)
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # Python flushes once more at its end
        if not isinstance(error, BrokenPipeError):  # a reader, head say, may have had enough
            print(f"tvmc: error: cannot write to standard output ({error.strerror})", file=sys.stderr)
            return 1
    return 0


def _call(args: argparse.Namespace) -> tuple[str, int]:
    """Returns the verb's answer, or one line on what went wrong; and the exit code.

    The exception does not get out: what dies with it may print, as TVM's block builder does.
    """
    try:
        return args.verb(args), 0
    except (Exception, KeyboardInterrupt) as error:
        if args.verbose:
            traceback.print_exc()
        line, code = (
            " ".join(_reason(error).split()),
            _INTERRUPTED if isinstance(error, KeyboardInterrupt) else 1,
        )
    gc.collect()
    return line if len(line) <= LONGEST else line[:LONGEST] + " ...", code


def _reason(error: BaseException) -> str:
    if isinstance(error, MxplanError):
        return str(error)
    if isinstance(error, KeyboardInterrupt):
        return "interrupted"
    if isinstance(error, MemoryError):
        return "out of memory"
    return f"internal error, please report it with what -v prints ({type(error).__name__}: {error})"


def _parser() -> Parser:
    """The parser with all verbs, imported now: in the time that this takes, users may interrupt it."""
    from . import (
        cache,
        compile,
        device_properties,
        gone,
        quantize,
        replay,
        run,
        show,
        show_config,
        train,
        tune,
    )
    from .arguments import Parser, add_verbosity

    modules = (compile, tune, train, quantize, run, replay, show, show_config, device_properties, cache, gone)

    parser = Parser(prog="tvmc", description="Compile and run models with TVM and oneDNN.")
    version = importlib.metadata.version
    text = f"tvm_mxplan {version('tvm_mxplan')}, apache-tvm {version('apache-tvm')}"
    parser.add_argument("--version", action="version", version=text)
    parser.set_defaults(verbose=False, quiet=False)
    add_verbosity(parser)
    verbs = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for verb in modules:
        verb.add_parser(verbs)
    return parser
