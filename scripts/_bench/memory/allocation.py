"""The command line of scripts/bench allocation: the allocation solver on problems known to have a plan.

First the problems of a folder, minimalloc's CSV files NAME.CAPACITY.csv; then problems derived from some of
them (--names) or made at random, each of which has a plan of its capacity: ``derived_problems.py`` says how.
Deriving starts from the solver's own plan of the file, so that another solver may make other problems of one
seed.

capacity / bound    bytes that some plan is known to need at most, to the most bytes alive at once
height / capacity   of the plan found; 1 or less is solved
placements          of the exact search; 0 where a quick plan was enough
seconds             of the CPU, for analysis and search

The validator checks the plans found, and those that derived problems come with; one that is not valid ends
the run.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tvm_mxplan.core.allocation import Plan, Problem, ProblemError, read_csv, solve, validate
from tvm_mxplan.core.allocation.solver import DEFAULT_MAX_NODES
from tvm_mxplan.core.solve import count, seconds
from tvm_mxplan.errors import InternalError, InvalidInputError, MxplanError
from tvm_mxplan.testing.environment_info import environment, format_environment

from .derived_problems import Packing, derived_problems, packing_of

BASE_MAX_NODES = 3_000_000
"""Placements for the plan of a file that others are derived from."""
HEADER = "| problem | buffers | capacity / bound | height / capacity | placements | seconds | solved |"
RULE = "| --- | ---: | ---: | ---: | ---: | ---: | --- |"


@dataclass(frozen=True)
class Limits:
    """The budget of the solver for a problem, and whether it has to meet the capacity only."""

    nodes: int
    seconds: float | None
    fit_only: bool


@dataclass(frozen=True)
class Outcome:
    """A valid plan of a problem that has a capacity, and the seconds it took."""

    problem: Problem
    plan: Plan
    seconds: float

    @property
    def solved(self) -> bool:
        """True if the plan keeps the capacity."""
        return self.plan.fits(self.problem.capacity)

    def row(self, name: str) -> str:
        """A line of the table."""
        capacity, plan = self.problem.capacity or 0, self.plan
        cells = [
            name,
            str(len(self.problem.items)),
            _ratio(capacity, plan.lower_bound, digits=3),
            _ratio(plan.height, capacity, digits=4),
            f"{plan.nodes:,}",
            f"{self.seconds:.2f}",
            "yes" if self.solved else "no",
        ]
        return f"| {' | '.join(cells)} |"


def main(arguments: Sequence[str] | None = None) -> int:
    """Print a table in Markdown; returns the exit status."""
    options = _parse(arguments)
    limits = Limits(options.nodes, options.seconds, fit_only=options.capacity == "fit")
    try:
        files = problems_of(options.problems)
        bases = {name: _base(name, files) for name in options.names.split(",") if name}
        derived = derived_problems(bases, options.seed)
        for name, packing in derived.items():
            _check(f"the known plan of {name!r}", packing.problem(), packing.plan())
        print(format_environment(environment(Path(__file__).resolve().parents[3])))
        print(f"\n{HEADER}\n{RULE}")
        of_files = _run(files, limits)
        of_derived = _run({name: packing.problem() for name, packing in derived.items()}, limits)
    except (MxplanError, ProblemError) as error:
        print(f"bench allocation: {error}", file=sys.stderr)
        return 1
    print(f"\nsolved: {_count(of_files)} of the files, {_count(of_derived)} derived (seed {options.seed})")
    return 0


def problems_of(folder: Path) -> dict[str, Problem]:
    """The problems of a folder, by name, each with the capacity that its file's name has."""
    found: dict[str, Problem] = {}
    for path in sorted(folder.glob("*.csv")):
        name, _, capacity = path.stem.rpartition(".")
        if not name or not (capacity.isascii() and capacity.isdigit()):
            raise InvalidInputError(f"{path}: no capacity in the file's name, expected NAME.CAPACITY.csv")
        if name in found:
            raise InvalidInputError(f"{path}: a second problem {name!r}, expected one; move one of them away")
        found[name] = read_csv(path, capacity=int(capacity))
        if not found[name].items:
            raise InvalidInputError(f"{path}: no buffers, expected one or more")
    if not found:
        raise InvalidInputError(f"{folder}: no problems there, expected files NAME.CAPACITY.csv")
    return found


def measure(name: str, problem: Problem, limits: Limits) -> Outcome:
    """Solve a problem and check the plan."""
    start = time.process_time()
    plan = solve(problem, seconds=limits.seconds, max_nodes=limits.nodes, fit_only=limits.fit_only)
    seconds = time.process_time() - start
    _check(f"the plan of {name!r}", problem, plan)
    return Outcome(problem, plan, seconds)


def _run(problems: Mapping[str, Problem], limits: Limits) -> list[Outcome]:
    outcomes = []
    for name, problem in problems.items():
        outcomes.append(measure(name, problem, limits))
        print(outcomes[-1].row(name), flush=True)
    return outcomes


def _base(name: str, files: Mapping[str, Problem]) -> Packing:
    problem = files.get(name)
    if problem is None or problem.capacity is None:
        raise InvalidInputError(f"--names: no problem {name!r}; there are {', '.join(files)}")
    plan = solve(problem, max_nodes=BASE_MAX_NODES, fit_only=True)
    if not plan.fits(problem.capacity):
        raise InvalidInputError(
            f"--names: {name!r} cannot be derived from, its best plan after {plan.nodes:,} placements takes "
            f"{plan.height:,} bytes, expected {problem.capacity:,}; leave it out"
        )
    return packing_of(problem, plan, problem.capacity)


def _check(what: str, problem: Problem, plan: Plan) -> None:
    """Raise unless the plan is valid; a height above the capacity is not a mistake."""
    reasons = validate(replace(problem, capacity=None), plan)
    if reasons:
        raise InternalError(f"{what} is not valid: {reasons[0]}; please report it")


def _count(outcomes: Sequence[Outcome]) -> str:
    return f"{sum(outcome.solved for outcome in outcomes)} of {len(outcomes)}"


def _ratio(part: int, whole: int, digits: int) -> str:
    return f"{part / whole:.{digits}f}" if whole else "-"


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="bench allocation", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--problems", type=Path, required=True, help="folder of files NAME.CAPACITY.csv")
    parser.add_argument("--names", default="C,G,H", help="problems to derive others from (C,G,H)")
    parser.add_argument("--seed", type=int, default=0, help="of the derived problems (0)")
    parser.add_argument(
        "--nodes",
        type=count,
        default=DEFAULT_MAX_NODES,
        help=f"placements of the search in a problem ({DEFAULT_MAX_NODES})",
    )
    parser.add_argument("--seconds", type=seconds, help="of the search in a problem (no limit)")
    parser.add_argument(
        "--capacity",
        default="fit",
        choices=("fit", "bound"),
        help="fit: stop at the capacity; bound: go on to the lower bound (fit)",
    )
    return parser.parse_args(arguments)
