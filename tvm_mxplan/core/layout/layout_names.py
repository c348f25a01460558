"""Layouts by the names that people use for them: ``nchw``, ``nhwc``, ``nChw16c``, ``OIhw16i16o``.

A name spells the same thing as a tag, with a letter for what each dimension means:

    activations   n c (d h) w          nChw16c     = aBcd16b
    weights       (g) o i (d h) w      OIhw16i16o  = ABcd16b16a,   gOihw16o = aBcde16b
"""

from __future__ import annotations

import re
import string

from .layout import Layout, channels_blocked, channels_last, parse_layout, plain_layout

_NAME = re.compile(r"^([a-zA-Z]+)((?:\d+[a-z])*)$")
_LETTERS = tuple(leading + spatial for leading in ("nc", "oi", "goi") for spatial in ("w", "hw", "dhw"))


def layout_named(name: str) -> Layout:
    """The layout that ``name``, or a tag such as ``acdb``, stands for.

    Raises
    ------
    ValueError : it is neither.
    """
    match = _NAME.match(name)
    letters = match.group(1).lower() if match else ""
    for alphabet in _LETTERS:
        if sorted(letters) == sorted(alphabet):
            return parse_layout(name.translate(_table(alphabet, string.ascii_lowercase)))
    try:
        if letters:
            return parse_layout(name)
        raise ValueError(name)
    except ValueError:
        raise ValueError(
            f"layout {name!r}: expected a name such as nchw, nhwc or nChw16c, or a tag"
        ) from None


def name_of(layout: Layout, *, weights: bool = False) -> str:
    """The name of a layout of activations or of weights; its tag where ranks have no name."""
    rank = len(layout.order)
    leading = "oi" if weights else "nc"
    if not 3 <= rank <= 5:
        return layout.tag
    alphabet = leading + "dhw"[5 - rank :]
    return layout.tag.translate(_table(string.ascii_lowercase, alphabet))


def image_layout(name: str, rank: int, block: int) -> Layout:
    """A layout of activations of ``rank`` by name, by tag, or as ``plain``, ``channels_last`` or ``blocked``.

    Raises
    ------
    ValueError : no such name, or one of another rank.
    """
    families = {
        "plain": plain_layout(rank),
        "channels_last": channels_last(rank),
        "blocked": channels_blocked(rank, block),
    }
    layout = layout_named(families.get(name, name))
    if len(layout.order) != rank:
        raise ValueError(f"layout {name!r} is of rank {len(layout.order)}, the tensor of rank {rank}")
    return layout


def _table(source: str, target: str) -> dict[int, int]:
    """Letters of ``source`` to those of ``target`` at the same place, small ones and capitals."""
    pairs = list(zip(source, target, strict=False))
    letters = {ord(a): ord(b) for a, b in pairs}
    return letters | {ord(a.upper()): ord(b.upper()) for a, b in pairs}
