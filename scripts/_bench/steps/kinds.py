"""The command line of scripts/bench kinds: what each kind of step takes of networks of today.

    scripts/bench kinds --models convnext_atto,pvt_v2_b0 --threads 2

Shares of the steps' time in steady calls, by the runtime's own clock, medians of each step; what lies between
steps is in none of them.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import tvm_mxplan
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.execution.threads import with_threads
from tvm_mxplan.testing.environment_info import environment, format_environment

from ..inputs import modern
from .profile import TimedStep, share_of, time_steps

NETWORKS = "convnext_atto,swin_tiny_patch4_window7_224,pvt_v2_b0,poolformer_s12,vit_tiny_patch16_224"
_HEADER = ("network", "steps", "ms", "reorders", "their share", "products", "attention", "all others")


def main(arguments: Sequence[str] | None = None) -> int:
    """Print a table in Markdown; returns the exit status."""
    parser = argparse.ArgumentParser("bench kinds", description=__doc__.splitlines()[0])
    parser.add_argument("--models", default=NETWORKS, help="networks of the modern zoo (%(default)s)")
    parser.add_argument("--batch", type=int, default=1, help="(%(default)s)")
    parser.add_argument("--threads", type=int, default=2, help="(%(default)s)")
    parser.add_argument("--calls", type=int, default=50, help="timed calls (%(default)s)")
    parser.add_argument("--precision", default="f32", help="as of the option (%(default)s)")
    parser.add_argument("--folder", type=Path, default=modern.default_folder(), help="of the zoo's exports")
    parser.add_argument("--exporting-python", default=sys.executable, help="a Python with torch and timm")
    options = parser.parse_args(arguments)
    print(format_environment(environment(Path(__file__).resolve().parents[3])), file=sys.stderr)
    print(f"| {' | '.join(_HEADER)} |")
    print(f"| --- |{' ---: |' * (len(_HEADER) - 1)}")
    exports = modern.Exports(options.folder, options.exporting_python)
    with with_threads(options.threads):
        for name in options.models.split(","):
            path = exports.model(name, options.batch)
            executable = tvm_mxplan.compile(path, options={"precision": options.precision})
            steps = time_steps(executable, modern.inputs(name, options.batch), options.calls)
            print(f"| {' | '.join([name, *cells(steps)])} |", flush=True)
    return 0


def cells(steps: Sequence[TimedStep]) -> list[str]:
    """The row of a network, without its name."""
    reorders = sum(isinstance(one.step.attrs, ir.Reorder) for one in steps)
    shares = [share_of(steps, ir.Reorder), share_of(steps, *ir.PRODUCTS), share_of(steps, ir.Attention)]
    return [
        str(len(steps)),
        f"{1e3 * sum(one.seconds for one in steps):.2f}",
        str(reorders),
        f"{100 * shares[0]:.2f} %",
        *(f"{100 * share:.1f} %" for share in (*shares[1:], 1 - sum(shares))),
    ]
