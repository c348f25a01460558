"""Measures the present rates of the machine: the two roofs of a roofline."""

from __future__ import annotations

import functools
import os
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import tvm

from tvm_mxplan.byoc.onednn import library
from tvm_mxplan.core.program import program as ir

SIDES = (512, 1024, 2048)
"""Of the square matrices of the product; the fastest counts."""
BYTES = 256 << 20
"""Of an array: many times the last-level cache."""
TURNS = 7


@dataclass(frozen=True)
class Roofs:
    """Operations and bytes per second; the best of several turns."""

    flops: float
    """Of oneDNN's product of large float32 matrices."""
    read: float
    """Bytes read once, as weights are."""
    triad: float
    """Bytes read and written by a = b + s * c."""

    def __str__(self) -> str:
        return (
            f"{self.flops / 1e9:.0f} GFLOP/s in a float32 matrix product, {self.read / 1e9:.1f} GB/s read, "
            f"{self.triad / 1e9:.1f} GB/s in a triad"
        )


def measure_roofs(threads: int | None = None) -> Roofs:
    """The roofs of ``threads`` threads (those of OMP_NUM_THREADS, else all CPUs allowed)."""
    threads = threads or int(os.environ.get("OMP_NUM_THREADS", len(os.sched_getaffinity(0))))
    flops = max(2 * side**3 / _best(_product(side)) for side in SIDES)
    a, b, c = (np.ones(BYTES // 4, np.float32) for _ in range(3))
    pieces = [slice(part[0], part[-1] + 1) for part in np.array_split(np.arange(a.size), threads)]
    with ThreadPoolExecutor(threads) as pool:

        def together(work: Callable[[slice], object]) -> Callable[[], object]:
            return lambda: list(pool.map(work, pieces))

        read = BYTES / _best(together(lambda piece: b[piece].max()))
        triad = 5 * BYTES / _best(together(lambda piece: _triad(a[piece], b[piece], c[piece])))
    return Roofs(flops, read, triad)


def _product(side: int) -> Callable[[], object]:
    shape = (side, side)
    values = (
        ir.Value("src", shape, "float32", "input", "ab", 0),
        ir.Value("weights", shape, "float32", "constant", "ab", 0),
        ir.Value("dst", shape, "float32", "output", "ab", 0),
    )
    operands = tuple(ir.Operand(value.name, number) for number, value in enumerate(values))
    program = ir.Program("product", values, (ir.Step("product", ir.MatMul(), operands),))
    src, weights, dst = (tvm.runtime.tensor(np.full(shape, 0.5, np.float32)) for _ in values)
    module = library.create_module("product", program, [weights])
    return functools.partial(module["product"], src, dst)


def _triad(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> None:
    """Two passes that move five arrays: numpy has no fused one."""
    np.multiply(c, np.float32(3), out=a)
    np.add(a, b, out=a)


def _best(call: Callable[[], object]) -> float:
    """The least seconds of several calls, after one that is not timed."""
    call()
    times = []
    for _ in range(TURNS):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return min(times)
