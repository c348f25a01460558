"""One case run by every implementation that the library has for it, in the layouts that we may choose.

Implementations are met one after the other: what has run is refused for the step (library.refuse), so that
the next best one is taken, as it would be for a user.  Errata do not count meanwhile.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from tvm_mxplan.byoc.arrays import tensor_of
from tvm_mxplan.byoc.onednn import library
from tvm_mxplan.byoc.onednn.costs.names import implementation_named
from tvm_mxplan.core.description import StepInfo
from tvm_mxplan.core.element_types import numpy_type
from tvm_mxplan.core.layout.layout import parse_layout, plain_layout
from tvm_mxplan.core.layout.layout_arrays import pack
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.errors import MxplanError
from tvm_mxplan.opcheck.compare import differ
from tvm_mxplan.opcheck.estimate import Array, Estimate, as_stored
from tvm_mxplan.opcheck.physical import read
from tvm_mxplan.passes.layout.candidates import Layouts, RulesOf, options_of

from . import numbers
from .buffers import Guarded
from .expected import Part, choose_part, expected
from .grammar import Problem
from .steps import chains
from .steps.subject import Subject, Tensor, broadcast
from .steps.subjects import subject

MOST_REFERENCE_WORK = 4_000_000
"""Multiplications that the library's own reference code may take: it is slow."""


@dataclass(frozen=True)
class Case:
    """A problem with post-ops; ``seed`` makes its numbers."""

    problem: Problem
    chain: chains.Chain
    seed: int

    def __str__(self) -> str:
        return f"{self.problem} : {chains.to_text(self.chain)}"


@dataclass(frozen=True)
class Outcome:
    """One implementation of one case in one choice of layouts; ``wrong`` is '' where it is right."""

    case: Case
    work: int
    layouts: Layouts
    implementation: str
    wrong: str


class Prepared:
    """A case with its numbers and its expected result, to be run in any layouts."""

    def __init__(self, case: Case, made: Subject) -> None:
        self.case, self.subject = case, made
        random = np.random.default_rng(case.seed)
        self.operands: list[tuple[Tensor, Array]] = [
            (tensor, numbers.fill(tensor, made.depth, random)) for tensor in made.tensors
        ]
        self.seconds: list[Array | None] = [self._second(link, random) for link in case.chain]
        self.part: Part = choose_part(made, random)
        by_role: dict[str, list[Array]] = {}
        for tensor, array in self.operands:
            by_role.setdefault(tensor.role, []).append(array)
        self.post_ops = [self._post_op(link, -1) for link in case.chain]
        self.estimates: dict[str, Estimate] = expected(made, self.post_ops, by_role, self.seconds, self.part)

    def _second(self, link: chains.Link, random: np.random.Generator) -> Array | None:
        if link.name == "sum":
            return numbers.second_operand("sum", self.subject.dst, random)
        if not link.second:
            return None
        made = numbers.second_operand(link.name, broadcast(self.subject.dst, link.second), random)
        return made if self._is_parameter(link, made) else made.astype(numpy_type(self.subject.added))

    def _is_parameter(self, link: chains.Link, array: Array) -> bool:
        """A vector behind a convolution is a constant, a whole tensor another branch's result."""
        return bool(link.second) and array.size < np.prod(self.subject.dst)

    @staticmethod
    def _post_op(link: chains.Link, value: int) -> ir.PostOp:
        if link.name == "sum":
            return ir.SumPostOp(1.0)
        return ir.BinaryPostOp(link.name, value) if link.second else link.eltwise()

    # --- the program ------------------------------------------------------------------------------------

    def program(self) -> tuple[ir.Program, list[Array]]:
        """The step alone in plain layouts, its result an output; and the numbers of its values.

        Values: the operands, then the second operands of binaries, then the result.  With a sum, the result
        is a view of an output that a reorder fills first.
        """
        values: list[ir.Value] = []
        data: list[Array] = []

        def add(kind: ir.ValueKind, array: Array, layout: str = "") -> int:
            index = sum(value.kind == kind for value in values)
            layout = layout or plain_layout(array.ndim)
            values.append(ir.Value(f"v{len(values)}", array.shape, array.dtype.name, kind, layout, index))
            data.append(array)
            return len(values) - 1

        operands = [
            ir.Operand(tensor.role, add("constant" if tensor.constant else "input", array, tensor.layout))
            for tensor, array in self.operands
        ]
        post_ops, added = [], -1
        for link, array in zip(self.case.chain, self.seconds, strict=True):
            value = -1
            if array is not None:
                value = add("constant" if self._is_parameter(link, array) else "input", array)
            added = value if link.name == "sum" else added
            post_ops.append(self._post_op(link, value))
        dst = len(values)
        shape = self.subject.dst
        values.append(ir.Value("dst", shape, self.subject.written, "output", plain_layout(len(shape)), 0))
        steps = []
        if added >= 0:
            values.append(replace(values[dst], name="sum", kind="local", index=-1, alias_of=dst))
            values.append(replace(values[dst], name="view", kind="local", index=-1, alias_of=dst + 1))
            held = (ir.Operand("src", added), ir.Operand("dst", dst + 1))
            steps.append(ir.Step("held", ir.Reorder(), held))
            dst += 2
        for number, (role, extents, dtype) in enumerate(self.subject.others, 1):
            operands.append(ir.Operand(role, len(values)))
            values.append(ir.Value(role, extents, dtype, "output", plain_layout(len(extents)), number))
        all_operands = (*operands, ir.Operand("dst", dst))
        step = ir.Step(
            "step", self.subject.attrs, all_operands, tuple(post_ops), library=self.subject.library
        )
        return ir.Program("case", tuple(values), (*steps, step)), data

    def layouts(self, rules: RulesOf) -> list[Layouts]:
        """Choices of layouts for the step's operands, then its post-ops'."""
        program, _ = self.program()
        if self.subject.layouts:
            return [self.subject.layouts]
        return options_of(program, program.steps[-1], rules(program.steps[-1]))

    def outcomes(
        self, layouts: Layouts, about: Callable[[str], None] = lambda _: None, matching: str = ""
    ) -> Iterator[Outcome]:
        """The case in these layouts by every implementation; ``about`` is told what is about to run.

        Implementations whose names the regular expression ``matching`` is not found in are passed over.
        """
        plain, data = self.program()
        program = _in_layouts(plain, layouts)
        named = self._named(program)
        try:
            while True:
                info = library.describe(program).steps[-1]
                if info.error:
                    break
                named.pop(info.implementation, None)
                yield from self._outcome(program, data, layouts, info, about, matching)
                if self.subject.library:  # which has one implementation of each kind
                    return
                library.refuse(info.descriptor, info.implementation, "has run")
            library.forget_refusals()
            for own in named.values():
                yield from self._outcome(own, data, layouts, library.describe(own).steps[-1], about, matching)
        finally:
            library.forget_refusals()

    @staticmethod
    def _named(program: ir.Program) -> dict[str, ir.Program]:
        """The program for each alternative, preferred: the runtime's own run where plans name them."""
        *others, step = program.steps
        if not isinstance(step.attrs, ir.Convolution):
            return {}
        return {
            name: replace(program, steps=(*others, replace(step, attrs=replace(step.attrs, preferred=name))))
            for name in library.describe(program).steps[-1].alternatives
        }

    def _outcome(
        self,
        program: ir.Program,
        data: Sequence[Array],
        layouts: Layouts,
        info: StepInfo,
        about: Callable[[str], None],
        matching: str,
    ) -> Iterator[Outcome]:
        """The implementation that the library takes now, if it is asked for and not slow beyond measure."""
        small = self.subject.work <= MOST_REFERENCE_WORK
        known = re.search(matching, info.implementation)
        if known and (small or not implementation_named(info.implementation).is_reference):
            about(f"{self.case} : {','.join(layouts)} : {info.implementation}")
            wrong = self._run(program, data, info)
            yield Outcome(self.case, self.subject.work, layouts, info.implementation, wrong)

    def _run(self, program: ir.Program, data: Sequence[Array], info: StepInfo) -> str:
        """Describes the error of the implementation that the library takes now, '' if there is none."""
        constants, given, results = [], [], []
        for value in program.values:
            if value.kind == "output":
                layout = parse_layout(value.layout)
                results.append(
                    (Guarded(layout.physical_shape(value.shape), value.dtype, written=True), value)
                )
        for array, value in zip(data, program.values, strict=False):
            stored = pack(array, parse_layout(value.layout))
            if value.kind == "constant":
                constants.append(stored)
                continue
            buffer = Guarded(stored.shape, value.dtype, written=False)
            buffer.array[...] = stored
            given.append((buffer, stored, value))
        try:
            module = library.create_module("case", program, list(map(tensor_of, constants)))
            module["case"](*(buffer.tensor for buffer, *_ in (*given, *results)))
        except MxplanError as error:
            return f"fails: {error}"
        runs = library.stats(module)["specializations"][0]["steps"][-1]["implementation"]
        if runs != info.implementation:
            return f"runs {runs} where {info.implementation} was described"
        for buffer, array, value in given:
            if trespass := buffer.trespassed():
                return f"operand {value.name}: {trespass}"
            if not np.array_equal(_bits(buffer.array), _bits(array)):
                return f"operand {value.name} was written to"
        return next(filter(None, (self._judge(*result) for result in results)), "")

    def _judge(self, result: Guarded, output: ir.Value) -> str:
        """Describes the error of one result, '' if there is none."""
        if trespass := result.trespassed():
            return trespass
        tensor = read(result.bytes, output)
        actual = self.part.of(tensor.logical) if output.name == "dst" else tensor.logical
        estimate = self.estimates[output.name]
        if not _is_close(actual, estimate):
            finding, _ = differ(output.name, actual, estimate)
            if finding:
                return str(finding)
        # Minus zero will do: oneDNN's reference code takes abs(0) for it.
        dirty = np.count_nonzero(result.array) - np.count_nonzero(tensor.logical)
        return f"{dirty} numbers of the padding are not zero" if dirty else ""


def _bits(array: Array) -> Array:
    return array.view(f"u{array.dtype.itemsize}")


def _is_close(actual: Array, estimate: Estimate) -> bool:
    """True if every number is surely right; ``differ`` knows the rest of the rules."""
    with np.errstate(all="ignore"):
        if not np.any(estimate.error):
            return np.array_equal(actual, as_stored(estimate.value, actual.dtype))
        return bool((np.abs(actual.astype(np.float64) - estimate.value) <= estimate.error).all())


def prepare(case: Case) -> Prepared | None:
    """The case with its numbers; None where the problem makes no sense or post-ops do not fit it."""
    made = subject(case.problem)
    return Prepared(case, made) if made else None


def _in_layouts(program: ir.Program, layouts: Layouts) -> ir.Program:
    """The program with its last step's operands, then its post-ops', in ``layouts``."""
    step = program.steps[-1]
    ids = [operand.value for operand in step.operands]
    ids += [post_op.value for post_op in step.post_ops if isinstance(post_op, ir.BinaryPostOp)]
    values = list(program.values)
    for value, layout in zip(ids, layouts, strict=True):
        values[value] = replace(values[value], layout=layout)
    dst = values[step.dst].layout
    for i, value in enumerate(values):
        if i == program.of_kind("output")[0] or value.alias_of >= 0:
            values[i] = replace(value, layout=dst)
    return replace(program, values=tuple(values))
