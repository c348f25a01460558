"""The command line of scripts/bench products: what runs products with constant matrices, and what else could.

    scripts/bench products --shapes 128x768x3072:gelu_erf,8x768x768 --threads 1,2

Shapes are rows x depth x columns in float32, with an elementwise function behind a colon. ``first`` is what a
plan runs, ``next`` what it would run if that were refused. Results are held against float64 first. Both take
turns in one process, and 64 MB are written before each, so that operands come from memory; the ratio is the
time of ``next`` to that of ``first`` in the same turn, its median.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tvm_mxplan.byoc.onednn import library
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.core.program.builder import ProgramBuilder
from tvm_mxplan.execution.threads import with_threads
from tvm_mxplan.testing.environment_info import environment, format_environment

SHAPES = (
    "128x768x3072:gelu_erf,128x3072x768,128x768x768,196x512x2048:gelu_erf,196x96x384,"
    "197x384x1536:gelu_erf,197x384x384,49x768x2304,8x768x768,2x768x3072,256x768x768,256x128x512"
)
_MOST = 1e-5
"""Relative error of a product in the L2 norm that is allowed."""
_WRITTEN = 64 << 20


@dataclass(frozen=True)
class Shape:
    """A product, and the function behind it."""

    rows: int
    depth: int
    columns: int
    function: str = ""

    @classmethod
    def parse(cls, text: str) -> Shape:
        """Reads ``128x768x3072:gelu_erf``."""
        extents, _, function = text.partition(":")
        return cls(*(int(number) for number in extents.split("x")), function=function)

    def __str__(self) -> str:
        return f"{self.rows}x{self.depth}x{self.columns} {self.function}".rstrip()

    @property
    def operations(self) -> float:
        """Multiplications and additions."""
        return 2.0 * self.rows * self.depth * self.columns


@dataclass(frozen=True)
class Candidate:
    """An implementation, and a call of it."""

    implementation: str
    call: Callable[[], object]


def main(arguments: Sequence[str] | None = None) -> int:
    """Print a table in Markdown; returns the exit status."""
    parser = argparse.ArgumentParser(
        "bench products", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--shapes", default=SHAPES, help="comma-separated (%(default)s)")
    parser.add_argument("--threads", default="1,2", help="comma-separated (%(default)s)")
    parser.add_argument("--rounds", type=int, default=14, help="(%(default)s)")
    options = parser.parse_args(arguments)
    print(format_environment(environment(Path(__file__).resolve().parents[3])), file=sys.stderr)
    print("| shape | threads | first | GFLOP/s | next | ratio |")
    print("| --- | ---: | --- | ---: | --- | ---: |")
    for shape in map(Shape.parse, options.shapes.split(",")):
        for threads in map(int, options.threads.split(",")):
            with with_threads(threads):
                first, other = candidates(shape)
                seconds, ratio = compare(first, other, options.rounds)
            rate = f"{shape.operations / seconds / 1e9:.0f}"
            cells = (shape, threads, first.implementation, rate, other.implementation, f"{ratio:.2f}")
            print(f"| {' | '.join(map(str, cells))} |", flush=True)
    return 0


def candidates(shape: Shape) -> tuple[Candidate, Candidate]:
    """The implementation that runs the product and the one without it; both have given the right product."""
    random = np.random.default_rng(0)
    x = random.standard_normal((shape.rows, shape.depth), "float32")
    weights = (random.standard_normal((shape.depth, shape.columns)) / shape.depth**0.5).astype("float32")
    first = _candidate(shape, x, weights)
    told = library.describe(_program(shape, x, weights).finish()).steps[0]
    library.refuse(told.descriptor, told.implementation, "for this table")
    try:
        return first, _candidate(shape, x, weights)
    finally:
        library.forget_refusals()


def compare(first: Candidate, other: Candidate, rounds: int) -> tuple[float, float]:
    """Median seconds of the first, and of the ratios of the other's to them."""
    written = np.zeros(_WRITTEN, "uint8")
    turns = []
    for _ in range(rounds):
        spent = []
        for one in (first, other):
            written += 1
            start = time.perf_counter()
            one.call()
            spent.append(time.perf_counter() - start)
        turns.append(spent)
    seconds = statistics.median(mine for mine, _ in turns)
    return seconds, statistics.median(theirs / mine for mine, theirs in turns)


def _program(shape: Shape, x: np.ndarray, weights: np.ndarray) -> ProgramBuilder:
    b = ProgramBuilder("product")
    dst = (shape.rows, shape.columns)
    post_ops = (ir.EltwisePostOp(shape.function, 0.0, 0.0),) if shape.function else ()
    operands = [("src", b.port("input", "x", x.shape, "float32")), ("weights", b.constant(weights))]
    result = b.port("output", "y", dst, "float32")
    b.write_output(b.step("product", ir.MatMul(), dst, operands, post_ops=post_ops), result)
    return b


def _candidate(shape: Shape, x: np.ndarray, weights: np.ndarray) -> Candidate:
    """Runs once with the function behind the product; its product alone is held against float64."""
    bare = Shape(shape.rows, shape.depth, shape.columns)
    call, result = _trial(_program(bare, x, weights), x)
    call()
    exact = x.astype("float64") @ weights
    off = float(np.linalg.norm(result - exact) / np.linalg.norm(exact))
    if not off <= _MOST:
        raise SystemExit(f"{shape}: results are off by {off:.1e}")
    b = _program(shape, x, weights)
    implementation = library.describe(b.finish()).steps[0].implementation
    call, _ = _trial(b, x)
    call()
    return Candidate(implementation, call)


def _trial(b: ProgramBuilder, x: np.ndarray) -> tuple[Callable[[], object], np.ndarray]:
    program = b.finish()
    (output,) = (value for value in program.values if value.kind == "output")
    result = np.empty(tuple(int(extent) for extent in output.shape), "float32")
    function = library.trial(program, b.constants)
    return lambda: function(x, result), result


if __name__ == "__main__":
    sys.exit(main())
