"""The command line of scripts/bench costs: what steps take, held against the model that chooses layouts.

Every step of each model is timed where it stands, under several policies of layouts, and compared with the
cost that `passes/layout/costs.py` gives it at the roofs of this machine, which are measured first. Steps are
put together by kind, kernel and layout of the result, which is how `passes/layout/kernel_costs.py` states
what kernels reach. Absolute costs do not matter to a choice; that families err alike does.

share           of the time of all steps
taken / model   median over the steps, with the 10th and 90th percentile, each step counted by its time
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import tvm_mxplan
from tvm_mxplan.byoc.onednn import library
from tvm_mxplan.core.layout.layout import parse_layout
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.passes.layout.candidates import operands_of
from tvm_mxplan.passes.layout.costs import Machine, reorder_cost, step_cost
from tvm_mxplan.testing import zoo
from tvm_mxplan.testing.environment_info import environment, format_environment

from .machine import Roofs, measure_roofs
from .profile import TimedStep, time_steps
from .variants import TEN

POLICIES = ("cost", "channels_last", "blocked")
TABLE = "| steps | number | share | taken / model | 10 % | 90 % |"


@dataclass(frozen=True)
class Sample:
    """Microseconds that a step took, and what the model gives it."""

    taken: float
    modelled: float


def main(arguments: Sequence[str] | None = None) -> int:
    """Print a table in Markdown; returns the exit status."""
    options = _parse(arguments)
    print(format_environment(environment(Path(__file__).resolve().parents[2])), file=sys.stderr)
    roofs = measure_roofs()
    families: dict[str, list[Sample]] = {}
    for batch in (int(number) for number in options.batch.split(",")):
        for name in options.models.split(","):
            for policy in options.policies.split(","):
                for family, sample in _samples(name, batch, policy, options.calls, roofs):
                    families.setdefault(family, []).append(sample)
    print(f"Roofs: {roofs}.\n\n{TABLE}\n| --- |{' ---: |' * (TABLE.count('|') - 2)}")
    print("\n".join(rows(families)))
    return 0


def _samples(name: str, batch: int, policy: str, calls: int, roofs: Roofs) -> Iterator[tuple[str, Sample]]:
    model = zoo.load(name, batch=batch)
    executable = tvm_mxplan.compile(model, options={"layouts": policy})
    timed = time_steps(executable, zoo.random_inputs(model), calls)
    print(f"bench costs: {name}, batch {batch}, {policy}: {len(timed)} steps", file=sys.stderr)
    for step in timed:
        if not step.step.implementation:  # a concatenation whose pieces stand in place
            continue
        yield family_of(step), Sample(1e6 * step.seconds, modelled(step, roofs))


def modelled(timed: TimedStep, roofs: Roofs) -> float:
    """Microseconds of a step by the model, on a machine with these roofs."""
    info = library.describe(timed.program).steps[timed.number]
    layouts = [timed.program.values[value].layout for _, value in operands_of(timed.step)]
    machine = Machine(gflops=roofs.flops / 1e9, gbytes_per_s=roofs.read / 1e9)
    if isinstance(timed.step.attrs, ir.Reorder):
        shape = timed.program.values[timed.step.dst].shape
        return reorder_cost(shape, layouts[0], layouts[-1], machine)  # type: ignore[arg-type]
    return step_cost(timed.program, timed.step, layouts, info, machine)


def family_of(timed: TimedStep) -> str:
    """Kind, kernel and layout of the result."""
    step = timed.step
    layout = parse_layout(timed.program.values[step.dst].layout)
    placed = "blocked" if layout.blocks else "not blocked"
    return f"{step.kind} {step.implementation}, {placed}"


def rows(families: Mapping[str, Sequence[Sample]]) -> list[str]:
    """A row for each family, those that take longest first."""
    everything = sum(sample.taken for samples in families.values() for sample in samples)
    found = []
    for family, samples in families.items():
        taken = np.array([sample.taken for sample in samples])
        ratios = taken / np.array([max(sample.modelled, 1e-3) for sample in samples])
        low, middle, high = _percentiles(ratios, taken, (0.1, 0.5, 0.9))
        share = taken.sum() / everything
        cells = f"{len(samples)} | {share:.1%} | {middle:.2f} | {low:.2f} | {high:.2f}"
        found.append((taken.sum(), f"| {family} | {cells} |"))
    return [row for _, row in sorted(found, reverse=True)]


def _percentiles(values: np.ndarray, weights: np.ndarray, shares: Sequence[float]) -> list[float]:
    """Values below which these shares of all weight lie."""
    order = np.argsort(values)
    reached = np.cumsum(weights[order]) / weights.sum()
    return [float(values[order][np.searchsorted(reached, share)]) for share in shares]


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="bench costs", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--models", default=",".join(TEN), help="comma-separated (ten networks)")
    parser.add_argument("--batch", default="1,8", help="batches (1,8)")
    every = ",".join(POLICIES)
    parser.add_argument("--policies", default=every, help=f"comma-separated ({every})")
    parser.add_argument("--calls", type=int, default=9, help="timed calls (9)")
    return parser.parse_args(arguments)
