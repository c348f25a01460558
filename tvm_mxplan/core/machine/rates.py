"""``MachineRates``: what a machine computes and moves, which all estimates of time rest on.

    compute     operations a second by element type and instruction set, of all threads together
    kernels     the same of kernels whose speed does not follow from that, by names that their library gives
    levels      memory from the nearest cache outwards: bytes that all threads have of it, and its speed
    exchanged   what a thread reads that another one has just written
    start_us    to begin a kernel that is there already
    fork_us     to wake the other threads and wait for them
    region_us   to call a region, whose tensors are checked, beside what its kernels take

They are measured once on a machine, given by hand, or, where nothing can be measured, stated here.  As JSON:

    {"threads": 2, "source": "measured", "start_us": 0.5, "fork_us": 1.5, "exchanged": 20.0,
     "region_us": 1.5, "compute": [["float32", "avx512", 480.0], ["float32", "avx2", 240.0]],
     "kernels": [["jit:avx512_core in groups", 300.0]],
     "levels": [[2097152, 80.0, 80.0], [null, 40.0, 40.0]]}
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, TypeAlias

from .rounding import preferred

Source: TypeAlias = Literal["measured", "given", "default"]
SOURCES: tuple[Source, ...] = ("measured", "given", "default")

AVX2_FLOPS = 32
"""Of one core in a cycle, at the peak of AVX2: two multiply-adds of eight numbers."""
_NARROWER = 0.35
"""Of the slowest instruction set, what one with vectors of half its width reaches."""
_FASTEST = 1e10
"""GFLOP/s or GB/s: no machine that this is for has more, so a file that says so is damaged."""


class UnusableRates(ValueError):
    """Raised if the values read do not give a machine's rates; the message names the field."""


@dataclass(frozen=True)
class Compute:
    """Operations a second, in thousands of millions, of elements of a type with an instruction set."""

    dtype: str
    instruction_set: str
    gflops: float


@dataclass(frozen=True)
class KernelRate:
    """Operations a second, in thousands of millions, of one of a library's kernels."""

    kernel: str
    gflops: float


@dataclass(frozen=True)
class MemoryLevel:
    """A cache, or memory.

    Attributes
    ----------
    nbytes : what all threads have of it; None for memory, which holds everything.
    read : GB/s that are read.
    copied : GB/s that are read and written, each byte counted each time, where one kernel does both.
    """

    nbytes: int | None
    read: float
    copied: float


@dataclass(frozen=True)
class MachineRates:
    """See the module's text.

    Attributes
    ----------
    threads : that reach all this together.
    levels : the nearest first, memory last.
    exchanged : GB/s; cores whose caches are far from each other exchange slowly.
    kernels : those that were measured; estimates of others rest on ``compute`` alone.
    """

    threads: int
    compute: tuple[Compute, ...]
    levels: tuple[MemoryLevel, ...]
    start_us: float
    fork_us: float
    exchanged: float
    region_us: float
    source: Source = "given"
    kernels: tuple[KernelRate, ...] = ()

    def __post_init__(self) -> None:
        if self.threads < 1:
            raise UnusableRates(f"threads: expected at least 1, got {self.threads}")
        if not self.compute:
            raise UnusableRates("compute: expected at least one rate, got none")
        ends = [level.nbytes is None for level in self.levels]
        if ends != [False] * (len(ends) - 1) + [True]:
            raise UnusableRates("levels: expected caches with their bytes, then memory with null")
        sizes = [level.nbytes for level in self.levels if level.nbytes is not None]
        if sizes != sorted(set(sizes)) or (sizes and sizes[0] < 1):
            raise UnusableRates(f"levels: expected bytes that grow, got {sizes}")
        speeds = [self.exchanged, *(one.gflops for one in self.compute)]
        speeds += [one.gflops for one in self.kernels]
        speeds += [speed for level in self.levels for speed in (level.read, level.copied)]
        for speed in speeds:
            if not 0 < speed < _FASTEST:
                raise UnusableRates(
                    f"compute, kernels, levels, exchanged: expected rates above 0, got {speed}"
                )
        for name in ("start_us", "fork_us", "region_us"):
            if not 0 <= getattr(self, name) < _FASTEST:
                raise UnusableRates(f"{name}: expected microseconds, got {getattr(self, name)}")

    @property
    def memory(self) -> MemoryLevel:
        """The last level."""
        return self.levels[-1]

    @property
    def private_bytes(self) -> int:
        """Bytes of the caches in front of the last one, all threads' together; of the only one there is."""
        *sizes, last = [level.nbytes for level in self.levels if level.nbytes is not None] or [0]
        return sizes[-1] if sizes else last

    def cycles_per_us(self, threads: int) -> float:
        """Cycles of one core in a microsecond, at the clock at which AVX2 is measured on that many."""
        return self.gflops("float32", "avx2") / threads / AVX2_FLOPS * 1e3

    def gflops(self, dtype: str, instruction_set: str = "") -> float:
        """Of a type with an instruction set, or with the fastest one.

        A type that was not measured is taken for the others; an instruction set that was not is taken for a
        narrower one than all that were.
        """
        of_type = [one for one in self.compute if one.dtype == dtype] or list(self.compute)
        rates = {one.instruction_set: one.gflops for one in of_type}
        if not instruction_set:
            return max(rates.values())
        return rates.get(instruction_set, _NARROWER * min(rates.values()))

    def kernel_gflops(self, kernel: str) -> float | None:
        """Of a kernel that was measured, None of any other."""
        return next((one.gflops for one in self.kernels if one.kernel == kernel), None)

    def copying_us(self, nbytes: int) -> float:
        """Microseconds to read and write so many bytes together, out of the nearest level that holds them."""
        return nbytes / self.holding(nbytes).copied / 1e3

    def copying_alone_us(self, nbytes: int) -> float:
        """The same on one thread, which has its share of a cache's speed, and all of memory's."""
        level = self.holding(nbytes)
        shared = level.copied / self.threads if level.nbytes is not None else 0.0
        return nbytes / max(shared, self.memory.copied) / 1e3

    def moving_us(self, nbytes: int) -> float:
        """As ``copying_us`` in the middle of a network, whose other steps have the nearest of several caches.

        What is read was written before others ran, and where results go nothing stands yet.
        """
        nearest, *others = self.levels
        shared = nearest.nbytes is not None and len(others) > 1
        return nbytes / min(self.holding(nbytes).copied, others[0].copied if shared else _FASTEST) / 1e3

    def exchanging_us(self, nbytes: int) -> float:
        """Microseconds until every thread has its part of so many bytes, which any of them has written.

        A share of them, by the number of threads, was written by others.  Only what takes longer than bytes
        of one's own counts: those are read while others are computed with.  What the nearest caches no longer
        hold stands where all threads have it alike, and beyond the last cache it comes from memory anyway.
        """
        held = max((level.nbytes or 0 for level in self.levels), default=0)
        near, far = min(nbytes, self.levels[0].nbytes or 0), max(nbytes - held, 0)
        return (near * self._crossing_ns() + far / self.memory.copied) / 1e3

    def _crossing_ns(self) -> float:
        """Nanoseconds of a byte that threads exchange, beyond those of one that stays with its thread.

        ``exchanged`` is measured by a function that reads bytes of others and writes as many.
        """
        others = (self.threads - 1) / self.threads
        return max(others / self.exchanged - 2 / self.levels[0].copied, 0.0) if others else 0.0

    def holding(self, nbytes: int) -> MemoryLevel:
        """The nearest level that holds so many bytes."""
        return next(level for level in self.levels if level.nbytes is None or nbytes <= level.nbytes)

    def rounded(self) -> MachineRates:
        """In the steps of ``rounding``, so that the next measurement most likely says the same."""
        return replace(
            self,
            compute=tuple(replace(one, gflops=preferred(one.gflops)) for one in self.compute),
            levels=tuple(
                replace(one, read=preferred(one.read), copied=preferred(one.copied)) for one in self.levels
            ),
            start_us=preferred(self.start_us) if self.start_us else 0.0,
            fork_us=preferred(self.fork_us) if self.fork_us else 0.0,
            exchanged=preferred(self.exchanged),
            region_us=preferred(self.region_us) if self.region_us else 0.0,
            kernels=tuple(replace(one, gflops=preferred(one.gflops)) for one in self.kernels),
        )

    def better(self, other: MachineRates) -> MachineRates:
        """The better of each number of two measurements of one machine; these where they are of two."""
        ours = [(one.dtype, one.instruction_set) for one in self.compute]
        alike = {(one.dtype, one.instruction_set): one.gflops for one in other.compute}
        sizes = [level.nbytes for level in self.levels]
        if set(ours) != set(alike) or sizes != [level.nbytes for level in other.levels]:
            return self
        return replace(
            self,
            compute=tuple(
                replace(one, gflops=max(one.gflops, alike[one.dtype, one.instruction_set]))
                for one in self.compute
            ),
            levels=tuple(
                MemoryLevel(one.nbytes, max(one.read, two.read), max(one.copied, two.copied))
                for one, two in zip(self.levels, other.levels, strict=True)
            ),
            start_us=min(self.start_us, other.start_us),
            fork_us=min(self.fork_us, other.fork_us),
            exchanged=max(self.exchanged, other.exchanged),
            region_us=min(self.region_us, other.region_us),
            kernels=tuple(
                replace(one, gflops=max(one.gflops, other.kernel_gflops(one.kernel) or 0.0))
                for one in self.kernels
            ),
        )

    def to_json(self) -> dict[str, Any]:
        """As the module's text shows it."""
        return {
            "threads": self.threads,
            "source": self.source,
            "start_us": self.start_us,
            "fork_us": self.fork_us,
            "exchanged": self.exchanged,
            "region_us": self.region_us,
            "compute": [[one.dtype, one.instruction_set, one.gflops] for one in self.compute],
            "kernels": [[one.kernel, one.gflops] for one in self.kernels],
            "levels": [[one.nbytes, one.read, one.copied] for one in self.levels],
        }

    @classmethod
    def from_json(cls, data: object) -> MachineRates:
        """The inverse; UnusableRates says what is wrong with ``data``."""
        if not isinstance(data, Mapping):
            raise UnusableRates(f"expected an object, got a {type(data).__name__}")
        source = data.get("source", "given")
        if source not in SOURCES:
            raise UnusableRates(f"source: expected one of {', '.join(SOURCES)}, got {source!r}")
        compute = tuple(
            Compute(_text("compute", row[0]), _text("compute", row[1]), _number("compute", row[2]))
            for row in _rows(data, "compute", 3)
        )
        levels = tuple(
            MemoryLevel(
                None if row[0] is None else _whole("levels", row[0]),
                _number("levels", row[1]),
                _number("levels", row[2]),
            )
            for row in _rows(data, "levels", 3)
        )
        kernels = tuple(
            KernelRate(_text("kernels", row[0]), _number("kernels", row[1]))
            for row in _rows({"kernels": [], **data}, "kernels", 2)
        )
        return cls(
            _whole("threads", data.get("threads")),
            compute,
            levels,
            _number("start_us", data.get("start_us")),
            _number("fork_us", data.get("fork_us")),
            _number("exchanged", data.get("exchanged")),
            _number("region_us", data.get("region_us")),
            source,
            kernels,
        )

    @classmethod
    def read(cls, path: Path) -> MachineRates:
        """Those that a file gives by hand; UnusableRates says what is wrong with it."""
        try:
            data = json.loads(path.read_text())
        except OSError as error:
            raise UnusableRates(f"{path}: {error.strerror or error}") from None
        except (ValueError, RecursionError):
            raise UnusableRates(f"{path}: no JSON") from None
        try:
            return replace(cls.from_json(data), source="given")
        except UnusableRates as error:
            raise UnusableRates(f"{path}: {error}") from None

    def __str__(self) -> str:
        """One line for a report."""
        compute = ", ".join(
            [f"{one.gflops:g} GFLOP/s {one.dtype} {one.instruction_set}" for one in self.compute]
            + [f"{one.gflops:g} {one.kernel}" for one in self.kernels]
        )
        return (
            f"{self.source}: {compute}; {self.memory.read:g} GB/s read, {self.memory.copied:g} GB/s copied; "
            f"{self.exchanged:g} GB/s between threads; {self.start_us:g} us to start a kernel, "
            f"{self.fork_us:g} us to fork, {self.region_us:g} us to call a region; {self.threads} thread(s)"
        )


def _rows(data: Mapping[Any, Any], name: str, columns: int) -> list[list[Any]]:
    rows = data.get(name)
    if not isinstance(rows, list) or not all(isinstance(row, list) and len(row) == columns for row in rows):
        raise UnusableRates(f"{name}: expected rows of {columns}, got {rows!r}"[:200])
    return rows


def _text(name: str, value: object) -> str:
    if not isinstance(value, str):
        raise UnusableRates(f"{name}: expected a name, got {value!r}"[:200])
    return value


def _number(name: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise UnusableRates(f"{name}: expected a number, got {value!r}"[:200])
    return float(value)


def _whole(name: str, value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise UnusableRates(f"{name}: expected a whole number, got {value!r}"[:200])
    return value


def default_rates(threads: int = 2) -> MachineRates:
    """Plausible ones, for where nothing can be measured: of server processors of 2024, two threads together.

    The number of threads is noted; the rates do not go by it, since memory's do not either.
    """
    return MachineRates(
        threads,
        (
            Compute("float32", "avx512", 220.0),
            Compute("float32", "avx2", 200.0),
            Compute("float32", "sse41", 75.0),
        ),
        (
            MemoryLevel(2 << 20, 130.0, 180.0),
            MemoryLevel(32 << 20, 130.0, 160.0),
            MemoryLevel(None, 68.0, 68.0),
        ),
        start_us=0.24,
        fork_us=2.0,
        exchanged=16.0,
        region_us=1.5,
        source="default",
    )
