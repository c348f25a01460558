"""The command line of scripts/bench choices: choosing for every operator against one rule for all.

The default options and others that hold one rule everywhere, compiled in one process and taking turns. Each
column is the time of a rule over that of the default: above 1 the choice per operator has gained that much.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from tvm_mxplan.testing.environment_info import environment, format_environment

from ..harness.statistics import geometric_mean
from ..harness.table import NOTHING
from ..harness.variants import TEN, median_times

DEFAULT = "chosen"
RULES: dict[str, dict[str, str]] = {
    "channels last, direct": {"layouts": "channels_last", "convolutions": "direct"},
    "blocked, direct": {"layouts": "blocked", "convolutions": "direct"},
    "oneDNN's any, direct": {"layouts": "any", "convolutions": "direct"},
    "layouts chosen, direct": {"convolutions": "direct"},
    "channels last, F4": {"layouts": "channels_last", "convolutions": "winograd_f4"},
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Print a table in Markdown; returns the exit status."""
    options = _parse(arguments)
    print(format_environment(environment(Path(__file__).resolve().parents[3])), file=sys.stderr)
    print(f"| model | batch | {DEFAULT} ms | {' | '.join(RULES)} | best rule |")
    print(f"| --- | ---: | ---: | {' | '.join('---:' for _ in RULES)} | ---: |")
    for batch in (int(number) for number in options.batch.split(",")):
        rows = []
        for name in options.models.split(","):
            times = median_times(name, batch, {DEFAULT: {}, **RULES}, options.rounds)
            ratios = [times[rule] / times[DEFAULT] for rule in RULES]
            rows.append([*ratios, min(ratios)])
            print(f"| {name} | {batch} | {times[DEFAULT]:.2f} | {_cells(rows[-1])} |", flush=True)
        means = [geometric_mean(column) for column in zip(*rows, strict=True)]
        print(f"| geometric mean of {len(rows)} | {batch} | {NOTHING} | {_cells(means)} |", flush=True)
    return 0


def _cells(ratios: Sequence[float]) -> str:
    return " | ".join(f"{ratio:.2f}" for ratio in ratios)


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="bench choices", description=__doc__)
    parser.add_argument("--models", default=",".join(TEN), help="comma-separated (ten networks)")
    parser.add_argument("--batch", default="1,8", help="batches (1,8)")
    parser.add_argument("--rounds", type=int, default=9, help="turns of each (9)")
    return parser.parse_args(arguments)
