"""``deterministic``: the same bits from every call, process and machine of a kind, or why not.

What decides the bits of a result, and what holds it fast:

choices       layouts and primitives are in the compiled library, so all who load it make the same ones; a
              second compile makes them again where costs come from the model, which reads no clock
threads       some primitives split their sums by the number of threads (of oneDNN 3.2's: inner products, and
              convolutions by matrix products, ``gemm``); the number at compile time is set for each call
library, ISA  another version or instruction set is other code; that cannot be held, so it is said
order         for one number of threads, oneDNN's primitives on a CPU and TVM's kernels add up in one order
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from .byoc.onednn import library


@dataclass(frozen=True)
class Determinism:
    """What the bits of a compiled model's results rest on.

    Attributes
    ----------
    threads : of oneDNN, while it was compiled; every call is made with as many.
    measured : whether choices came from timing, so that a second compile may make others.
    """

    threads: int
    isa: str
    onednn: str
    measured: bool

    @classmethod
    def here(cls, measured: bool) -> Determinism:
        """For what is compiled in this process now."""
        return cls(library.threads(), library.isa(), library.version(), measured)

    @classmethod
    def from_json(cls, data: dict[str, Any] | None) -> Determinism | None:
        return None if data is None else cls(**data)

    def lost(self) -> list[str]:
        """Why results may have other bits here than where it was compiled; empty if they have not."""
        reasons = []
        for what, then, now in (
            ("oneDNN", self.onednn, library.version()),
            ("the instruction set", self.isa, library.isa()),
        ):
            if then != now:
                reasons.append(f"{what} is {now} here, and was {then} where it was compiled")
        limit = library.thread_limit()
        if limit < self.threads:
            reasons.append(f"it was compiled for {self.threads} threads, and OpenMP allows {limit} here")
        return reasons

    @contextmanager
    def held(self) -> Iterator[None]:
        """The calling thread's oneDNN calls made inside use the number of threads of the compilation."""
        before = library.threads()
        if before == self.threads:
            yield
            return
        library.set_threads(self.threads)
        try:
            yield
        finally:
            library.set_threads(before)

    def __str__(self) -> str:
        text = f"deterministic with {self.threads} thread(s), {self.isa}, oneDNN {self.onednn}"
        return text + ("; choices were measured: another compile may make others" if self.measured else "")
