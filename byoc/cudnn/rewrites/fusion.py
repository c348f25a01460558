"""Post-ops: elementwise steps that run inside the step that made their operand, where cuDNN has an engine.

Before   v1 = convolution(x, w);  v2 = binary add(v1, r);  v3 = eltwise relu(v2)
After    v3 = convolution(x, w) post_ops=[binary add r, eltwise relu]

A step is fused into its latest producer, which moves to the step's place, so that everything it reads is
there.  It may see what was made in another shape: products of matrices are made as images of one pixel.
Whether there is an engine for the longer chain, cuDNN is asked; products come first, since their results
would travel to memory and back.  Products of integers (``integers``) take in conversions as well.  Their
engines are compiled when they are asked for, so they are asked about whole chains, and about parts of a chain
only where there is none for the whole.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace

import numpy as np

from tvm_mxplan.byoc.backend import Translation
from tvm_mxplan.byoc.elementwise import COMMUTATIVE
from tvm_mxplan.byoc.rewrites.graph import Graph
from tvm_mxplan.byoc.rewrites.quantized.forms import Numbers
from tvm_mxplan.byoc.rewrites.quantized.lower import lower
from tvm_mxplan.core.element_types import numpy_type
from tvm_mxplan.core.layout.layout import plain_layout
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.core.program.dims import static_shape

from ..layout_rules import PRODUCTS, forms
from . import integers

Accepts = Callable[[ir.Program], bool]
"""Whether cuDNN has an engine for the one step of a program."""
_HEAVY = (*PRODUCTS, ir.MatMul)
_TAKING = (*_HEAVY, ir.Eltwise, ir.Binary)
_MOST = 8
"""Post-ops of one step of real numbers: longer chains have not been seen to build."""


@dataclass(frozen=True)
class _Choice:
    """A step that could take another one in.

    Attributes
    ----------
    producer : its position.
    root : what it is, or has to become for this.
    made : what it makes, which the other step reads, maybe in another shape.
    function : what the other step does with it.
    other : the second operand of a binary one, -1 without.
    between : position of a conversion between both that goes, -1 without.
    """

    producer: int
    root: ir.Step
    made: int
    function: ir.Eltwise | ir.Binary
    other: int = -1
    between: int = -1


def fuse(program: ir.Program, constants: list[np.ndarray], accepts: Accepts) -> Translation:
    """The program with elementwise steps in those that make what they read, and who took in whom."""
    doubtful: set[str] = set()
    while True:
        fusion = _Fusion(program, constants, accepts, doubtful)
        fusion.run()
        refused = fusion.refused() - doubtful
        if not refused:
            found, kept = fusion.graph.close()
            return Translation(found, kept, fusion.graph.fused())
        doubtful |= refused


class _Fusion:
    """A program on its way.

    Parameters
    ----------
    doubtful : names of products of integers whose whole chains have no engine: each part is asked for.
    """

    def __init__(
        self, program: ir.Program, constants: list[np.ndarray], accepts: Accepts, doubtful: Collection[str]
    ) -> None:
        self.graph = Graph(program, constants)
        self.constants = self.graph.constants
        self._accepts = accepts
        self._doubtful = doubtful

    def run(self) -> None:
        integers.sign(self.graph)
        lower(self.graph, self._multiplies, lambda step: integers.is_whole_pool(self.graph, step))
        for at, step in enumerate(self.graph.steps):
            if step and step.is_quantized:
                self.graph.replace(at, integers.without_zero_point(self.graph, step) or step)
        for at in range(len(self.graph.steps)):
            if not self._converts(at):
                any(self.take(at, choice) for choice in self.choices(at))

    def refused(self) -> set[str]:
        """Names of the products of integers that there is no engine for."""
        return {
            step.name
            for step in self.graph.steps
            if step and step.is_quantized and not self._has_engine(step)
        }

    # --- engines ----------------------------------------------------------------------------------------

    def _has_engine(self, step: ir.Step) -> bool:
        whole = replace(self.graph.program, values=tuple(self.graph.values))
        return any(map(self._accepts, forms(whole, step)))

    def _may(self, step: ir.Step) -> bool:
        return (step.is_quantized and step.name not in self._doubtful) or self._has_engine(step)

    def _multiplies(self, step: ir.Step) -> bool:
        """Whether there is an engine for a product of integers alone."""
        made = integers.without_zero_point(self.graph, step)
        return made is not None and self._has_engine(made)

    # --- conversions ------------------------------------------------------------------------------------

    def _converts(self, at: int) -> bool:
        """Puts a conversion into the product of integers in front of it; True if it stood there."""
        step = self.graph.steps[at]
        if step is None or not isinstance(step.attrs, ir.Quantization):
            return False
        found = integers.writing_integers(self.graph, at)
        if found is not None and self._may(found[1]):
            self.graph.merge(found[0], at, found[1])
        return True

    # --- which steps ------------------------------------------------------------------------------------

    def choices(self, at: int) -> list[_Choice]:
        """Steps that could take in the one at ``at``, the best first."""
        step = self.graph.steps[at]
        if step is None or step.post_ops or not isinstance(step.attrs, ir.Eltwise | ir.Binary):
            return []
        pairs = [("src", "src1"), ("src1", "src")] if isinstance(step.attrs, ir.Binary) else [("src", "")]
        found = []
        for role, other in pairs:
            if role == "src1" and step.attrs.algorithm not in COMMUTATIVE:
                continue
            if self.graph.values[step.operand(role)].shape != self.graph.values[step.dst].shape:
                continue
            second = step.operand(other) if other else -1
            found += self._choices_of(step.operand(role), step.attrs, second)
        return sorted(found, key=self._rank, reverse=True)

    def _choices_of(self, value: int, function: ir.Eltwise | ir.Binary, other: int) -> list[_Choice]:
        """Those of one operand."""
        made = self._made(value)
        if made is not None:
            producer = self.graph.writer(made)
            root = self.graph.steps[producer]  # type: ignore[index]
            return [_Choice(producer, root, made, function, other)]  # type: ignore[arg-type]
        between = self.graph.producer(value)
        rounded = None if between is None else integers.rounded_there(self.graph, between)
        if rounded is None:
            return []
        return [_Choice(*rounded, value, function, other, between)]  # type: ignore[arg-type]

    def _rank(self, choice: _Choice) -> tuple[bool, int]:
        return isinstance(choice.root.attrs, _HEAVY), choice.producer

    def _made(self, value: int) -> int | None:
        """The value behind ``value`` and its views, if a step that takes post-ops makes it for it alone."""
        graph = self.graph
        if graph.reads(value) != 1 or graph.views(value):
            return None
        while graph.values[value].alias_of >= 0:
            seen = graph.values[value]
            if seen.alias_offset != 0 or not _is_plain(seen) or graph.writer(value) is not None:
                return None
            value = seen.alias_of
            if graph.reads(value) or len(graph.views(value)) != 1 or not _is_plain(graph.values[value]):
                return None
        writer = graph.writer(value)
        step = None if writer is None else graph.steps[writer]
        takes = step is not None and isinstance(step.attrs, _TAKING)
        takes = takes and (step.is_quantized or len(step.post_ops) < _MOST)  # type: ignore[union-attr]
        return value if takes and graph.values[value].kind == "local" else None

    # --- what becomes of them -----------------------------------------------------------------------------

    def take(self, at: int, choice: _Choice) -> bool:
        """Puts both steps into one if there is an engine for it."""
        graph = self.graph
        step = graph.steps[at]
        assert step
        values, count = len(graph.values), len(self.constants)
        merged = self._merged(step, choice)
        if merged is None or not self._may(merged):
            graph.forget(values)
            del self.constants[count:]
            return False
        dst, read = merged.dst, choice.other
        if choice.between >= 0:
            graph.drop_into(choice.between, merged.name)
        graph.merge(choice.producer, at, merged)
        if dst != step.dst and graph.values[dst].alias_of < 0:
            graph.forget_views(choice.made)
            graph.alias(step.dst, dst)
        conversion = graph.writer(read) if read >= 0 and graph.is_unread(read) else None
        if conversion is not None:
            graph.drop_into(conversion, merged.name)
        return True

    def _merged(self, step: ir.Step, choice: _Choice) -> ir.Step | None:
        root, made, shape = choice.root, self.graph.values[choice.made], self.graph.values[step.dst].shape
        post_ops: tuple[ir.PostOp, ...]
        held = self._held(step, choice)
        if isinstance(choice.function, ir.Eltwise):
            function = choice.function
            post_ops = (ir.EltwisePostOp(function.algorithm, function.alpha, function.beta),)
        elif held is not None:
            post_ops = integers.adding(self.graph, root, *held)
        else:
            other = choice.other if made.shape == shape else self._as_made(choice.other, made)
            if other is None:
                return None
            post_ops = (ir.BinaryPostOp(choice.function.algorithm, other),)
        dst = step.dst if made.shape == shape else self._result(step.dst, made)
        operands = [ir.Operand("dst", dst) if one.role == "dst" else one for one in root.operands]
        plain = isinstance(root.attrs, PRODUCTS) and not root.is_quantized
        if plain and not any(one.role == "bias" for one in operands):
            # Without a bias there is no engine without code generation for what stands behind.
            operands.insert(-1, ir.Operand("bias", self._zeros(made)))
        return replace(root, operands=tuple(operands), post_ops=(*root.post_ops, *post_ops))

    def _held(self, step: ir.Step, choice: _Choice) -> tuple[int, Numbers] | None:
        """The integers that a product of integers adds as they stand, and their numbers."""
        adds = isinstance(choice.function, ir.Binary) and choice.function.algorithm == "add"
        if not adds or not choice.root.is_quantized:
            return None
        alike = self.graph.values[choice.other].shape == self.graph.values[step.dst].shape
        whole = self.graph.values[choice.made].shape == self.graph.values[step.dst].shape
        return integers.integers_of(self.graph, choice.other) if alike and whole else None

    def _result(self, dst: int, made: ir.Value) -> int:
        """A value for ``dst`` in the shape of what was made: of its own, or where a result's bytes are."""
        value = self.graph.values[dst]
        of = -1 if value.alias_of < 0 and value.kind == "local" else dst
        return self.graph.add(ir.Value(value.name, made.shape, made.dtype, "local", made.layout, alias_of=of))

    def _as_made(self, number: int, made: ir.Value) -> int | None:
        """A second operand as what was made [rows, columns, 1, 1] is seen: a whole one, or a row."""
        value, shape = self.graph.values[number], static_shape(made.shape)
        if not _is_plain(value) or shape[2:] != (1, 1):
            return None
        extents = static_shape(value.shape)
        if math.prod(extents) == math.prod(shape):
            seen = shape
        elif extents[-1] == shape[1] == math.prod(extents):
            seen = (1, shape[1], 1, 1)
        else:
            return None
        return self.graph.add(
            ir.Value(value.name, seen, value.dtype, "local", plain_layout(4), alias_of=number)
        )

    def _zeros(self, made: ir.Value) -> int:
        """A constant of zeros, one for each channel."""
        channels = static_shape(made.shape)[1]
        name = f"zeros{len(self.constants)}"
        return self.graph.add_constant(np.zeros(channels, numpy_type(made.dtype)), name, made.dtype)


def _is_plain(value: ir.Value) -> bool:
    return value.layout == plain_layout(len(value.shape))
