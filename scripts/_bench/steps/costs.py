"""The command line of scripts/bench costs: what networks and their steps take, held against the model.

Every network is compiled by a machine's rates, which are measured first, and its estimate is held against the
time of a call. Then every step is timed where it stands, under several policies of layouts, and compared with
what its library's `Backend.cost` gives it. Steps are put together by kind, kernel and layout of the result.
Networks beside the zoo are those of `_bench/inputs/networks.py`; the model was not fitted to the last three.

share           of the time of all steps
taken / model   median over the steps, with the 10th and 90th percentile, each step counted by its time

On one thread, times are the processor's, which other work does not count in; on more they are the clock's.

    scripts/bench costs --record FILE    the same, and a record of rates and times of the networks
    scripts/bench costs --check FILE     nothing runs: the networks of a record, of any machine, are planned
                                         by its rates, and estimates held against its times; the status is
                                         1 where one is further off than 1.3
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import tvm_mxplan
from tvm_mxplan.byoc import registry
from tvm_mxplan.byoc.backend import Backend
from tvm_mxplan.core.layout.layout import parse_layout
from tvm_mxplan.core.machine import MachineRates
from tvm_mxplan.errors import InvalidInputError
from tvm_mxplan.execution.threads import threads
from tvm_mxplan.options import Options
from tvm_mxplan.passes.costs.model import planned_step_us
from tvm_mxplan.rates.kept import rates_here
from tvm_mxplan.rates.wanted import wanted_rates
from tvm_mxplan.testing import zoo
from tvm_mxplan.testing.environment_info import environment, format_environment

from ..inputs import networks
from ..inputs.named import network
from . import cost_records, realtime
from .profile import TimedStep, time_steps

POLICIES = ("cost", "channels_last", "blocked")
NETWORKS = "| network | batch | estimated ms | taken ms | taken / estimated |"
EVERY = ",".join(name for name in (*zoo.names(), *networks.NAMES) if name != zoo.TINY)
TABLE = "| steps | number | share | taken / model | 10 % | 90 % |"


@dataclass(frozen=True)
class Sample:
    """Microseconds that a step or a network took, and what the model gives it."""

    taken: float
    modelled: float

    @property
    def ratio(self) -> float:
        return self.taken / max(self.modelled, 1e-3)


def main(arguments: Sequence[str] | None = None) -> int:
    """Print two tables in Markdown; returns the exit status."""
    options = _parse(arguments)
    print(format_environment(environment(Path(__file__).resolve().parents[3])), file=sys.stderr)
    if options.check:
        return _check(Path(options.check), options.models.split(",") if options.models else [])
    machine = wanted_rates(Options(machine=options.machine), threads(), rates_here, weighs=True)
    backend = registry.planner(registry.DEFAULT[0])
    families: dict[str, list[Sample]] = {}
    calls: dict[tuple[str, int], Sample] = {}
    for batch in (int(number) for number in options.batch.split(",")):
        for name in (options.models or EVERY).split(","):
            for policy in options.policies.split(","):
                found = _measured(name, batch, policy, options)
                if policy == POLICIES[0]:
                    calls[name, batch] = found.call
                for step in found.steps:
                    if step.step.implementation:  # else a concatenation whose pieces stand in place
                        sample = Sample(1e6 * step.seconds, modelled(step, backend, machine))
                        families.setdefault(family_of(step), []).append(sample)
    print(f"Rates: {machine}.\n")
    for title, lines in ((NETWORKS, network_rows(calls)), (TABLE, rows(families))):
        print(_table(title, lines))
    if options.record:
        taken_us = {network: sample.taken for network, sample in calls.items()}
        cost_records.write(cost_records.record_here(machine, taken_us), Path(options.record))
    return 0


def _check(path: Path, names: Sequence[str]) -> int:
    """Print estimates by a record's rates beside its times; returns the exit status."""
    record = cost_records.Record.read(path)
    if record.rates.threads != threads():
        raise InvalidInputError(f"{path}: of {record.rates.threads} threads, set OMP_NUM_THREADS to that")
    calls = {}
    with tempfile.TemporaryDirectory() as folder:
        rates = Path(folder) / "rates.json"
        rates.write_text(json.dumps(record.rates.to_json()))
        for one in cost_records.checked(record, names):
            model, _ = _network(one.name, one.batch)
            executable = tvm_mxplan.compile(model, options=_plan(str(rates)))
            calls[one.name, one.batch] = Sample(one.taken_us, estimated_us(executable))
            print(f"bench costs: {one.name}, batch {one.batch}", file=sys.stderr)
    print(f"{record.machine}, {record.date}, rates {record.rates_from}: {record.rates}.\n")
    print(_table(NETWORKS, network_rows(calls)))
    far = [name for (name, _), call in calls.items() if not cost_records.is_near(call.taken, call.modelled)]
    beyond = f", not {', '.join(far)}" if far else ""
    print(f"{len(calls) - len(far)} of {len(calls)} within {cost_records.WITHIN}{beyond}")
    return 1 if far else 0


def _table(title: str, lines: Sequence[str]) -> str:
    return "\n".join([title, f"| --- |{' ---: |' * (title.count('|') - 2)}", *lines, ""])


def _network(name: str, batch: int) -> tuple[Any, dict[str, np.ndarray]]:
    """A model, in Relax for networks beside the zoo, and inputs for it."""
    if name not in networks.NAMES:
        return network(name, batch)
    module = networks.network(name, batch)
    shape = [int(extent) for extent in module["main"].params[0].ty.shape]
    return module, {"x": np.random.default_rng(1).standard_normal(shape, np.float32)}


def _plan(machine: str, layouts: str = POLICIES[0]) -> dict[str, str]:
    """Options by which networks are compiled."""
    return {"layouts": layouts, "machine": machine, "verify": "off"}


def estimated_us(executable: tvm_mxplan.Executable) -> float:
    """Microseconds that a network is estimated at, regions and what TVM keeps."""
    report = executable.report
    regions = sum(region.calls * (region.estimated_us or 0.0) for region in report.regions)
    return regions + sum(kept.estimated_us or 0.0 for kept in report.kept)


@dataclass(frozen=True)
class _Network:
    call: Sample
    steps: list[TimedStep]


def _measured(name: str, batch: int, policy: str, options: argparse.Namespace) -> _Network:
    """A network's time and that of its steps."""
    model, inputs = _network(name, batch)
    executable = tvm_mxplan.compile(model, options=_plan(options.machine, policy))
    executable(**inputs)
    clock = time.process_time if threads() == 1 else time.perf_counter
    with realtime.priority(options.realtime):
        samples = []
        for _ in range(options.calls + 2):
            start = clock()
            executable(**inputs)
            samples.append(clock() - start)
        steps = time_steps(executable, inputs, options.calls, clock)
    call = Sample(1e6 * float(np.median(samples[2:])), estimated_us(executable))
    print(
        f"bench costs: {name}, batch {batch}, {policy}: {call.ratio:.2f}, {len(steps)} steps", file=sys.stderr
    )
    return _Network(call, steps)


def modelled(timed: TimedStep, backend: Backend, machine: MachineRates) -> float:
    """Microseconds of a step by the library's model, on a machine of these rates."""
    return planned_step_us(timed.program, timed.step, backend, machine)


def family_of(timed: TimedStep) -> str:
    """Kind, kernel and layout of the result."""
    step = timed.step
    layout = parse_layout(timed.program.values[step.dst].layout)
    placed = "blocked" if layout.blocks else "not blocked"
    return f"{step.kind} {step.implementation}, {placed}"


def network_rows(calls: Mapping[tuple[str, int], Sample]) -> list[str]:
    """A row for each network."""
    return [
        f"| {name}{' (unseen)' if name in networks.UNSEEN else ''} | {batch} | {sample.modelled / 1e3:.2f} "
        f"| {sample.taken / 1e3:.2f} | {sample.ratio:.2f} |"
        for (name, batch), sample in calls.items()
    ]


def rows(families: Mapping[str, Sequence[Sample]]) -> list[str]:
    """A row for each family, those that take longest first."""
    everything = sum(sample.taken for samples in families.values() for sample in samples)
    found = []
    for family, samples in families.items():
        taken = np.array([sample.taken for sample in samples])
        ratios = np.array([sample.ratio for sample in samples])
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
    parser.add_argument(
        "--models", default="", help="comma-separated, of the zoo or beside it (all), or of today"
    )
    parser.add_argument("--batch", default="1", help="batches (1)")
    parser.add_argument("--policies", default=POLICIES[0], help=f"of {', '.join(POLICIES)} ({POLICIES[0]})")
    parser.add_argument("--calls", type=int, default=9, help="timed calls (9)")
    parser.add_argument(
        "--machine", default="measured", help="measured, default, or a file of rates (measured)"
    )
    parser.add_argument("--realtime", action="store_true", help="time at real-time priority, where permitted")
    parser.add_argument("--record", default="", metavar="FILE", help="write rates and times to a file")
    parser.add_argument("--check", default="", metavar="FILE", help="check estimates against a record")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
