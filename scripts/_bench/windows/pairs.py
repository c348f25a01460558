"""The command line of scripts/bench pairs: depthwise convolutions inside of the pointwise ones before them.

    scripts/bench pairs --blocks 1x16x96x112:2,8x32x192x28:1

Blocks are samples x channels x channels between x pixels of a side, with the depthwise convolution's stride
behind a colon: four of them on one image, each a pointwise convolution to the channels between, a depthwise
one of 3x3 windows, and a pointwise one back.  Each network is compiled with every pair as one step and with
none, whatever the planner's rule says.  Results are held against each other first; times are milliseconds by
the clock, in turns, medians.  "private" is the image between by what cores' own caches hold.
OMP_NUM_THREADS says how many threads.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import tvm_mxplan
from tvm_mxplan.byoc.onednn.rewrites import depthwise
from tvm_mxplan.testing.environment_info import environment, format_environment
from tvm_mxplan.testing.graph_builder import GraphBuilder
from tvm_mxplan.testing.randomize import Randomizer
from tvm_mxplan.testing.skeleton import assemble
from tvm_mxplan.tuning.place import Here

from ..harness.one_step import held, medians_in_turns

BLOCKS = (
    "1x16x96x112:2,1x16x96x112:1,1x16x64x112:2,1x24x144x56:2,1x24x144x56:1,2x24x144x56:1,4x24x144x56:2,"
    "1x32x192x28:1,8x32x192x28:1,8x32x192x28:2,1x64x384x14:1,8x64x384x14:1,8x160x960x7:1,1x64x128x112:2"
)
_EACH = 4
_MOST = 1e-5


def main(arguments: Sequence[str] | None = None) -> int:
    """Print a table in Markdown; returns the exit status."""
    parser = argparse.ArgumentParser(
        prog="bench pairs", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--blocks", default=BLOCKS, help="samples x channels x between x pixels : stride")
    parser.add_argument("--rounds", type=int, default=200, help="(200)")
    options = parser.parse_args(arguments)
    print(format_environment(environment(Path(__file__).resolve().parents[3])), file=sys.stderr)
    private = Here().rates(True).private_bytes
    print("| blocks | MiB between | private | as one, ms | as two | ratio |")
    print("| --- | ---: | ---: | ---: | ---: | ---: |")
    for text in options.blocks.split(","):
        extents, _, stride = text.partition(":")
        samples, channels, between, side = (int(number) for number in extents.split("x"))
        model = _network(samples, channels, between, side, int(stride))
        with _least_times(0):
            one = tvm_mxplan.compile(model)
        with _least_times(1 << 40):
            two = tvm_mxplan.compile(model)
        if _convolutions(two) - _convolutions(one) != _EACH:
            raise SystemExit(f"bench: {text}: no pair; oneDNN takes multiples of 16 channels between")
        x = np.random.default_rng(0).standard_normal((samples, channels, side, side), "float32")
        held(text, one.run(x)[0], two.run(x)[0], _MOST)
        ours, theirs = medians_in_turns([partial(one, x), partial(two, x)], options.rounds)
        nbytes = 4 * samples * between * side * side
        cells = [text, f"{nbytes / 2**20:.2f}", f"{nbytes / private:.1f}"]
        cells += [f"{ours / 1e3:.2f}", f"{theirs / 1e3:.2f}", f"{ours / theirs:.3f}"]
        print(f"| {' | '.join(cells)} |", flush=True)
    return 0


@contextmanager
def _least_times(number: float) -> Iterator[None]:
    """The rule by which pairs become one, with another number."""
    rule = dict(depthwise.LEAST_TIMES)
    depthwise.LEAST_TIMES.update(dict.fromkeys(rule, number))
    try:
        yield
    finally:
        depthwise.LEAST_TIMES.update(rule)


def _network(samples: int, channels: int, between: int, side: int, stride: int) -> Any:
    g = GraphBuilder("pairs", (channels, side, side))
    image, sums = g.conv(g.input, channels, 1), ""
    for _ in range(_EACH):
        inside = g.relu6(g.conv(g.relu6(g.conv(image, between, 1)), between, 3, stride, groups=between))
        result = g.conv(inside, channels, 1)
        sums = g.add(sums, result) if sums else result
    skeleton = g.finish(sums)
    return assemble(skeleton, Randomizer(skeleton), samples)


def _convolutions(executable: tvm_mxplan.Executable) -> int:
    return sum(step.kind == "convolution" for region in executable.report.regions for step in region.steps)


if __name__ == "__main__":
    sys.exit(main())
