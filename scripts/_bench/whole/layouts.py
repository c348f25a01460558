"""The command line of scripts/bench layouts: one model under every layout policy, taking turns.

Models are published ones or, by their names, those of today (`--zoo modern` of bench models exports them).
For each policy the median latency as a ratio to that of ``cost``, and the share of its steps' time that goes
into reorders, ours and oneDNN's.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import tvm_mxplan
from tvm_mxplan.core.policies import POLICIES
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.testing.environment_info import environment, format_environment

from ..harness.variants import median_times
from ..inputs.named import network
from ..steps.profile import TimedStep, share_of, time_steps

MODELS = "bvlc_alexnet,densenet121,inception_v1,inception_v2,resnet50,shufflenet,squeezenet,vgg19,zfnet512"
_CALLS = 5


def main(arguments: Sequence[str] | None = None) -> int:
    """Print a table in Markdown; returns the exit status."""
    options = _parse(arguments)
    print(format_environment(environment(Path(__file__).resolve().parents[3])), file=sys.stderr)
    compared = options.policies
    print(f"| model | batch | cost ms | {' | '.join(compared[1:])} | reorders: {', '.join(compared)} |")
    print(f"| --- | ---: | ---: | {' | '.join('---:' for _ in compared[1:])} | --- |")
    for batch in (int(number) for number in options.batch.split(",")):
        for name in options.models.split(","):
            policies = {policy: {"layouts": policy} for policy in compared}
            medians = median_times(name, batch, policies, options.rounds)
            shares = [share_of(timed_steps(name, batch, policy), ir.Reorder) for policy in compared]
            ratios = " | ".join(_ratio(medians, policy) for policy in compared[1:])
            listed = ", ".join(f"{100 * share:.0f} %" for share in shares)
            print(f"| {name} | {batch} | {medians['cost']:.2f} | {ratios} | {listed} |", flush=True)
    return 0


def _ratio(medians: Mapping[str, float], policy: str) -> str:
    """To ``cost``; ``=`` where both run the same programs, which are timed once."""
    return "=" if medians[policy] == medians["cost"] else f"{medians[policy] / medians['cost']:.2f}"


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="bench layouts", description=__doc__)
    parser.add_argument("--models", default=MODELS, help="comma-separated, published or of today (nine)")
    parser.add_argument("--batch", default="1,8", help="batches (1,8)")
    parser.add_argument("--rounds", type=int, default=15, help="turns of each policy (15)")
    parser.add_argument("--policies", type=_policies, default=POLICIES, help="beside cost (all)")
    return parser.parse_args(arguments)


def _policies(text: str) -> tuple[str, ...]:
    found = dict.fromkeys(["cost", *text.split(",")])
    unknown = [policy for policy in found if policy not in POLICIES]
    if unknown:
        raise argparse.ArgumentTypeError(f"no policy {unknown[0]!r}; there are {', '.join(POLICIES)}")
    return tuple(found)


def timed_steps(name: str, batch: int, policy: str) -> list[TimedStep]:
    """The steps of steady calls."""
    model, inputs = network(name, batch)
    executable = tvm_mxplan.compile(model, options={"layouts": policy})
    return time_steps(executable, inputs, _CALLS)
