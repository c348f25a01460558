"""Solves an allocation problem from the shell.

``python -m tvm_mxplan.core.solve problem.csv [--capacity N [--fit]] [--seconds S] [--out plan.csv]`` prints
one line of JSON.  Exit code 0 if the plan fits, 2 if it does not, 1 if the input is bad.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from dataclasses import replace

from .allocation import ProblemError, read_csv, solve, validate, write_csv
from .allocation.solver import DEFAULT_MAX_NODES


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> None:  # type: ignore[override]
        print(f"{self.prog}: {message}", file=sys.stderr)
        raise SystemExit(1)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code."""
    parser = _Parser(prog="tvm_mxplan.core.solve", description="Solve an allocation problem given as CSV.")
    parser.add_argument("problem", help="CSV file with the columns id,lower,upper,size")
    parser.add_argument("--capacity", type=count, help="bytes of the arena; exit code 2 if they do not do")
    parser.add_argument("--alignment", type=count, default=1, help="of every offset (default 1)")
    parser.add_argument("--seconds", type=seconds, help="stop about then with the best plan so far")
    parser.add_argument("--fit", action="store_true", help="stop with the first plan that fits the capacity")
    parser.add_argument(
        "--max-nodes",
        type=count,
        help=f"placements of the search (default {DEFAULT_MAX_NODES}, no limit with --seconds)",
    )
    parser.add_argument("--out", help="CSV file to write, with a column offset")
    options = parser.parse_args(arguments)
    if options.fit and options.capacity is None:
        parser.error("--fit needs --capacity")
    try:
        problem = read_csv(options.problem, capacity=options.capacity, alignment=options.alignment)
        begin = time.perf_counter()
        plan = solve(problem, seconds=options.seconds, max_nodes=options.max_nodes, fit_only=options.fit)
        elapsed = time.perf_counter() - begin
        reasons = validate(replace(problem, capacity=None), plan)
        if options.out:
            write_csv(options.out, problem, plan)
    except ProblemError as error:
        print(f"{parser.prog}: {error}", file=sys.stderr)
        return 1
    except OSError as error:
        print(f"{parser.prog}: {error.filename}: {error.strerror}", file=sys.stderr)
        return 1
    if reasons:
        print(f"{parser.prog}: internal error, the plan is not valid: {reasons[0]}", file=sys.stderr)
        return 3
    result = {
        "height": plan.height,
        "lower_bound": plan.lower_bound,
        "status": plan.status.value,
        "seconds": round(elapsed, 3),
        "nodes": plan.nodes,
    }
    print(json.dumps(result))
    return 0 if plan.fits(problem.capacity) else 2


def count(text: str) -> int:
    """An argument that is an integer of 0 or more."""
    if not (text.isascii() and text.isdigit()):
        raise argparse.ArgumentTypeError(f"{text!r} is not an integer of 0 or more")
    return int(text)


def seconds(text: str) -> float:
    """An argument that is a number of seconds."""
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not value >= 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds")
    return value


if __name__ == "__main__":
    sys.exit(main())
