"""Chains of post-ops behind a step: drawn at random, written as text, read again.

    relu            an elementwise function with the numbers of ELTWISE
    add:channel     a binary with a second operand of that shape (subject.broadcast)
    sum             what the result's bytes held before
    relu+add:whole+sum       a chain; '-' is none

Binaries are drawn where fusion makes them (byoc/onednn/rewrites/fusion.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tvm_mxplan.byoc.onednn.rewrites.fusion import takes_binary
from tvm_mxplan.core.program import program as ir

from .functions import ELTWISE, eltwise
from .subject import Subject, broadcast

_BINARIES = ("add", "sub", "mul", "div", "min", "max")
_SHAPES = ("number", "channel", "last", "row", "whole")
_HAS_POST_OPS = (
    ir.Convolution, ir.Deconvolution, ir.MatMul, ir.InnerProduct, ir.Pooling, ir.Binary, ir.Resampling,
    ir.Reduction, ir.FewBitsProduct, ir.GroupedProduct,
)  # fmt: skip
# In place of a binary that adds the whole; passes/memory/share_in_place.py.
_HAS_SUM = (ir.Convolution, ir.Deconvolution, ir.MatMul, ir.InnerProduct, ir.Binary, ir.Reduction)
_FULLY = 0.25, 0.7
"""Below the first no post-op, below the second one, above several."""


@dataclass(frozen=True)
class Link:
    """One post-op: its name, and how the second operand of a binary is broadcast."""

    name: str
    second: str = ""

    def __str__(self) -> str:
        return f"{self.name}:{self.second}" if self.second else self.name

    def eltwise(self) -> ir.EltwisePostOp:
        return ir.EltwisePostOp(*eltwise(self.name))


Chain = tuple[Link, ...]


def draw(subject: Subject, random: np.random.Generator) -> Chain:
    """A chain that a step of this kind could get; none for kinds that take no post-ops."""
    if not isinstance(subject.attrs, _HAS_POST_OPS):
        return ()
    level = random.random()
    length = 0 if level < _FULLY[0] else 1 if level < _FULLY[1] else int(random.integers(2, 5))
    links = _links(subject)
    chain = [links[int(random.integers(len(links)))] for _ in range(length)]
    sums = [at for at, link in enumerate(chain) if link.name == "sum"]
    return tuple(link for at, link in enumerate(chain) if link.name != "sum" or at == sums[0])


def _links(subject: Subject) -> list[Link]:
    links = [Link(name) for name in ELTWISE]
    for second in _SHAPES:
        if takes_binary(subject.attrs, broadcast(subject.dst, second), subject.dst):
            links += [Link(name, second) for name in _BINARIES] * 2
    if isinstance(subject.attrs, _HAS_SUM):
        links += [Link("sum")] * 3
    return links


def parse(text: str) -> Chain:
    """The chain that ``to_text`` wrote; KeyError or ValueError for what is none."""
    if text == "-":
        return ()
    chain = []
    for word in text.split("+"):
        name, _, second = word.partition(":")
        if name not in ELTWISE and name not in _BINARIES and name != "sum":
            raise ValueError(f"{word!r} is no post-op")
        chain.append(Link(name, second))
    return tuple(chain)


def to_text(chain: Sequence[Link]) -> str:
    return "+".join(map(str, chain)) or "-"
