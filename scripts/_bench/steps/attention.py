"""The command line of scripts/bench attention: the step of attention against its parts as steps of oneDNN.

Both read heads behind rows, as products leave them, and write them so. The parts are what a region has
without the step: copies with heads in front of rows, two products, the first with the scale as a post-op, and
the mask where fusion makes it one, a softmax, and a copy back. Results are held against each other first;
times are processor time, in turns.
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
from tvm_mxplan.byoc.onednn.rewrites.fusion import takes_binary
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.core.program.builder import ProgramBuilder
from tvm_mxplan.testing.environment_info import environment, format_environment

TOLERANCE = 1e-5


@dataclass(frozen=True)
class Problem:
    """Sizes, and the mask's shape with the letters n, h, s, t for whole axes; '' for none."""

    name: str
    samples: int
    heads: int
    rows: int
    keys: int
    depth: int
    mask: str = ""

    @property
    def mask_shape(self) -> tuple[int, ...]:
        sizes = zip("nhst", (self.samples, self.heads, self.rows, self.keys), strict=True)
        return tuple(size if letter in self.mask else 1 for letter, size in sizes)


PROBLEMS = (
    Problem("BERT-base", 1, 12, 128, 128, 64, "st"),
    Problem("BERT-base, keys masked", 1, 12, 128, 128, 64, "t"),
    Problem("ViT-small", 1, 6, 197, 197, 64),
    Problem("GPT-2", 1, 12, 64, 64, 64, "st"),
    Problem("GPT-2, 512 tokens", 1, 12, 512, 512, 64, "st"),
    Problem("decoding", 1, 12, 1, 512, 64, "t"),
    Problem("Swin's windows", 64, 3, 49, 49, 32, "hst"),
    Problem("long", 1, 4, 2048, 2048, 64),
    Problem("short", 1, 12, 7, 7, 64),
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Print a table in Markdown; returns the exit status."""
    options = _parse(arguments)
    print(format_environment(environment(Path(__file__).resolve().parents[3])), file=sys.stderr)
    print("| problem | step us | parts us | ratio |")
    print("| --- | ---: | ---: | ---: |")
    for problem in PROBLEMS:
        if problem.name not in options.problems.split(";"):
            continue
        whole, parts = _medians(problem, options.rounds)
        print(f"| {problem.name} | {whole:.0f} | {parts:.0f} | {whole / parts:.2f} |", flush=True)
    return 0


def _medians(problem: Problem, rounds: int) -> tuple[float, float]:
    """Median microseconds of the step, and of its parts."""
    random = np.random.default_rng(1)
    shapes = [
        (problem.samples, count, problem.heads, problem.depth) for count in (problem.rows, problem.keys)
    ]
    arrays = [random.standard_normal(shape, "float32") for shape in (shapes[0], shapes[1], shapes[1])]
    if problem.mask:
        arrays.append(random.standard_normal(problem.mask_shape, "float32"))
    results = [np.empty(shapes[0], "float32") for _ in range(2)]
    calls = [
        _call(_program(problem, write), [*arrays, result])
        for write, result in zip((_step, _parts), results, strict=True)
    ]
    for call in calls:
        call()
    off = float(np.abs(results[0] - results[1]).max())
    if not off <= TOLERANCE:
        raise SystemExit(f"{problem.name}: the step and its parts differ by {off:.1e}")
    times: list[list[float]] = [[], []]
    for turn in range(2 * rounds):
        call, spent = calls[turn % 2], times[turn % 2]
        call()
        start = time.process_time()
        for _ in range(10):
            call()
        spent.append((time.process_time() - start) / 10 * 1e6)
    return statistics.median(times[0]), statistics.median(times[1])


def _call(program: ir.Program, arrays: Sequence[np.ndarray]) -> Callable[[], object]:
    function = library.trial(program, [])
    return lambda: function(*arrays)


Write = Callable[[Problem, ProgramBuilder, dict[str, int]], int]


def _program(problem: Problem, write: Write) -> ir.Program:
    """A program with heads behind rows; ``write`` adds the steps, and gives the result likewise."""
    builder = ProgramBuilder("attention")
    rows, keys = (
        (problem.samples, count, problem.heads, problem.depth) for count in (problem.rows, problem.keys)
    )
    given = {
        role: builder.port("input", role, shape, "float32")
        for role, shape in (("src", rows), ("key", keys), ("value", keys))
    }
    if problem.mask:
        given["mask"] = builder.port("input", "mask", problem.mask_shape, "float32")
    output = builder.port("output", "result", rows, "float32")
    builder.write_output(write(problem, builder, given), output)
    return builder.finish()


def _step(problem: Problem, builder: ProgramBuilder, given: dict[str, int]) -> int:
    operands = [
        (role, value if role == "mask" else builder.permute(value, (0, 2, 1, 3)))
        for role, value in given.items()
    ]
    shape = builder.values[given["src"]].shape
    return builder.step("attention", ir.Attention(problem.depth**-0.5), shape, operands)


def _parts(problem: Problem, builder: ProgramBuilder, given: dict[str, int]) -> int:
    heads = {
        role: builder.plain_copy(builder.permute(given[role], axes))
        for role, axes in (("src", (0, 2, 1, 3)), ("key", (0, 2, 3, 1)), ("value", (0, 2, 1, 3)))
    }
    post_ops: list[ir.PostOp] = [ir.EltwisePostOp("linear", problem.depth**-0.5, 0.0)]
    before = (problem.samples, problem.heads, problem.rows)
    fused = takes_binary(ir.MatMul(), problem.mask_shape, (*before, problem.keys))
    if problem.mask and fused:
        post_ops.append(ir.BinaryPostOp("add", given["mask"]))
    scores = builder.step(
        "matmul",
        ir.MatMul(),
        (*before, problem.keys),
        [("src", heads["src"]), ("weights", heads["key"])],
        post_ops=tuple(post_ops),
    )
    if problem.mask and not fused:
        operands = [("src", scores), ("src1", given["mask"])]
        scores = builder.step("binary", ir.Binary("add"), (*before, problem.keys), operands)
    weights = builder.step("softmax", ir.Softmax("softmax", 3), (*before, problem.keys), [("src", scores)])
    operands = [("src", weights), ("weights", heads["value"])]
    result = builder.step("matmul", ir.MatMul(), (*before, problem.depth), operands)
    return builder.plain_copy(builder.permute(result, (0, 2, 1, 3)))


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="bench attention", description=__doc__)
    names = ";".join(problem.name for problem in PROBLEMS)
    parser.add_argument("--problems", default=names, help="names, separated by semicolons (all)")
    parser.add_argument("--rounds", type=int, default=15, help="turns of each (15)")
    return parser.parse_args(arguments)
