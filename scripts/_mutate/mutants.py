"""A mutant as plain data: one edit of one source file."""

from __future__ import annotations

import difflib
from dataclasses import dataclass


@dataclass(frozen=True)
class Mutant:
    """One edit, in bytes of the file's UTF-8.

    Attributes
    ----------
    path : of the file, from the root of the tree.
    function : its qualified name, "" at the module's level.
    kind : the rule that made it.
    line : of the statement that is run where the edit takes effect; 0 where that is on import.
    begin, end : the bytes that are replaced.
    before, after : the text that was there, and the one in its place.
    """

    path: str
    function: str
    kind: str
    line: int
    begin: int
    end: int
    before: str
    after: str

    @property
    def change(self) -> str:
        """The edit on one line; what ``equivalent.txt`` names it by."""
        return f"{_one_line(self.before)} -> {_one_line(self.after)}".rstrip()

    def apply(self, source: str) -> str:
        """The whole file with the edit in it."""
        data = source.encode()
        return (data[: self.begin] + self.after.encode() + data[self.end :]).decode()

    def diff(self, source: str) -> str:
        """The edit as a unified diff."""
        old, new = source.splitlines(True), self.apply(source).splitlines(True)
        return "".join(difflib.unified_diff(old, new, f"a/{self.path}", f"b/{self.path}", n=1))


def _one_line(text: str) -> str:
    return " ".join(text.split())
