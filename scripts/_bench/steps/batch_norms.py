"""The command line of scripts/bench batch_norms: batch norms by our sums of a batch against oneDNN's own.

The step of a batch norm in training, which finds means and variances by `onednn/statistics` and normalises in
oneDNN, and the same step where the implementation `moments` is refused, so that oneDNN does both. Shapes are
those of ResNet-50. Results are held against each other first; times are processor time, in turns, and the
least of all rounds.
"""

from __future__ import annotations

import argparse
import functools
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from tvm_mxplan.byoc.onednn import library
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.testing.environment_info import environment, format_environment

SHAPES = ((64, 112), (64, 56), (256, 56), (128, 28), (512, 28), (256, 14), (1024, 14), (512, 7), (2048, 7))
"""Channels, and pixels of a side."""
LAYOUTS = {"abcd": "nchw", "acdb": "nhwc", "aBcd16b": "nChw16c"}
IMPLEMENTATION = "moments"
TOLERANCE = 1e-3  # oneDNN's own sums are the less exact ones


def main(arguments: Sequence[str] | None = None) -> int:
    """Print a table in Markdown; returns the exit status."""
    parser = argparse.ArgumentParser(prog="bench batch_norms", description=__doc__)
    parser.add_argument("--batch", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=15)
    options = parser.parse_args(arguments)
    print(format_environment(environment(Path(__file__).resolve().parents[3])), file=sys.stderr)
    columns = " | ".join(f"{name}: ours, us | oneDNN's | ratio" for name in LAYOUTS.values())
    print(f"| images | {columns} |\n| --- |{' ---: |' * 3 * len(LAYOUTS)}")
    for channels, side in SHAPES:
        shape = (options.batch, channels, side, side)
        times = [_least(shape, layout, options.rounds) for layout in LAYOUTS]
        cells = " | ".join(f"{ours:.0f} | {theirs:.0f} | {ours / theirs:.2f}" for ours, theirs in times)
        print(f"| {options.batch}x{channels}x{side}x{side} | {cells} |", flush=True)
    return 0


def _least(shape: tuple[int, ...], layout: str, rounds: int) -> tuple[float, float]:
    """Microseconds of the step, and of oneDNN's own."""
    program = _program(shape, layout)
    random = np.random.default_rng(1)
    size = shape[0] * shape[2] * shape[3]
    src = _aligned(shape[1] * size)
    src[:] = random.uniform(0.5, 1.5, src.size)
    ones, zeros = np.ones(shape[1], "float32"), np.zeros(shape[1], "float32")
    step = library.describe(program).steps[0]
    if IMPLEMENTATION not in step.implementation:
        raise SystemExit(f"bench: {layout} is not summed here but by {step.implementation}")
    calls: list[Callable[[], object]] = []
    results = []
    for refused in (False, True):
        if refused:
            library.refuse(step.descriptor, IMPLEMENTATION, "to compare")
            assert IMPLEMENTATION not in library.describe(program).steps[0].implementation
        function = library.trial(program, [])
        dst, mean, variance = _aligned(src.size), np.empty_like(ones), np.empty_like(ones)
        arrays = [array.reshape(_stored(shape, layout)) for array in (src, dst)]
        results.append(dst)
        calls.append(functools.partial(function, arrays[0], ones, zeros, arrays[1], mean, variance))
        calls[-1]()
    if not np.allclose(*results, rtol=0, atol=TOLERANCE):
        raise SystemExit(f"bench: {shape} in {layout}: results differ")
    times: list[list[float]] = [[], []]
    for turn in range(2 * rounds):
        begin = time.process_time()
        calls[turn % 2]()
        times[turn % 2].append(time.process_time() - begin)
    library.forget_refusals()
    ours, theirs = (1e6 * min(spent) for spent in times)
    return ours, theirs


def _program(shape: tuple[int, ...], layout: str) -> ir.Program:
    """One batch norm, whose image comes and goes in the layout."""
    channels = (shape[1],)
    values = (
        ir.Value("src", shape, "float32", "input", layout, index=0),
        ir.Value("scale", channels, "float32", "input", "a", index=1),
        ir.Value("shift", channels, "float32", "input", "a", index=2),
        ir.Value("dst", shape, "float32", "output", layout, index=0),
        ir.Value("batch_mean", channels, "float32", "output", "a", index=1),
        ir.Value("batch_variance", channels, "float32", "output", "a", index=2),
    )
    operands = tuple(ir.Operand(value.name, at) for at, value in enumerate(values))
    step = ir.Step("batch_norm", ir.BatchNormalizationTraining(1e-5), operands)
    return ir.Program("batch_norm", values, (step,), (), -1)


def _aligned(count: int) -> np.ndarray:
    """Numbers that begin where a line of the caches does, as a region's own do."""
    array = np.empty(count + 16, "float32")
    begin = -array.ctypes.data % 64 // 4
    return array[begin : begin + count]


def _stored(shape: tuple[int, ...], layout: str) -> tuple[int, ...]:
    """The physical shape; channels fill their blocks."""
    count, channels, *sides = shape
    if layout == "acdb":
        return (count, *sides, channels)
    return (count, channels // 16, *sides, 16) if layout == "aBcd16b" else shape
