"""Places in a file, and errors that state them."""

from __future__ import annotations

import bisect
from dataclasses import dataclass, field
from typing import NoReturn

from ...errors import InvalidInputError, UnsupportedError

_LONGEST = 60


@dataclass(frozen=True)
class TextPlaces:
    """Positions of a text as lines and columns, both from 1 on."""

    source: str
    starts: list[int] = field(repr=False)

    @staticmethod
    def of(source: str, text: str) -> TextPlaces:
        starts = [0]
        while (end := text.find("\n", starts[-1])) >= 0:
            starts.append(end + 1)
        return TextPlaces(source, starts)

    def named(self, place: int) -> str:
        line = bisect.bisect_right(self.starts, place)
        return f"{self.source}:{line}:{place - self.starts[line - 1] + 1}"


@dataclass(frozen=True)
class NodePlaces:
    """Nodes of a JSON graph by their numbers."""

    source: str

    def named(self, place: int) -> str:
        return f"{self.source}: node {place}"


Places = TextPlaces | NodePlaces


def invalid(places: Places, place: int, message: str) -> NoReturn:
    raise InvalidInputError(f"{places.named(place)}: {message}")


def unsupported(places: Places, place: int, message: str) -> NoReturn:
    raise UnsupportedError(f"{places.named(place)}: {message}")


def quoted(text: str) -> str:
    """Some of a foreign text, printable and in one line."""
    cut = text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."
    return ascii(cut)
