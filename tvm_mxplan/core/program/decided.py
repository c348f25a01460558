"""Whether a decided program answers a question: does it compute what the program asked about computes?

Decided programs come from files.  One is used where it differs from the question in what a choice may change:

    algorithms   the algorithm and the preferred implementation of convolutions
    layouts      layouts of what the steps write, reorders between them, preferred implementations,
                 and what the library said: implementations, bytes of values and scratchpads

Both programs are worked through symbolically: a value stands for an input, a constant, the result of a step,
or a view of one of these.  An inserted reorder, and a view that stores the same bytes under another layout's
name, stand for what they are made of.  Steps have to be the same in their order, on the same values, and what
reaches each output has to be the same.
"""

from __future__ import annotations

from dataclasses import fields, replace
from itertools import chain
from typing import Any, TypeAlias

from ..layout.layout import same_bytes
from . import program as ir

Content: TypeAlias = tuple[Any, ...]
"""A value's meaning as plain data."""


class Unlike(Exception):
    """The program computes something else; the message says where it differs."""


def check_answer(asked: ir.Program, decided: ir.Program, *, layouts: bool) -> None:
    """Unlike says where ``decided`` is no decision about ``asked``; its name may be another one.

    Parameters
    ----------
    layouts : whether layouts were decided, or algorithms.
    """
    if not layouts:
        _check_algorithms(asked, decided)
        return
    _expect("symbols", asked.symbols, decided.symbols)
    _expect("arena", asked.arena_bytes, decided.arena_bytes)
    for kind in ("input", "output", "constant"):
        _expect(f"{kind}s", *(_ports(program, kind) for program in (asked, decided)))
    ours, theirs = _Meaning(asked, asked), _Meaning(decided, asked)
    for left, right in zip(ours.steps, theirs.steps, strict=False):
        for part in left:
            _expect(f"step {left['name']!r}: {part}", left[part], right[part])
    _expect("steps", len(ours.steps), len(theirs.steps))
    for port in asked.of_kind("output"):
        name, index = asked.values[port].name, asked.values[port].index
        _expect(f"output {name!r}", ours.written[index], theirs.written[index])


def _check_algorithms(asked: ir.Program, decided: ir.Program) -> None:
    same = replace(decided, name=asked.name, steps=asked.steps)
    _expect("values, symbols or arena", asked, same)
    _expect("steps", len(asked.steps), len(decided.steps))
    for before, after in zip(asked.steps, decided.steps, strict=True):
        attrs = after.attrs
        if isinstance(attrs, ir.Convolution) and isinstance(before.attrs, ir.Convolution):
            attrs = replace(attrs, algorithm=before.attrs.algorithm, preferred=before.attrs.preferred)
        elif isinstance(attrs, ir.Deconvolution) and isinstance(before.attrs, ir.Deconvolution):
            attrs = replace(attrs, algorithm=before.attrs.algorithm)
        after = replace(after, attrs=attrs)
        for field in fields(ir.Step):
            where = f"step {before.name!r}: {field.name}"
            _expect(where, getattr(before, field.name), getattr(after, field.name))


def _expect(where: str, expected: object, got: object) -> None:
    # By their text: NaN is NaN, and -0.0 is not 0.0.
    if repr(expected) != repr(got):
        raise Unlike(f"{where}: expected {_short(expected)}, got {_short(got)}")


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 300 else text[:300] + " ..."


def _ports(program: ir.Program, kind: ir.ValueKind) -> list[ir.Value]:
    return [replace(program.values[number], nbytes=-1) for number in program.of_kind(kind)]


class _Meaning:
    """The meaning of a program's steps and outputs, by the steps of the program that was asked about.

    Attributes
    ----------
    steps : each of the steps that were asked about, on what its operands mean.
    written : by output what was written into it, and at which places.
    """

    def __init__(self, program: ir.Program, asked: ir.Program) -> None:
        self.program = program
        self.steps: list[dict[str, Any]] = []
        self.written: dict[int, list[Content]] = {
            program.values[number].index: [] for number in program.of_kind("output")
        }
        self._results: dict[int, Content] = {}
        self._pieces: dict[int, list[Content]] = {}
        for step in program.steps:
            at = len(self.steps)
            if at < len(asked.steps) and _is_the_same(step, asked.steps[at]):
                self._take(step, asked.steps[at])
                for operand in step.operands:
                    if operand.is_result:
                        self._write(operand.value, ("step", at, operand.role))
            elif isinstance(step.attrs, ir.Reorder) and not step.post_ops:
                self._check_reorder(step)
                self._write(step.dst, self._of(step.operand("src")))
            else:
                raise Unlike(
                    f"step {step.name!r}: expected {_wanted(asked, at)}, got one of kind {step.kind}"
                )

    def _take(self, step: ir.Step, asked: ir.Step) -> None:
        attrs = step.attrs
        if isinstance(attrs, ir.Convolution) and isinstance(asked.attrs, ir.Convolution):
            attrs = replace(attrs, preferred=asked.attrs.preferred)
        operands = [(o.role, self._of(o.value)) for o in step.operands if not o.is_result]
        post_ops: list[Content] = []
        for post_op in step.post_ops:
            if isinstance(post_op, ir.BinaryPostOp):
                post_ops.append((post_op.algorithm, self._of(post_op.value)))
            elif isinstance(post_op, ir.SumPostOp):
                added = self.program.values[step.dst].alias_of
                post_ops.append((post_op, self._of(added) if added >= 0 else ()))
            else:
                post_ops.append((post_op,))
        results = [self.program.values[value] for value in step.results]
        self.steps.append(
            {
                "name": step.name,
                "attributes": attrs,
                "roles": [operand.role for operand in step.operands],
                "operands": operands,
                "post-ops": post_ops,
                "results": [(result.shape, result.dtype) for result in results],
                "scratchpad": step.scratchpad_offset,
            }
        )

    def _check_reorder(self, step: ir.Step) -> None:
        src, dst = (self.program.values[number] for number in (step.operand("src"), step.dst))
        _expect(f"reorder {step.name!r}", (src.shape, src.dtype), (dst.shape, dst.dtype))

    def _write(self, number: int, content: Content) -> None:
        """Note a result, at its place in the value that owns its bytes where it is not all of it."""
        self._results[number] = content
        anchor, place = number, []
        while self.program.values[anchor].alias_of >= 0:
            if not self._is_relabelled(anchor):
                place.append(self._view(anchor))
            anchor = self.program.values[anchor].alias_of
        owner = self.program.values[anchor]
        if owner.kind == "output":
            self.written[owner.index].append((place, content))
        if anchor != number and place:
            self._pieces.setdefault(anchor, []).append((place, content))
        elif anchor != number:
            self._results[anchor] = content

    def _of(self, number: int) -> Content:
        """Returns the meaning of ``number`` where it is read."""
        value = self.program.values[number]
        if number in self._results:
            return self._results[number]
        if value.alias_of >= 0:
            base = self._of(value.alias_of)
            return base if self._is_relabelled(number) else ("view", base, self._view(number))
        if number in self._pieces:
            return ("pieces", value.shape, value.dtype, value.layout, tuple(self._pieces[number]))
        if value.kind == "local":
            raise Unlike(f"value {value.name!r}: expected to be written before it is read, got no step")
        return (value.kind, value.index)

    def _is_relabelled(self, number: int) -> bool:
        """Whether an alias is all of what it views, the same bytes under another layout's name."""
        value, base = self.program.values[number], self.program.values[self.program.values[number].alias_of]
        same = (value.shape, value.dtype, value.alias_offset) == (base.shape, base.dtype, 0)
        layouts = (value.layout, base.layout)
        return same and (
            layouts[0] == layouts[1] or ("any" not in layouts and same_bytes(*layouts, value.shape))
        )

    def _view(self, number: int) -> Content:
        """Describes how an alias sees what it views: stored how, from where on, as what."""
        value, base = self.program.values[number], self.program.values[number].alias_of
        while (
            self.program.values[base].alias_of >= 0
            and base not in self._results
            and self._is_relabelled(base)
        ):
            base = self.program.values[base].alias_of
        seen = self.program.values[base]
        return (_order(seen), value.alias_offset, value.shape, value.dtype, _order(value))


def _order(value: ir.Value) -> str:
    """The plain layout's name where a value is stored in that order, else its own."""
    plain = "".join(chr(ord("a") + axis) for axis in range(len(value.shape)))
    if value.layout == "any":
        return "any"
    return plain if same_bytes(value.layout, plain, value.shape) else value.layout


def _is_the_same(step: ir.Step, asked: ir.Step) -> bool:
    return step.name == asked.name and type(step.attrs) is type(asked.attrs)


def _wanted(asked: ir.Program, at: int) -> str:
    names = chain((f"step {step.name!r} or a reorder" for step in asked.steps[at:]), ("reorders alone",))
    return next(names)
