"""The layouts that a backend knows, and how a tensor gets from one into another.

    registry.announce("nChw16c", to_standard=..., from_standard=...)
    registry.announce_direct("nhwc", "nChw16c", convert)
    registry.path("nChw16c", "nhwc")        ("nChw16c", "standard", "nhwc"): no direct one, two hops

A converter takes the tensor and its logical shape; what a tensor is (numpy, TVM's) the backend decides.  A
layout without a ``Layout`` value is opaque: only its backend can read it.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any, TypeAlias

from .layout import Layout
from .layout_arrays import pack, unpack
from .layout_names import layout_named

STANDARD = "standard"
"""Row-major, whatever the rank."""

Converter: TypeAlias = Callable[[Any, tuple[int, ...]], Any]


@dataclass(frozen=True)
class LayoutRecord:
    """One announced layout; ``layout`` is None if it is opaque."""

    name: str
    layout: Layout | None
    to_standard: Converter
    from_standard: Converter


class LayoutRegistry:
    """Layouts by name, and the converters between them."""

    def __init__(self) -> None:
        self._records: dict[str, LayoutRecord] = {}
        self._direct: dict[tuple[str, str], Converter] = {}

    def __iter__(self) -> Iterator[LayoutRecord]:
        return iter(self._records.values())

    def __getitem__(self, name: str) -> LayoutRecord:
        """The record of ``name``; ValueError names those that are close."""
        if name not in self._records:
            close = difflib.get_close_matches(name, self._records, n=3, cutoff=0.5) or list(self._records)
            raise ValueError(f"no layout {name!r}; known are for example {', '.join(close)}")
        return self._records[name]

    def announce(
        self, name: str, *, to_standard: Converter, from_standard: Converter, opaque: bool = False
    ) -> None:
        """Add a layout with its converters to and from the standard one; ValueError if it is there."""
        if name in self._records or name == STANDARD:
            raise ValueError(f"layout {name!r} is announced twice")
        layout = None if opaque else layout_named(name)
        self._records[name] = LayoutRecord(name, layout, to_standard, from_standard)

    def announce_direct(self, source: str, target: str, convert: Converter) -> None:
        """Add a converter that needs no second hop; both layouts have been announced."""
        self._direct[self[source].name, self[target].name] = convert

    def path(self, source: str, target: str) -> tuple[str, ...]:
        """Names of the layouts on the way, both ends included."""
        if source == target:
            return (source,)
        if STANDARD in (source, target) or (source, target) in self._direct:
            return (source, target)
        return (source, STANDARD, target)

    def convert(self, tensor: Any, shape: Sequence[int], source: str, target: str) -> Any:
        """``tensor``, of logical ``shape`` and in layout ``source``, in layout ``target``."""
        hops = self.path(source, target)
        for here, there in pairwise(hops):
            tensor = self._converter(here, there)(tensor, tuple(shape))
        return tensor

    def _converter(self, source: str, target: str) -> Converter:
        if target == STANDARD:
            return self[source].to_standard
        if source == STANDARD:
            return self[target].from_standard
        return self._direct[source, target]


def merged(registries: Sequence[LayoutRegistry]) -> LayoutRegistry:
    """All layouts of several registries; where two have one of the same name, the first one's."""
    whole = LayoutRegistry()
    for registry in reversed(registries):
        whole._records.update(registry._records)
        whole._direct.update(registry._direct)
    return whole


def numpy_registry(names: Sequence[str]) -> LayoutRegistry:
    """A registry of arrays: the reference that those of backends are held against."""
    registry = LayoutRegistry()
    for name in names:
        layout = layout_named(name)
        registry.announce(
            name, to_standard=partial(_unpacked, layout), from_standard=partial(_packed, layout)
        )
    return registry


def _packed(layout: Layout, array: Any, _shape: tuple[int, ...]) -> Any:
    return pack(array, layout)


def _unpacked(layout: Layout, array: Any, shape: tuple[int, ...]) -> Any:
    return unpack(array, layout, shape)
