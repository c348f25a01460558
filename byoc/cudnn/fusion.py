"""Post-ops: elementwise steps that run inside the step that made their operand, where cuDNN has an engine.

Before   v1 = convolution(x, w);  v2 = binary add(v1, r);  v3 = eltwise relu(v2)
After    v3 = convolution(x, w) post_ops=[binary add r, eltwise relu]

A step is fused into its latest producer, which moves to the step's place, so that everything it reads is
there.  It may see what was made in another shape: products of matrices are made as images of one pixel.
Whether there is an engine for the longer chain, cuDNN is asked; products come first, since their results
would travel to memory and back.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from tvm_mxplan.byoc.backend import Translation
from tvm_mxplan.byoc.elementwise import COMMUTATIVE
from tvm_mxplan.core.element_types import numpy_type
from tvm_mxplan.core.layout.layout import plain_layout
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.core.program.dims import static_shape
from tvm_mxplan.core.program.graph import Graph
from tvm_mxplan.core.program.renumber import sort_values

from .layout_rules import PRODUCTS, forms

Accepts = Callable[[ir.Program], bool]
"""Whether cuDNN has an engine for the one step of a program."""
_HEAVY = (*PRODUCTS, ir.MatMul)
_TAKING = (*_HEAVY, ir.Eltwise, ir.Binary)
_MOST = 8
"""Post-ops of one step: longer chains have not been seen to build."""


@dataclass(frozen=True)
class _Choice:
    """A step that could take another one in.

    Attributes
    ----------
    producer : its position.
    made : what it makes, which the other step reads, maybe in another shape.
    function : what the other step does with it.
    other : the second operand of a binary one, -1 without.
    """

    producer: int
    made: int
    function: ir.Eltwise | ir.Binary
    other: int = -1


def fuse(program: ir.Program, constants: list[np.ndarray], accepts: Accepts) -> Translation:
    """The program with elementwise steps in those that make what they read, and who took in whom."""
    fusion = _Fusion(program, constants)
    for at in range(len(fusion.graph.steps)):
        for choice in fusion.choices(at):
            if fusion.take(at, choice, accepts):
                break
    found = fusion.graph.finish()
    if any(value.alias_of >= number for number, value in enumerate(found.values)):
        found = sort_values(found)
    taken = {name: into for name, into in fusion.taken.items() if name != into}
    return Translation(found, fusion.constants, taken)


class _Fusion:
    """A program on its way.

    Attributes
    ----------
    taken : by the names of steps, those that took them in.
    """

    def __init__(self, program: ir.Program, constants: list[np.ndarray]) -> None:
        self.graph = Graph(program)
        self.constants = list(constants)
        self.taken: dict[str, str] = {}

    # --- which steps ------------------------------------------------------------------------------------

    def choices(self, at: int) -> list[_Choice]:
        """Steps that could take in the one at ``at``, the best first."""
        step = self.graph.steps[at]
        if step is None or step.post_ops or not isinstance(step.attrs, ir.Eltwise | ir.Binary):
            return []
        pairs = [("src", "src1"), ("src1", "src")] if isinstance(step.attrs, ir.Binary) else [("src", "")]
        found = []
        for role, other in pairs:
            made = self._made(step.operand(role))
            if made is None or (role == "src1" and step.attrs.algorithm not in COMMUTATIVE):
                continue
            if self.graph.values[step.operand(role)].shape == self.graph.values[step.dst].shape:
                second = step.operand(other) if other else -1
                found.append(_Choice(self.graph.writer(made), made, step.attrs, second))  # type: ignore[arg-type]
        return sorted(found, key=self._rank, reverse=True)

    def _rank(self, choice: _Choice) -> tuple[bool, int]:
        return isinstance(self.graph.steps[choice.producer].attrs, _HEAVY), choice.producer  # type: ignore[union-attr]

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
        takes = step is not None and isinstance(step.attrs, _TAKING) and len(step.post_ops) < _MOST
        return value if takes and graph.values[value].kind == "local" else None

    # --- what becomes of them -----------------------------------------------------------------------------

    def take(self, at: int, choice: _Choice, accepts: Accepts) -> bool:
        """Puts both steps into one if there is an engine for it."""
        graph = self.graph
        root, step = graph.steps[choice.producer], graph.steps[at]
        assert root and step
        values, count = len(graph.values), len(self.constants)
        merged = self._merged(root, step, choice)
        whole = replace(graph.program, values=tuple(graph.values))
        made, graph.values[values:] = graph.values[values:], []
        if merged is None or not any(map(accepts, forms(whole, merged))):
            del self.constants[count:]
            return False
        for value in made:
            graph.add(value)
        dst = merged.dst
        self.taken[root.name] = self.taken[step.name] = merged.name
        graph.drop(choice.producer)
        graph.replace(at, merged)
        if dst != step.dst and graph.values[dst].alias_of < 0:
            graph.forget_views(choice.made)
            graph.alias(step.dst, dst)
        return True

    def _merged(self, root: ir.Step, step: ir.Step, choice: _Choice) -> ir.Step | None:
        made, shape = self.graph.values[choice.made], self.graph.values[step.dst].shape
        post_op: ir.PostOp
        if isinstance(choice.function, ir.Eltwise):
            function = choice.function
            post_op = ir.EltwisePostOp(function.algorithm, function.alpha, function.beta)
        else:
            other = choice.other if made.shape == shape else self._as_made(choice.other, made)
            if other is None:
                return None
            post_op = ir.BinaryPostOp(choice.function.algorithm, other)
        dst = step.dst if made.shape == shape else self._result(step.dst, made)
        operands = [ir.Operand("dst", dst) if one.role == "dst" else one for one in root.operands]
        if isinstance(root.attrs, PRODUCTS) and not any(one.role == "bias" for one in operands):
            # Without a bias there is no engine without code generation for what stands behind.
            operands.insert(-1, ir.Operand("bias", self._zeros(made)))
        return replace(root, operands=tuple(operands), post_ops=(*root.post_ops, post_op))

    def _result(self, dst: int, made: ir.Value) -> int:
        """A value for ``dst`` in the shape of what was made: of its own, or where a result's bytes are."""
        value = self.graph.values[dst]
        of = -1 if value.alias_of < 0 and value.kind == "local" else dst
        return self._add(ir.Value(value.name, made.shape, made.dtype, "local", made.layout, alias_of=of))

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
        return self._add(ir.Value(value.name, seen, value.dtype, "local", plain_layout(4), alias_of=number))

    def _zeros(self, made: ir.Value) -> int:
        """A constant of zeros, one for each channel."""
        channels = static_shape(made.shape)[1]
        self.constants.append(np.zeros(channels, numpy_type(made.dtype)))
        index = len(self.constants) - 1
        name = f"zeros{index}"
        return self._add(ir.Value(name, (channels,), made.dtype, "constant", plain_layout(1), index))

    def _add(self, value: ir.Value) -> int:
        """A new value; the graph hears of it when a step with it is taken."""
        self.graph.values.append(value)
        return len(self.graph.values) - 1


def _is_plain(value: ir.Value) -> bool:
    return value.layout == plain_layout(len(value.shape))
