"""The command line of scripts/bench roofline: what bounds each model, and where its time goes.

The roofs are measured first: oneDNN's product of large matrices, and memory read once. No step can take less
than its arithmetic at the first or its weights at the second, so the bound of a model is the sum over its
steps of the larger of the two; activations are taken to stay in the caches, transforms and eltwise operators
to be free.

GFLOP, done     of the direct sums, and what is left of it where Winograd multiplies less
weights         bytes as they are packed, read once by every call
activations     bytes that steps read and write
bound           in ms; bound / ours is the share of the roofs that is reached
share, of bound in the second table: of the time of all steps, and of the steps' own bound
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import tvm_mxplan
from tvm_mxplan.byoc.onednn import library
from tvm_mxplan.core import multiply_adds
from tvm_mxplan.core.element_types import dense_bytes
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.testing import zoo
from tvm_mxplan.testing.environment_info import environment, format_environment

from ..harness.variants import TEN
from .machine import Roofs, measure_roofs
from .profile import TimedStep, time_steps

TILES = {"winograd_f2": 2, "winograd_f4": 4}
MEGA, MILLI = 1e6, 1e-3
TABLE = (
    "| model | batch | GFLOP | done | weights MB | activations MB | arithmetic ms | weights ms | bound ms "
    "| ours ms | bound / ours |"
)
PROFILE = "| model | batch | steps | number | ms | share | of bound |"


@dataclass(frozen=True)
class Work:
    """The work that a step, or several, must do, and the seconds that it took."""

    direct: float
    flops: float
    weights: int
    activations: int
    bound: float
    seconds: float


def main(arguments: Sequence[str] | None = None) -> int:
    """Print two tables in Markdown; returns the exit status."""
    options = _parse(arguments)
    print(format_environment(environment(Path(__file__).resolve().parents[3])), file=sys.stderr)
    roofs = measure_roofs()
    print(f"Roofs: {roofs}.\n\n{TABLE}\n| --- |{' ---: |' * (TABLE.count('|') - 2)}")
    profile = []
    for batch in (int(number) for number in options.batch.split(",")):
        for name in options.models.split(","):
            milliseconds, steps = _measure(name, batch, options.calls)
            work = [(step, work_of(step, roofs)) for step in steps]
            print(_row(name, batch, roofs, milliseconds, total([work for _, work in work])), flush=True)
            profile += [f"| {name} | {batch} | {row} |" for row in kinds(work, options.top)]
    print("\n".join(("", PROFILE, "| --- | ---: | --- | ---: | ---: | ---: | ---: |", *profile)))
    return 0


def _measure(name: str, batch: int, calls: int) -> tuple[float, list[TimedStep]]:
    model = zoo.load(name, batch=batch)
    inputs = zoo.random_inputs(model)
    executable = tvm_mxplan.compile(model)
    times = []
    for _ in range(calls + 2):
        start = time.perf_counter()
        executable(**inputs)
        times.append(time.perf_counter() - start)
    return statistics.median(times[2:]) / MILLI, time_steps(executable, inputs, calls)


def work_of(timed: TimedStep, roofs: Roofs) -> Work:
    """Computes the least work that one step has to do."""
    program, step = timed.program, timed.step
    alone = replace(program, steps=(step,))
    direct = 2 * multiply_adds.of_program(alone)
    flops = direct / _saved(program, step)
    weights = library.describe(alone).steps[0].weights_bytes
    touched = {operand.value for operand in step.operands}
    activations = sum(
        dense_bytes(value.shape, value.dtype)
        for number, value in enumerate(program.values)
        if number in touched and not _is_constant(program, value)
    )
    bound = max(flops / roofs.flops, weights / roofs.read)
    return Work(direct, flops, weights, activations, bound, timed.seconds)


def _saved(program: ir.Program, step: ir.Step) -> float:
    """By how much the step's algorithm divides multiplications."""
    if not isinstance(step.attrs, ir.Convolution) or step.attrs.algorithm == "direct":
        return 1.0
    tile, extent = TILES[step.attrs.algorithm], int(program.values[step.operand("weights")].shape[-1])  # type: ignore[arg-type]
    return (tile * extent / (tile + extent - 1)) ** 2


def _is_constant(program: ir.Program, value: ir.Value) -> bool:
    """True for constants and views of them."""
    while value.alias_of >= 0 and value.kind != "constant":
        value = program.values[value.alias_of]
    return value.kind == "constant"


def total(parts: Iterable[Work]) -> Work:
    """The sum of each field."""
    parts = list(parts)
    return Work(
        sum(part.direct for part in parts),
        sum(part.flops for part in parts),
        sum(part.weights for part in parts),
        sum(part.activations for part in parts),
        sum(part.bound for part in parts),
        sum(part.seconds for part in parts),
    )


def kinds(work: Sequence[tuple[TimedStep, Work]], top: int) -> list[str]:
    """Cells of the profile: steps of one kind and implementation together, the slowest first."""
    groups: dict[str, list[Work]] = {}
    for timed, part in work:
        groups.setdefault(f"{timed.step.kind} {timed.step.implementation}".strip(), []).append(part)
    everything = sum(part.seconds for _, part in work)
    ordered = sorted(groups.items(), key=lambda group: -sum(part.seconds for part in group[1]))
    rest = [part for _, parts in ordered[top:] for part in parts]
    rows = []
    for name, parts in [*ordered[:top], ("all others", rest)]:
        if parts:
            summed = total(parts)
            share, reached = summed.seconds / everything, summed.bound / summed.seconds
            cells = (name, len(parts), f"{summed.seconds / MILLI:.2f}", f"{share:.0%}", f"{reached:.0%}")
            rows.append(" | ".join(map(str, cells)))
    return rows


def _row(name: str, batch: int, roofs: Roofs, milliseconds: float, work: Work) -> str:
    bound = work.bound / MILLI
    return (
        f"| {name} | {batch} | {work.direct / 1e9:.2f} | {work.flops / 1e9:.2f} | {work.weights / MEGA:.1f} "
        f"| {work.activations / MEGA:.1f} | {work.flops / roofs.flops / MILLI:.2f} "
        f"| {work.weights / roofs.read / MILLI:.2f} | {bound:.2f} | {milliseconds:.2f} "
        f"| {bound / milliseconds:.0%} |"
    )


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="bench roofline", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--models", default=",".join(TEN), help="comma-separated (ten networks)")
    parser.add_argument("--batch", default="1,8", help="batches (1,8)")
    parser.add_argument("--calls", type=int, default=9, help="timed calls (9)")
    parser.add_argument("--top", type=int, default=4, help="kinds of steps named for each model (4)")
    return parser.parse_args(arguments)
