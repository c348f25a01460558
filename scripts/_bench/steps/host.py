"""The command line of scripts/bench host: kernels of the host library against TVM's, operator by operator.

Every operator is compiled twice, for "host, llvm" and for "llvm" alone, and both take turns on the same
tensors, with one thread and with two; a turn is as many calls as take about a millisecond. The result is
checked first.

TVM us        median of TVM's kernel, which runs on one thread
1, 2          median over the rounds of TVM's time over the host library's; above 1 is faster.  On one thread
              it is the processor's time, which other work does not count in; on two it is the clock's.

A call of TVM's kernel begins with the kernel, one of the library's with a region, which takes about 1.3 us
more: where small tensors lose here, they are left to TVM unless they stand in a region anyway
(docs/libraries/host.md).

The last line counts the cases in which the host library was slower by more than 5 %.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import tvm
from tvm import relax

import tvm_mxplan
from tvm_mxplan.byoc import registry
from tvm_mxplan.execution import machine
from tvm_mxplan.testing.environment_info import environment, format_environment

LIBRARY = "host"
TURN_S = 1e-3
SLOWER = 0.95
HEADER = "| operator | operands | TVM us | 1 | 2 |"
RULE = "| --- | --- | ---: | ---: | ---: |"
IMAGES = [(1, 64, 14, 14), (1, 64, 56, 56), (8, 64, 56, 56)]
ROWS = [(128, 768), (12, 128, 128), (8, 512, 768)]

RESIZES = [
    ("nearest_neighbor", "asymmetric"),
    ("linear", "align_corners"),
    ("linear", "half_pixel"),
    ("cubic", "half_pixel"),
]

Build = Callable[..., relax.Expr]


@dataclass(frozen=True)
class Case:
    """An operator on operands of given shapes and types."""

    name: str
    operands: tuple[tuple[tuple[int, ...], str], ...]
    build: Build
    grid: float | None = None
    """The distance, of an image's size, from places that are evenly spread to those of the last operand."""

    def __str__(self) -> str:
        return ", ".join(f"{'x'.join(map(str, shape))} {dtype}" for shape, dtype in self.operands)

    def module(self) -> tvm.IRModule:
        builder = relax.BlockBuilder()
        types = [relax.TensorType(shape, dtype) for shape, dtype in self.operands]
        given = [relax.Var(f"x{at}", type_) for at, type_ in enumerate(types)]
        with builder.function("main", given):
            with builder.dataflow():
                result = builder.emit_output(self.build(*given))
            builder.emit_func_output(result)
        return builder.get()

    def arrays(self) -> list[np.ndarray]:
        rng = np.random.default_rng(0)
        found = []
        for shape, dtype in self.operands:
            numbers = rng.standard_normal(shape, np.float32) * 3
            if dtype in ("int32", "int64"):
                found.append(rng.integers(0, 14, shape).astype(dtype))
            else:
                found.append(numbers > 0 if dtype == "bool" else numbers.astype(dtype))
        if self.grid is not None:
            ends = (np.linspace(-0.9, 0.9, count, dtype="float32") for count in found[-1].shape[:1:-1])
            found[-1] = np.stack(np.meshgrid(*ends)) + self.grid * np.tanh(found[-1])
        return found

    def check(self, found: np.ndarray, expected: np.ndarray) -> None:
        """Hold our result against TVM's, whose places are float32: a few may round to another pixel."""
        if self.grid is None:
            np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)
        else:
            assert np.isclose(found, expected, 1e-2, 1e-2).mean() > 0.999, self.name


def cases() -> Iterator[Case]:
    """All that are timed."""
    op = relax.op
    for shape in (*IMAGES, *ROWS):
        f32, flags, whole = (shape, "float32"), (shape, "bool"), (shape, "int64")
        row = ((*(1,) * (len(shape) - 1), shape[-1]), "float32")
        yield Case("where", (flags, f32, f32), op.where)
        yield Case("where, a number", (flags, f32), lambda c, x: op.where(c, relax.const(-1e9, "float32"), x))
        yield Case("less", (f32, f32), op.less)
        yield Case("greater, a row", (f32, row), op.greater)
        yield Case("equal", (whole, whole), op.equal)
        yield Case("cast to int32", (f32,), lambda x: op.astype(x, "int32"))
        yield Case("cast to float32", (whole,), lambda x: op.astype(x, "float32"))
        yield Case("cast from bool", (flags,), lambda x: op.astype(x, "float32"))
        yield Case("add of integers", (whole, whole), op.add)
        yield Case("erf", (f32,), op.erf)
        yield Case("log", (f32,), op.log)
        yield Case("exp", (f32,), op.exp)
        yield Case("cos", (f32,), op.cos)
        yield Case("floor", (f32,), op.floor)
        yield Case("multiply, a row", (f32, row), op.multiply)
        last = len(shape) - 1
        yield Case("every other", (f32,), _slice(last, 0, shape[last], 2))
        yield Case("backwards", (f32,), _slice(last, shape[last] - 1, -shape[last] - 1, -1))
        yield Case("every other row", (f32,), _slice(last - 1, 1, shape[last - 1], 2))
        yield Case("gather rows", (f32, ((7,), "int64")), lambda x, i, a=last - 1: op.take(x, i, a))
        yield Case("mean over rows", (f32,), lambda x, a=last - 1: op.mean(x, [a]))
        yield Case("largest of a row", (f32,), lambda x, a=last: op.max(x, [a]))
        yield Case("sums up to each place", (f32,), lambda x, a=last: op.cumsum(x, a))
        yield Case("sums down", (whole,), lambda x, a=last - 1: op.cumsum(x, a))
        yield Case("broadcast of a row", (row,), lambda x, s=shape: op.broadcast_to(x, s))
        yield Case("a row three times", (row,), lambda x: op.tile(x, [3]))
        yield Case("gather elements", (f32, ((14,), "int64")), lambda x, i, a=last: op.take(x, i, a))
    table = ((30522, 768), "float32")
    yield Case("embedding", (table, ((1, 128), "int64")), lambda x, i: op.take(x, i, 0))
    for shape in IMAGES:
        yield Case("mirrored edges", ((shape, "float32"),), _mirrored(shape))
        for method, mode in RESIZES:
            yield Case(f"resize, {method} {mode}", ((shape, "float32"),), _resize(shape, method, mode))

    for shape, points, away in (
        ((1, 3, 224, 224), (224, 224), 0.01),
        ((1, 64, 56, 56), (56, 56), 0.05),
        ((8, 32, 20, 20), (300, 4), 1.0),
    ):
        grid = ((shape[0], 2, *points), "float32")
        for method in ("nearest", "bilinear", "bicubic"):
            yield Case(f"grid_sample, {method}", ((shape, "float32"), grid), _sampled(method), away)
    for entries in (1, 64):
        data, places = ((4, 14, 300, entries), "float32"), ((4, 700, 2), "int64")
        yield Case("gather entries of each row", (data, places), lambda x, i: op.gather_nd(x, i, 1))


def _sampled(method: str) -> Build:
    return lambda x, grid: relax.op.image.grid_sample(x, grid, method=method)


def _mirrored(shape: Sequence[int]) -> Build:
    """Padding by three pixels around images."""
    places = [relax.const(np.pad(np.arange(extent), 3, mode="reflect")) for extent in shape[2:]]
    return lambda x: relax.op.take(relax.op.take(x, places[0], 2), places[1], 3)


def _slice(axis: int, begin: int, end: int, step: int) -> Build:
    return lambda x: relax.op.strided_slice(x, [axis], [begin], [end], [step])


def _resize(shape: Sequence[int], method: str, mode: str) -> Build:
    size = (2 * shape[2], 2 * shape[3])
    return lambda x: relax.op.image.resize2d(
        x, size, method=method, coordinate_transformation_mode=mode, rounding_method="floor"
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Print a table in Markdown; returns the exit status."""
    options = _parse(arguments)
    print(format_environment(environment(Path(__file__).resolve().parents[3])), file=sys.stderr)
    print(f"{HEADER}\n{RULE}")
    slower, total = [], 0
    for case in cases():
        if options.only not in case.name:
            continue
        theirs_us, ratios = timed(case, options.rounds)
        print(f"| {case.name} | {case} | {theirs_us:,.1f} | {ratios[0]:.2f} | {ratios[1]:.2f} |", flush=True)
        total += len(ratios)
        slower += [f"{case.name} of {case} ({ratio:.2f})" for ratio in ratios if ratio < SLOWER]
    print(f"\n{len(slower)} of {total} slower{': ' if slower else ''}{'; '.join(slower)}")
    return 0


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="bench host", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", default="", help="a part of the operators' names")
    parser.add_argument("--rounds", type=int, default=15, help="turns of each (15)")
    return parser.parse_args(arguments)


def timed(case: Case, rounds: int) -> tuple[float, tuple[float, ...]]:
    """Microseconds of TVM's kernel, and how many times faster ours is with one thread and with two."""
    options = {"cache": "disabled"}
    ours = tvm_mxplan.compile(case.module(), f"{LIBRARY}, llvm", options=options)
    theirs = tvm_mxplan.compile(case.module(), "llvm", options=options)
    assert [region.backend for region in ours.report.regions] == [f"mxplan_{LIBRARY}"], case.name
    arrays = case.arrays()
    case.check(ours(*arrays)[0].numpy(), theirs(*arrays)[0].numpy())
    tensors = [machine.tensor_of(array) for array in arrays]
    engine = registry.engine(LIBRARY)
    before, ratios, spent = engine.threads(), [], []
    try:
        for threads in (1, 2):
            engine.set_threads(threads)
            clock = time.process_time if threads == 1 else time.perf_counter
            calls = calls_of_a_turn(theirs, tensors)
            pairs = [
                (seconds_of(ours, tensors, calls, clock), seconds_of(theirs, tensors, calls, clock))
                for _ in range(rounds)
            ]
            ratios.append(statistics.median(their / our for our, their in pairs))
            spent += [their / calls for _, their in pairs]
    finally:
        engine.set_threads(before)
    return 1e6 * statistics.median(spent), tuple(ratios)


def calls_of_a_turn(executable: Any, tensors: Sequence[Any]) -> int:
    """Returns the number of calls that take about as long as a turn."""
    executable(*tensors)
    return max(1, round(TURN_S / seconds_of(executable, tensors, 3, time.perf_counter) * 3))


def seconds_of(executable: Any, tensors: Sequence[Any], calls: int, clock: Callable[[], float]) -> float:
    begin = clock()
    for _ in range(calls):
        executable(*tensors)
    return clock() - begin
