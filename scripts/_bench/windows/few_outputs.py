"""The command line of scripts/bench few_outputs: convolutions with few output channels, ours beside oneDNN's.

    scripts/bench few_outputs --problems 64x128x128:3:3x3,64x32x32:3:4x4:2

A problem is channels x extents of one image, output channels, the window, and, for a transposed convolution,
its stride. Convolutions have as much padding as keeps the extents, transposed ones as much as multiplies them
by the stride, where there is such. Images are in blocks, channels last or plain, results so too or plain.
Everything that the library has for them runs in turns; results are held against each other first. Times are
microseconds by the clock, medians; OMP_NUM_THREADS says how many threads.

ours      the least of our kernel's
oneDNN    the least of the others', and which that is
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np

from tvm_mxplan.byoc.onednn import library
from tvm_mxplan.core.layout.layout import channels_blocked, channels_last, parse_layout, plain_layout
from tvm_mxplan.core.layout.layout_arrays import pack, unpack
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.core.program.builder import ProgramBuilder
from tvm_mxplan.testing.environment_info import environment, format_environment

from ..harness.one_step import held, medians_in_turns

PROBLEMS = (
    "64x128x128:3:3x3,64x128x128:1:3x3,64x128x128:8:3x3,12x128x128:4:3x3,3x128x128:3:3x3,32x224x224:3:9x9,"
    "64x256x256:3:7x7,512x31x31:1:4x4,32x8192:1:7,32x64x64x64:2:5x5x5,64x32x32:3:4x4:2,56x64x64:1:9x9:3,"
    "64x128x128:3:2x2:2,16x32x32x32:2:2x2x2:2,32x2048:1:16:8"
)
OURS = "few_outputs:"
_MOST = 1e-5


@dataclass(frozen=True)
class Problem:
    """One image and the filters; ``stride`` 0 is a convolution that is not transposed."""

    src: tuple[int, ...]
    outputs: int
    window: tuple[int, ...]
    stride: int

    @classmethod
    def read(cls, text: str) -> Problem:
        src, outputs, window, *stride = text.split(":")
        return cls((1, *_extents(src)), int(outputs), _extents(window), int(stride[0]) if stride else 0)

    @property
    def attrs(self) -> ir.Convolution | ir.Deconvolution:
        ones = (1,) * len(self.window)
        if self.stride == 0:
            before, behind = zip(*((k // 2, (k - 1) // 2) for k in self.window), strict=True)
            return ir.Convolution(ones, before + behind, ones, 1)
        around = tuple(max(0, (k - self.stride) // 2) for k in self.window)
        return ir.Deconvolution((self.stride,) * len(ones), around * 2, ones, 1)

    @property
    def dst(self) -> tuple[int, ...]:
        extents = self.src[2:]
        if self.stride:
            padding = self.attrs.padding
            extents = tuple(
                (n - 1) * self.stride + k - 2 * p
                for n, k, p in zip(extents, self.window, padding[: len(extents)], strict=True)
            )
        return (1, self.outputs, *extents)


def main(arguments: Sequence[str] | None = None) -> int:
    """Print a table in Markdown; returns the exit status."""
    parser = argparse.ArgumentParser(
        prog="bench few_outputs", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--problems", default=PROBLEMS)
    parser.add_argument("--rounds", type=int, default=9, help="(9)")
    options = parser.parse_args(arguments)
    print(format_environment(environment(Path(__file__).resolve().parents[3])), file=sys.stderr)
    print("| problem | ours | oneDNN | its implementation | ours / oneDNN |")
    print("| --- | ---: | ---: | --- | ---: |")
    for text in options.problems.split(","):
        calls = dict(_calls(Problem.read(text)))
        times = dict(zip(calls, medians_in_turns(list(calls.values()), options.rounds), strict=True))
        ours = min((us for name, us in times.items() if name.startswith(OURS)), default=None)
        theirs, name = min((us, name) for name, us in times.items() if not name.startswith(OURS))
        cells = ["-", "-"] if ours is None else [f"{ours:.0f}", f"{ours / theirs:.3f}"]
        print(f"| {text} | {cells[0]} | {theirs:.0f} | {name} | {cells[1]} |", flush=True)
    return 0


def _calls(problem: Problem) -> Iterator[tuple[str, Callable[[], object]]]:
    """Every implementation in each layout, by its name and the two layouts."""
    random = np.random.default_rng(0)
    x = random.standard_normal(problem.src, "float32")
    filters = random.standard_normal((problem.outputs, problem.src[1], *problem.window), "float32")
    rank = len(problem.src)
    plain, block = plain_layout(rank), 16 if "avx512" in library.isa() else 8
    first = None
    for source in (channels_blocked(rank, block), channels_last(rank), plain):
        for result in dict.fromkeys((source, plain)):
            for name, run in _implementations(problem, filters, source, result):
                given = pack(x, parse_layout(source))
                written = np.empty_like(pack(np.empty(problem.dst, "float32"), parse_layout(result)))
                run(given, written)
                found = unpack(written, parse_layout(result), problem.dst)
                first = found if first is None else first
                held(name, found, first, _MOST)
                yield f"{name}, {source} to {result}", partial(run, given, written)


def _implementations(
    problem: Problem, filters: np.ndarray, source: str, result: str
) -> Iterator[tuple[str, Callable[..., object]]]:
    b = ProgramBuilder("few_outputs")
    operands = [("src", b.port("input", "x", problem.src, "float32")), ("weights", b.constant(filters))]
    port = b.port("output", "y", problem.dst, "float32")
    b.write_output(b.step("few_outputs", problem.attrs, problem.dst, operands), port)
    program = b.finish()
    layouts = {"constant": plain_layout(len(filters.shape)), "input": source}
    values = tuple(replace(v, layout=layouts.get(v.kind, result)) for v in program.values)
    program = replace(program, values=values)
    try:
        while (told := library.describe(program).steps[0]).implementation.startswith(OURS):
            yield told.implementation, library.trial(program, b.constants)
            library.refuse(told.descriptor, told.implementation, "for this benchmark")
        if not told.error and not told.is_reference:
            yield told.implementation, library.trial(program, b.constants)
            for name in told.alternatives:
                if not name.startswith(OURS):
                    yield name, library.trial(_preferring(program, name), b.constants)
    finally:
        library.forget_refusals()


def _preferring(program: ir.Program, name: str) -> ir.Program:
    (step,) = program.steps
    assert isinstance(step.attrs, ir.Convolution)
    return replace(program, steps=(replace(step, attrs=replace(step.attrs, preferred=name)),))


def _extents(text: str) -> tuple[int, ...]:
    return tuple(int(number) for number in text.split("x"))


if __name__ == "__main__":
    sys.exit(main())
