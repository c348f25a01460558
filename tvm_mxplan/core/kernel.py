"""``Kernel``: one decided step of a region alone, as what can be run, checked and remembered by itself.

A kernel is all that decides which code runs and what it has to compute: kind, attributes, post-ops, shapes,
layouts, whether an operand is a constant, and the implementation that the plan is built on.  Names, offsets
and shared bytes are left out, so that equal kernels of any two models are equal.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

from .element_types import stored_bytes
from .fingerprint import content_digest
from .program import codec
from .program import program as ir
from .program.dims import static_shape
from .program.operands import rewired

_DIGEST_DIGITS = 32


@dataclass(frozen=True)
class Kernel:
    """``program`` has one step and no names: inputs and constants first, results last."""

    program: ir.Program

    @property
    def step(self) -> ir.Step:
        return self.program.steps[0]

    @property
    def implementation(self) -> str:
        return self.step.implementation

    @cached_property
    def digest(self) -> str:
        """Of everything in it, as hexadecimal digits."""
        return content_digest(codec.encode(self.program)).hex()[:_DIGEST_DIGITS]

    @property
    def nbytes(self) -> int:
        """Bytes of its operands as they are stored."""
        return sum(
            stored_bytes(static_shape(value.shape), value.layout, value.dtype)
            for value in self.program.values
        )

    def __str__(self) -> str:
        """Kind, shapes, layouts, post-ops: ``convolution 1x64x56x56 acdb -> 1x64x56x56 acdb + relu``."""
        step, values = self.step, self.program.values
        source, result = values[next(step.reads())], values[step.dst]
        words = [step.kind, _extents(source), source.layout, "->", _extents(result), result.layout]
        return " + ".join([" ".join(words), *(str(_name(post_op)) for post_op in step.post_ops)])


def alone(program: ir.Program, step: ir.Step) -> tuple[ir.Program, list[int]]:
    """A program of ``step`` alone, and the values that its inputs and constants were, in their order.

    Its shapes have to be of numbers.  What a step writes may be what it reads, in place; here every result is
    an output of its own, in the order of operands, and ``dst`` holds at the start what a sum adds to.
    """
    order = list(dict.fromkeys(step.reads()))
    values: list[ir.Value] = []
    for old in order:
        constant = program.values[program.root(old)].kind == "constant"
        kind: ir.ValueKind = "constant" if constant else "input"
        values.append(_own(program.values[old], kind, sum(value.kind == kind for value in values)))
    numbers = {old: new for new, old in enumerate(order)}
    results = {old: len(order) + at for at, old in enumerate(step.results)}
    values += [_own(program.values[old], "output", at) for at, old in enumerate(step.results)]
    unplaced = replace(step, scratchpad_offset=-1, scratchpad_bytes=-1)
    single = rewired(unplaced, lambda *use: numbers[use[-1]], lambda *use: results[use[-1]])
    return ir.Program("step", tuple(values), (single,)), order


def kernels_of(program: ir.Program) -> Iterator[tuple[str, Kernel]]:
    """The steps of a program with shapes of numbers that have something to run, by their names."""
    for step in program.steps:
        if step.implementation:
            single, _ = alone(program, replace(step, name=""))
            values = tuple(replace(value, name="") for value in single.values)
            yield step.name, Kernel(replace(single, name="", values=values))


def _own(value: ir.Value, kind: ir.ValueKind, index: int) -> ir.Value:
    return replace(value.inside(alias_of=-1, alias_offset=0, offset=-1, nbytes=-1), kind=kind, index=index)


def _extents(value: ir.Value) -> str:
    return "x".join(map(str, value.shape))


def _name(post_op: ir.PostOp) -> str:
    match post_op:
        case ir.EltwisePostOp():
            return post_op.algorithm
        case ir.BinaryPostOp():
            return f"binary {post_op.algorithm}"
        case ir.DepthwisePostOp():
            return f"depthwise {post_op.kernel}x{post_op.kernel}"
    return "sum"
