"""The command line of scripts/bench layouts: one model under every layout policy, taking turns.

For each policy the median latency as a ratio to that of ``cost``, and the share of the time that oneDNN
spends in reorders, which a second process reads off oneDNN's own log.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import tvm_mxplan
from tvm_mxplan.core.policies import POLICIES
from tvm_mxplan.testing import zoo
from tvm_mxplan.testing.environment_info import environment, format_environment

from ..harness.variants import median_times

MODELS = "bvlc_alexnet,densenet121,inception_v1,inception_v2,resnet50,shufflenet,squeezenet,vgg19,zfnet512"
_LOGGED_CALLS = 5


def main(arguments: Sequence[str] | None = None) -> int:
    """Print a table in Markdown; returns the exit status."""
    options = _parse(arguments)
    if options.log:
        _run_for_the_log(options.models, int(options.batch), options.log)
        return 0
    print(format_environment(environment(Path(__file__).resolve().parents[3])), file=sys.stderr)
    compared = options.policies
    print(f"| model | batch | cost ms | {' | '.join(compared[1:])} | reorders: {', '.join(compared)} |")
    print(f"| --- | ---: | ---: | {' | '.join('---:' for _ in compared[1:])} | --- |")
    for batch in (int(number) for number in options.batch.split(",")):
        for name in options.models.split(","):
            policies = {policy: {"layouts": policy} for policy in compared}
            medians = median_times(name, batch, policies, options.rounds)
            shares = [reorder_share(logged(name, batch, policy)) for policy in compared]
            ratios = " | ".join(_ratio(medians, policy) for policy in compared[1:])
            listed = ", ".join(f"{100 * share:.0f} %" for share in shares)
            print(f"| {name} | {batch} | {medians['cost']:.2f} | {ratios} | {listed} |", flush=True)
    return 0


def _ratio(medians: Mapping[str, float], policy: str) -> str:
    """To ``cost``; ``=`` where both run the same programs, which are timed once."""
    return "=" if medians[policy] == medians["cost"] else f"{medians[policy] / medians['cost']:.2f}"


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="bench layouts", description=__doc__)
    parser.add_argument("--models", default=MODELS, help="comma-separated (the nine light ones)")
    parser.add_argument("--batch", default="1,8", help="batches (1,8)")
    parser.add_argument("--rounds", type=int, default=15, help="turns of each policy (15)")
    parser.add_argument("--policies", type=_policies, default=POLICIES, help="beside cost (all)")
    parser.add_argument("--log", help=argparse.SUPPRESS)
    return parser.parse_args(arguments)


def _policies(text: str) -> tuple[str, ...]:
    found = dict.fromkeys(["cost", *text.split(",")])
    unknown = [policy for policy in found if policy not in POLICIES]
    if unknown:
        raise argparse.ArgumentTypeError(f"no policy {unknown[0]!r}; there are {', '.join(POLICIES)}")
    return tuple(found)


@dataclass(frozen=True)
class Execution:
    """A primitive that oneDNN ran, as its log has it."""

    kind: str
    milliseconds: float


def reorder_share(executions: Sequence[Execution]) -> float:
    """Share of the time that goes into reorders, 0 to 1."""
    total = sum(execution.milliseconds for execution in executions)
    reorders = sum(execution.milliseconds for execution in executions if execution.kind == "reorder")
    return reorders / total if total else 0.0


def logged(name: str, batch: int, policy: str) -> list[Execution]:
    """Executions of one steady call, in a process of its own."""
    command = [
        sys.executable,
        "-m",
        "_bench.whole.layouts",
        "--models",
        name,
        "--batch",
        str(batch),
        "--log",
        policy,
    ]
    environ = {**os.environ, "ONEDNN_VERBOSE": "1"}
    log = subprocess.run(command, env=environ, check=True, capture_output=True, text=True).stdout
    timed = log[log.rindex("steady state") :].splitlines()
    rows = [line.split(",") for line in timed if line.startswith("onednn_verbose,exec")]
    return [Execution(row[3], float(row[-1])) for row in rows]


def _run_for_the_log(name: str, batch: int, policy: str) -> None:
    model = zoo.load(name, batch=batch)
    inputs = zoo.random_inputs(model, batch=batch)
    executable = tvm_mxplan.compile(model, options={"layouts": policy})
    executable(**inputs)
    print("steady state", flush=True)
    for _ in range(_LOGGED_CALLS):
        executable(**inputs)


if __name__ == "__main__":
    sys.exit(main())
