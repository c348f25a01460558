"""Words of Relay's text: what TVM's printer wrote, names with dots and colons included, comments left out.

%0 = nn.conv2d(%data, %conv1.weight, padding=[1, 1, 1, 1]) /* ty=Tensor[(1, 64, 56, 56), float32] */;
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from .places import TextPlaces, invalid, quoted

_WORDS = re.compile(
    r"""
      (?P<space>\s+)
    | (?P<comment>/\*)
    | (?P<line>//[^\n]*)
    | (?P<graph>%\d+)
    | (?P<local>%[A-Za-z_/][\w/]*(?:(?:\.|::|:(?=\d)|-(?!>))[\w/]+)*)
    | (?P<global>@[A-Za-z_/][\w/]*(?:(?:\.|::|-)[\w/]+)*)
    | (?P<meta>meta\[[^\]\n]*\]\[\d{1,9}\])
    | (?P<string>"[^"]*")
    | (?P<arrow>->)
    | (?P<number>-?(?:\d+(?:\.\d*)?(?:[eE][+-]?\d+)?(?:[fi]\d{0,3})?|(?:inf|nan)f\d{0,3})(?!\w))
    | (?P<item>\.\d{1,9})
    | (?P<name>[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*)
    | (?P<infix>==|!=|<=|>=|[-+*/<>])
    | (?P<sign>[()\[\]{},;:=?])
    """,
    re.VERBOSE | re.ASCII,
)
_COMMENT_EDGE = re.compile(r"/\*|\*/")


@dataclass(frozen=True, slots=True)
class Word:
    """A word: its kind (a group of the expression above), its text, and where it begins."""

    kind: str
    text: str
    place: int


def words(text: str, start: int, end: int, places: TextPlaces) -> Iterator[Word]:
    """The words from ``start`` to ``end``, and one of the kind ``end`` behind them.

    Raises
    ------
    InvalidInputError : a character that no word begins with, or a comment that does not end.
    """
    position = start
    while position < end:
        match = _WORDS.match(text, position, end)
        if match is None:
            invalid(places, position, f"{quoted(text[position : position + 12])} is no word of Relay's text")
        kind = match.lastgroup or ""
        if kind == "comment":
            position = _behind_comment(text, position, end, places)
            continue
        if kind not in ("space", "line"):
            yield Word(kind, match[0], position)
        position = match.end()
    yield Word("end", "", end)


def _behind_comment(text: str, start: int, end: int, places: TextPlaces) -> int:
    """The position behind a comment, in which others may stand."""
    depth = 0
    position = start
    while True:
        edge = _COMMENT_EDGE.search(text, position, end)
        if edge is None:
            invalid(places, start, "this comment does not end; expected */")
        depth += 1 if edge[0] == "/*" else -1
        position = edge.end()
        if not depth:
            return position
