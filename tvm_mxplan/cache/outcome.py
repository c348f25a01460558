"""The outcome of asking the cache on disk."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class CacheReport:
    """Whether the compilation came from the cache on disk, and why not.

    Attributes
    ----------
    outcome : ``off``, ``hit``, ``miss``, or ``bypassed`` where it could not even be asked.
    reason : why it is a miss or bypassed, and why the result was not stored.
    file : name of the file that was used or written, '' if none was.
    """

    outcome: str = "off"
    reason: str = ""
    file: str = ""

    def __str__(self) -> str:
        return f"cache: {self.outcome}" + "".join(f"; {part}" for part in (self.reason, self.file) if part)
