"""Edits that change nothing that a test could see, each with its reason: ``equivalent.txt``.

A line of it: ``file | function | before -> after | reason``. Lines that begin with # are remarks.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from .mutants import Mutant

LIST = Path(__file__).resolve().parent / "equivalent.txt"


@dataclass(frozen=True)
class Equivalent:
    """One edit, by name, and why it changes nothing."""

    path: str
    function: str
    change: str
    reason: str

    def names(self, mutant: Mutant) -> bool:
        return (self.path, self.function, self.change) == (mutant.path, mutant.function, mutant.change)


def read(text: str) -> list[Equivalent]:
    """The edits of a list; ValueError for a line that is none."""
    found = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        # Edits may hold a bar themselves: the file and the function are first, the reason is last.
        path, _, rest = line.partition(" | ")
        function, _, rest = rest.partition(" | ")
        change, _, reason = rest.rpartition(" | ")
        if " -> " not in f"{change} " or not reason.strip():
            raise ValueError(f"line {number}: expected `file | function | before -> after | reason`: {line}")
        found.append(Equivalent(path, function.strip(), change, reason))
    return found
