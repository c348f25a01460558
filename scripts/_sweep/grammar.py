"""Problem lists: text files in the manner of oneDNN's benchdnn.

    # a comment
    kind convolution                          the kind of step that the lines below are of
    always bias0|1 mb1|2                      what every line below has, unless it says otherwise
    g1 ic3|64 ih56 oc64 kh3 sh2 ph1           a problem: names and numbers; | separates alternatives
    alg=winograd_f4 kh3 ic64 ...              texts follow an equals sign

A line stands for the product of its alternatives.  ``4..9`` is every number of a range.  Names are those of
benchdnn: mb (images), g (groups), ic and oc (channels of all groups), then for depth, height and width
i (source), o (result), k (window), s (stride), p (padding in front), r (padding behind, p where it is
missing) and d (dilation, 0 is dense).  An axis takes the number of the axis before it where it has none:
``iw`` alone makes an image of one axis, ``ih`` alone a square one, ``id`` alone a cube.  subjects.py says
what each kind takes.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

PROBLEMS = Path(__file__).resolve().parent / "problems"
_NUMBERS = re.compile(r"^([a-z_]+)(\d[\d|.]*)$")
_TEXT = re.compile(r"^([a-z_]+)=(.+)$")

Number = int | str
Alternatives = tuple[Number, ...]


class GrammarError(ValueError):
    """A line of a problem list that means nothing; the message has file and line."""


@dataclass(frozen=True)
class Problem:
    """One step by its numbers."""

    kind: str
    fields: tuple[tuple[str, Number], ...]

    def __str__(self) -> str:
        words = (
            f"{name}{value}" if isinstance(value, int) else f"{name}={value}" for name, value in self.fields
        )
        return " ".join([self.kind, *words])


@dataclass(frozen=True)
class Line:
    """A product of problems.  ``place`` is file and line."""

    kind: str
    axes: tuple[tuple[str, Alternatives], ...]
    place: str

    @property
    def size(self) -> int:
        """The number of problems that the line stands for."""
        return math.prod(len(alternatives) for _, alternatives in self.axes)

    def at(self, number: int) -> Problem:
        """The problem of that number, from 0 to below ``size``."""
        fields = []
        for name, alternatives in self.axes:
            number, which = divmod(number, len(alternatives))
            fields.append((name, alternatives[which]))
        return Problem(self.kind, tuple(fields))


def read(paths: Sequence[Path] = ()) -> list[Line]:
    """All lines of these lists, of the project's own where none is given."""
    files = paths or sorted(PROBLEMS.glob("*.txt"))
    return [line for path in files for line in parse(path.read_text(), path.name)]


def parse(text: str, name: str) -> Iterator[Line]:
    """The lines of one list."""
    kind, always = "", {}
    for number, raw in enumerate(text.splitlines(), 1):
        words = raw.split("#")[0].split()
        place = f"{name}:{number}"
        if not words:
            continue
        if words[0] == "kind":
            kind, always = _only_word(words, place), {}
        elif words[0] == "always":
            always = _axes(words[1:], place)
        elif not kind:
            raise GrammarError(f"{place}: a problem before any `kind`")
        else:
            yield Line(kind, tuple({**always, **_axes(words, place)}.items()), place)


def problem(text: str) -> Problem:
    """The inverse of ``str`` of a problem."""
    kind, *words = text.split()
    axes = _axes(words, text)
    if any(len(alternatives) != 1 for alternatives in axes.values()):
        raise GrammarError(f"{text}: expected one number for each name")
    return Problem(kind, tuple((name, alternatives[0]) for name, alternatives in axes.items()))


def _only_word(words: Sequence[str], place: str) -> str:
    if len(words) != 2:
        raise GrammarError(f"{place}: expected `{words[0]} NAME`, got {' '.join(words)!r}")
    return words[1]


def _axes(words: Sequence[str], place: str) -> dict[str, Alternatives]:
    axes: dict[str, Alternatives] = {}
    for word in words:
        if text := _TEXT.match(word):
            axes[text[1]] = tuple(text[2].split("|"))
        elif numbers := _NUMBERS.match(word):
            parts = numbers[2].split("|")
            axes[numbers[1]] = tuple(number for part in parts for number in _range(part, place))
        else:
            raise GrammarError(f"{place}: {word!r} is no name with numbers, such as ic3|64, nor name=text")
    return axes


def _range(part: str, place: str) -> Sequence[int]:
    first, *last = part.split("..")
    if not first or len(last) > 1 or last == [""]:
        raise GrammarError(f"{place}: {part!r} is neither a number nor a range such as 4..9")
    return range(int(first), int(last[-1] if last else first) + 1)
