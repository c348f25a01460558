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

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from ..byoc import registry
from .threads import thread_limit, threads, with_threads

_OWN = ("threads", "measured", "code")


@dataclass(frozen=True)
class Determinism:
    """The conditions that the bits of a compiled model's results rest on.

    Attributes
    ----------
    threads : of libraries, while it was compiled; every call is made with as many.
    code : what tells libraries' machine code apart, by what people call it.
    measured : whether choices came from timing, so that a second compile may make others.
    """

    threads: int
    code: Mapping[str, str]
    measured: bool

    @classmethod
    def here(cls, measured: bool) -> Determinism:
        """For what is compiled in this process now."""
        return cls(threads(), registry.code(), measured)

    @classmethod
    def from_json(cls, data: dict[str, Any] | None) -> Determinism | None:
        """The inverse of ``dataclasses.asdict``; earlier versions wrote facts of the code beside the rest."""
        if data is None:
            return None
        beside = {name: value for name, value in data.items() if name not in _OWN}
        return cls(data["threads"], {**beside, **data.get("code", {})}, data["measured"])

    def lost(self) -> list[str]:
        """Lists reasons why results may have other bits than where it was compiled; empty for none."""
        here = registry.code()
        reasons = [
            f"{what} is {here.get(what, 'not known')} here, and was {then} where it was compiled"
            for what, then in self.code.items()
            if then != here.get(what)
        ]
        limit = thread_limit()
        if limit is not None and limit < self.threads:
            reasons.append(f"it was compiled for {self.threads} threads, and OpenMP allows {limit} here")
        return reasons

    @contextmanager
    def held(self) -> Iterator[None]:
        """Libraries' calls that the calling thread makes inside use the threads of the compilation."""
        with with_threads(self.threads):
            yield

    def __str__(self) -> str:
        code = ", ".join(f"{what} {value}" for what, value in self.code.items())
        text = f"deterministic with {self.threads} thread(s), {code}"
        return text + ("; choices were measured: another compile may make others" if self.measured else "")
