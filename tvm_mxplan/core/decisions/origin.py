"""``Origin``: the part of a user's model that an operator comes from, by the name that it has there."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

_LONGEST = 100


@dataclass(frozen=True)
class Origin:
    """One part of a model.

    Attributes
    ----------
    name : as the model has it: an ONNX node's, ``loop/body_conv`` for one in a graph or function inside
        another node; the path of a PyTorch module.
    kind : what it is there: ``Conv``.
    computes : the element type that the model states for its numbers, where these have 16 bits, else ''.
    """

    name: str
    kind: str = ""
    computes: str = ""

    def __str__(self) -> str:
        text = f"{self.kind} {self.name}".strip()
        text = text if text.isprintable() else repr(text)[1:-1]
        return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."

    def is_called(self, name: str) -> bool:
        """Whether a user may mean it by ``name``: its whole name, or the last part of one inside another."""
        return name == self.name or self.name.endswith(f"/{name}")


Origins = tuple[Origin, ...]
"""The origins of an operator, in the order in which the model computes; empty where that is not known."""


def joined(several: Iterable[Origins]) -> Origins:
    """Each origin once, in the order of first sight."""
    return tuple(dict.fromkeys(origin for origins in several for origin in origins))


def told(origins: Origins, most: int = 3) -> str:
    """``Conv a, Relu b``, shortened where there are many; '' for none."""
    known = [name for name in dict.fromkeys(map(str, origins)) if name]
    names = known[:most]
    more = len(known) - len(names)
    return ", ".join(names) + (f" and {more} more" if more else "")
