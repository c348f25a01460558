"""The command line of scripts/bench guests: what the default target gives the host library, and if it pays.

Every operator of `bench host` is compiled for the default target and for the same without the host library,
by itself and between operators of oneDNN's: `relu` in front of what reads float32, `tanh` behind what writes
it. Plans are made for as many threads as they run on. Both executables take turns on the same tensors.

who         host, TVM where the estimate leaves the operator to it, or oneDNN, which is asked first
us          median without the host library, of the whole function
1, 2        median over the rounds of that time over the default target's, on so many threads; above 1 is
            faster. On one thread it is the processor's time, on two the clock's

The last line counts what the host library has and is slower by more than 5 %.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tvm import relax

import tvm_mxplan
from tvm_mxplan.byoc import registry
from tvm_mxplan.execution import machine
from tvm_mxplan.targets import DEFAULT
from tvm_mxplan.testing.environment_info import environment, format_environment

from .host import LIBRARY, SLOWER, Case, calls_of_a_turn, cases, seconds_of

HEADER = "| operator | operands | place | threads | who | us | ratio |"
RULE = "| --- | --- | --- | ---: | --- | ---: | ---: |"


@dataclass(frozen=True)
class Measured:
    """An operator in a place, on some threads.

    Attributes
    ----------
    who : the implementation that the default target gives it.
    us : microseconds without the host library.
    ratio : of that over the time with it.
    """

    who: str
    us: float
    ratio: float


def places(case: Case) -> Iterator[tuple[str, Case]]:
    """The operator by itself, and between operators of the leader as far as types allow."""
    yield "alone", case
    floats = [dtype == "float32" for _, dtype in case.operands]
    if any(floats):

        def between(*given: relax.Expr) -> relax.Expr:
            build = relax.BlockBuilder.current().emit
            read = [build(relax.op.nn.relu(x)) if real else x for x, real in zip(given, floats, strict=True)]
            result = build(case.build(*read))
            return relax.op.tanh(result) if str(result.ty.dtype) == "float32" else result

        yield "between", replace(case, build=between)


def measured(case: Case, threads: int, rounds: int) -> Measured:
    """Compiles for so many threads, checks that results agree, and times both."""
    engine = registry.engine(LIBRARY)
    before = engine.threads()
    engine.set_threads(threads)
    try:
        without = ", ".join(name for name in DEFAULT.split(", ") if name != LIBRARY)
        ours, theirs = (
            tvm_mxplan.compile(case.module(), target, options={"cache": "disabled"})
            for target in (DEFAULT, without)
        )
        arrays = case.arrays()
        case.check(ours(*arrays)[0].numpy(), theirs(*arrays)[0].numpy())
        tensors = [machine.tensor_of(array) for array in arrays]
        clock = time.process_time if threads == 1 else time.perf_counter
        calls = calls_of_a_turn(theirs, tensors)
        pairs = [
            (seconds_of(ours, tensors, calls, clock), seconds_of(theirs, tensors, calls, clock))
            for _ in range(rounds)
        ]
    finally:
        engine.set_threads(before)
    spent = 1e6 * statistics.median(their for _, their in pairs) / calls
    return Measured(_who(ours), spent, statistics.median(their / our for our, their in pairs))


def _who(executable: tvm_mxplan.Executable) -> str:
    """The host library where it has anything, else TVM where it has, else oneDNN."""
    steps = [step for region in executable.report.regions for step in region.steps]
    if any(step.implementation.startswith(f"{LIBRARY}:") for step in steps):
        return LIBRARY
    return "TVM" if executable.report.kept else "oneDNN"


def main(arguments: Sequence[str] | None = None) -> int:
    """Print a table in Markdown; returns the exit status."""
    parser = argparse.ArgumentParser(
        prog="bench guests", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", default="", help="a part of the operators' names")
    parser.add_argument("--shapes", type=int, default=0, help="of so many of an operator's shapes (all)")
    parser.add_argument("--rounds", type=int, default=11, help="turns of each (11)")
    parser.add_argument("--threads", default="1,2", help="numbers of threads (1,2)")
    options = parser.parse_args(arguments)
    print(format_environment(environment(Path(__file__).resolve().parents[3])), file=sys.stderr)
    print(f"{HEADER}\n{RULE}")
    slower, given, seen = [], 0, dict[str, int]()
    for case in cases():
        seen[case.name] = seen.get(case.name, 0) + 1
        if options.only not in case.name or 0 < options.shapes < seen[case.name]:
            continue
        for place, placed in places(case):
            for threads in map(int, options.threads.split(",")):
                found = measured(placed, threads, options.rounds)
                row = (case.name, case, place, threads, found.who, f"{found.us:,.1f}", f"{found.ratio:.2f}")
                print("|", " | ".join(map(str, row)), "|", flush=True)
                given += found.who == LIBRARY
                if found.who == LIBRARY and found.ratio < SLOWER:
                    slower.append(f"{case.name} of {case}, {place}, {threads} threads ({found.ratio:.2f})")
    print(f"\n{len(slower)} of {given} slower{': ' if slower else ''}{'; '.join(slower)}")
    return 0
