"""``LayoutRules``: the layouts that a library's steps are asked for, as tables over kinds of steps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

Form: TypeAlias = Literal["last", "blocked", "plain"]
"""A layout of images of any rank: channels last, channels in blocks, or plain."""
Kinds: TypeAlias = tuple[type, ...]
"""Kinds of steps by the classes of their attributes."""


@dataclass(frozen=True)
class LayoutRules:
    """A library's tables; a step of a kind in none of them stands as it is, or plain.

    Attributes
    ----------
    block : channels in one block of blocked layouts on the machine that is planned for.
    forms : of images, best guess first.
    images : kinds that are asked for images in every form.
    follows : kinds that are asked for the layout of their source first, then for every form.
    sources : kinds whose source alone has a choice of layouts.
    mixed : kinds of ``images`` that may read the plain image of two axes, and write any form.
    plain_results : kinds of ``images`` that may write the plain image, and read any form, where the image has
        at most half a block of channels.
    casts : whether a conversion into another type may change the layout on the way.
    copies : whether a conversion into another layout is asked for its source's as well: then it is no work.
    """

    block: int = 1
    forms: tuple[Form, ...] = ("last", "blocked", "plain")
    images: Kinds = ()
    follows: Kinds = ()
    sources: Kinds = ()
    mixed: Kinds = ()
    plain_results: Kinds = ()
    casts: bool = False
    copies: bool = False
