"""Measures the rates of this machine with oneDNN's own kernels in about two seconds.

    compute   a convolution of 1x1 whose data fit caches, by instruction set; in integers of 8 bits too
              where the processor multiplies tiles
    kernels   a convolution of 3x3 in groups, by implementation
    copied    an elementwise function on as much as half of a level holds, on several times the last cache
    read      a matrix of so many bytes multiplied with one row
    exchanged a function of what one thread has written, on all of them
    start     functions of a few elements behind each other on one thread
    fork      what one of them takes longer on all threads
    region    what a region of one of them takes longer on one thread

The best of many short runs counts, since whatever disturbs a run takes time.  Where other processes took the
processor away too often, that is said, and who keeps the rates may measure again.
"""

from __future__ import annotations

import resource
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TypeVar

import numpy as np

from tvm_mxplan.core.element_types import numpy_type
from tvm_mxplan.core.layout.layout import parse_layout
from tvm_mxplan.core.machine import Compute, KernelRate, MachineRates, MemoryLevel
from tvm_mxplan.core.machine.caches import cache_sizes
from tvm_mxplan.core.processor import StolenTime
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.core.program.dims import static_shape
from tvm_mxplan.errors import UnsupportedError

from .. import library
from .groups import MEASURED_CHANNELS, MEASURED_WINDOW, rate_in_groups
from .names import implementation_named
from .tiles import TILES

_Result = TypeVar("_Result")
_CHANNELS, _EXTENT = 256, 14
_GROUPS = 16
_SECONDS = 0.06
"""For each number that is measured, beyond its first runs."""
_FIRST = 3
_FAR = 4
"""Times the last cache is what comes from memory, within limits."""
_FAR_BYTES = (64 << 20, 256 << 20)
_CHAIN, _FEW, _ROWS = 64, 16, 1024
_SMALLEST = 256 << 10
"""Of what is moved in a run: with less, starting it counts more."""
_SHARES = 4
"""Of a thread's part of a cache, one is exchanged: it is written from as much, and read into as much."""
_SWITCHES = 20
"""In a second: times that the processor was taken away, from where on the machine counts as busy."""


def measure_machine() -> tuple[MachineRates, bool]:
    """The rates of the calling thread's number of threads, not rounded, and whether others disturbed that."""
    begin, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_SELF).ru_nivcsw
    stolen = StolenTime()
    threads = library.threads()
    start_us = _on_threads(1, threads, lambda: _chain_us(_CHAIN) / _CHAIN)
    call_us = _chain_us(1)
    alone_us = _on_threads(1, threads, lambda: _chain_us(1))
    fork_us = call_us - alone_us
    sizes = [nbytes for nbytes in cache_sizes(threads) if nbytes // 2 >= _SMALLEST]
    levels = [MemoryLevel(nbytes, _read(nbytes // 2), _copied(nbytes // 2, call_us)) for nbytes in sizes]
    far = min(max(_FAR * max(sizes, default=0), _FAR_BYTES[0]), _FAR_BYTES[1])
    levels.append(MemoryLevel(None, _read(far), _copied(far, call_us)))
    # What one thread reads and writes at first stays in its share of the nearest cache.
    near = (levels[0].nbytes or 0) // threads // _SHARES
    exchanged = _exchanged(max(near, _SMALLEST), threads, call_us) or levels[0].copied
    rates = MachineRates(
        threads,
        (*_compute(), *_tiles()),
        tuple(_slower_outwards(levels)),
        start_us,
        max(fork_us, 0.0),
        min(exchanged, levels[0].copied),
        max(alone_us - start_us, 0.0),
        "measured",
        tuple(_in_groups()),
    )
    switches = resource.getrusage(resource.RUSAGE_SELF).ru_nivcsw - before
    return rates, switches > _SWITCHES * (time.perf_counter() - begin) or stolen.disturbs()


def _slower_outwards(levels: list[MemoryLevel]) -> Iterator[MemoryLevel]:
    """Levels of which none is faster than the one before it, whatever disturbed their measurement."""
    for at, level in enumerate(levels):
        beyond = levels[at:]
        yield replace(level, read=max(x.read for x in beyond), copied=max(x.copied for x in beyond))


def _compute() -> Iterator[Compute]:
    """Rates by instruction set; UnsupportedError where nothing runs."""
    first = _convolution("")
    info = library.describe(first).steps[0]
    if info.error or info.is_reference:
        raise UnsupportedError("library onednn: no kernel to measure this machine with")
    by_set = {info.instruction_set: first}
    for name in info.alternatives:
        by_set.setdefault(implementation_named(name).instruction_set, _convolution(name))
    operations = 2.0 * _CHANNELS**2 * _EXTENT**2
    for instruction_set, program in by_set.items():
        if instruction_set:
            yield Compute("float32", instruction_set, operations / _best_us(program) / 1e3)


def _tiles() -> Iterator[Compute]:
    """The rate of integers of 8 bits where tiles multiply them."""
    program = _convolution("", integers=True)
    info = library.describe(program).steps[0]
    if not info.error and TILES in info.implementation:
        yield Compute("uint8", TILES, 2.0 * _CHANNELS**2 * _EXTENT**2 / _best_us(program) / 1e3)


def _in_groups() -> Iterator[KernelRate]:
    """Rates of kernels for convolutions in narrow groups."""
    channels, window = MEASURED_CHANNELS, MEASURED_WINDOW
    weights = (_GROUPS, channels, channels, window, window)
    info = library.describe(_convolution("", weights)).steps[0]
    if info.error:
        return
    operations = 2.0 * _GROUPS * channels**2 * window**2 * _EXTENT**2
    for name in (info.implementation, *info.alternatives):
        rate = rate_in_groups(implementation_named(name))
        if rate:
            yield KernelRate(rate, operations / _best_us(_convolution(name, weights)) / 1e3)


def _convolution(
    preferred: str,
    weights: tuple[int, ...] = (_CHANNELS, _CHANNELS, 1, 1),
    integers: bool = False,
) -> ir.Program:
    """``integers``: images and weights of 8 bits, with scales."""
    groups = weights[0] if len(weights) > 4 else 1
    image = (1, _CHANNELS, _EXTENT, _EXTENT)
    dtype, of_weights = ("uint8", "int8") if integers else ("float32", "float32")
    scales = ("src_scale", "weights_scale", "dst_scale") if integers else ()
    values = (
        ir.Value("src", image, dtype, "input", "acdb", 0),
        ir.Value("weights", weights, of_weights, "constant", "abcde"[: len(weights)], 0),
        *(ir.Value(name, (1,), "float32", "constant", "a", 1 + at) for at, name in enumerate(scales)),
        ir.Value("dst", image, dtype, "output", "acdb", 0),
    )
    attrs = ir.Convolution((1, 1), (weights[-1] // 2,) * 4, (1, 1), groups, preferred=preferred)
    return _single(values, attrs)


def _copied(nbytes: int, start_us: float) -> float:
    """GB/s of a function whose operand and result are so many bytes together."""
    shape = (nbytes // 8,)
    values = (
        ir.Value("src", shape, "float32", "input", "a", 0),
        ir.Value("dst", shape, "float32", "output", "a", 0),
    )
    spent = _without_start(_best_us(_single(values, ir.Eltwise("linear", 1.5, 0.5))), start_us)
    return nbytes / spent / 1e3


def _without_start(taken_us: float, start_us: float) -> float:
    """Microseconds of work; the start, measured elsewhere and maybe disturbed, counts as half at most."""
    return max(taken_us - start_us, taken_us / 2)


def _exchanged(nbytes: int, threads: int, start_us: float) -> float | None:
    """GB/s at which threads take over what one has written; None where there is one thread only."""
    if threads == 1:
        return None
    numbers = nbytes // 4
    values = (
        ir.Value("src", (numbers,), "float32", "input", "a", 0),
        ir.Value("dst", (numbers,), "float32", "output", "a", 0),
    )
    program = _single(values, ir.Eltwise("linear", 1.5, 0.5))
    first, second, third = (np.full(numbers, 0.5, np.float32) for _ in range(3))
    bind = _function(program, [])
    write, read = bind(first, second), bind(second, third)
    spent = _without_start(_best_us_of(read, lambda: _on_threads(1, threads, write)), start_us)
    return (threads - 1) / threads * 4 * numbers / spent / 1e3


def _read(nbytes: int) -> float:
    """GB/s of a matrix that is read once."""
    rows = min(_ROWS, nbytes // 4 // _FEW)
    terms = nbytes // 4 // rows
    values = (
        ir.Value("src", (1, terms), "float32", "input", "ab", 0),
        ir.Value("weights", (rows, terms), "float32", "constant", "ab", 0),
        ir.Value("dst", (1, rows), "float32", "output", "ab", 0),
    )
    return nbytes / _best_us(_single(values, ir.InnerProduct())) / 1e3


def _chain_us(steps: int) -> float:
    """Microseconds of a region of so many small steps."""
    shape = (_FEW, _FEW)
    values = [ir.Value("src", shape, "float32", "input", "ab", 0)]
    made = []
    for at in range(steps):
        values.append(ir.Value(f"dst{at}", shape, "float32", "output", "ab", at))
        operands = (ir.Operand("src", 0), ir.Operand("dst", at + 1))
        made.append(ir.Step(f"step{at}", ir.Eltwise("linear", 1.5, 0.5), operands))
    return _best_us(ir.Program("chain", tuple(values), tuple(made)))


def _on_threads(threads: int, restored: int, measure: Callable[[], _Result]) -> _Result:
    library.set_threads(threads)
    try:
        return measure()
    finally:
        library.set_threads(restored)


def _single(values: tuple[ir.Value, ...], attrs: ir.Attributes) -> ir.Program:
    operands = tuple(ir.Operand(value.name, number) for number, value in enumerate(values))
    return ir.Program("step", values, (ir.Step("step", attrs, operands),))


def _best_us(program: ir.Program) -> float:
    """Microseconds of the fastest of as many runs as there is time for."""
    arrays = []
    for number in (*program.of_kind("input"), *program.of_kind("output")):
        value = program.values[number]
        arrays.append(_filled(parse_layout(value.layout).physical_shape(value.shape), value.dtype))
    constants = [
        _filled(static_shape(program.values[number].shape), program.values[number].dtype)
        for number in program.of_kind("constant")
    ]
    return _best_us_of(_function(program, constants)(*arrays), lambda: None)


def _filled(shape: tuple[int, ...], dtype: str) -> np.ndarray:
    return np.full(shape, 0.5, np.float32).astype(numpy_type(dtype))


def _best_us_of(run: Callable[[], object], before: Callable[[], object]) -> float:
    """The same of any function, which ``before`` precedes each time, untimed."""
    for _ in range(2):
        before()
        run()
    least, taken, end = float("inf"), 0, time.perf_counter() + _SECONDS
    while taken < _FIRST or time.perf_counter() < end:
        before()
        start = time.perf_counter()
        run()
        least, taken = min(least, time.perf_counter() - start), taken + 1
    return 1e6 * least


def _function(program: ir.Program, constants: list[np.ndarray]) -> Callable[..., Callable[[], object]]:
    """Binds a program to arrays, inputs, then outputs, and gives a function that runs it."""
    import tvm_ffi

    function = library.create_module(program.name, program, constants)[program.name]

    def bind(*arrays: np.ndarray) -> Callable[[], object]:
        tensors = [tvm_ffi.from_dlpack(array) for array in arrays]
        return lambda: function(*tensors)

    return bind
