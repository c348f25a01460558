"""The choice of types for a whole region: proposals and costs become an assignment problem.

    every step      the types that the library has fast code for, with their costs
    every input     given as declared, in float32; every output wants float32
    every value     is cast into the other type where someone wants it, at the cost of a cast

Each option and cast also says what it spends of a budget of errors (``rounding``), which may be shared with
other regions.

Views share the type of what they view.  A cast stands where it is cheapest over the whole region: behind a
convolution that makes an image smaller, or nowhere, where a product writes the type that its reader wants.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from tvm_mxplan.core.assignment import Assignment, AssignmentProblem, Form, Option, assignment_spending
from tvm_mxplan.core.layout.layout import plain_layout
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.core.program.operands import operands_of, reorder
from tvm_mxplan.errors import UnsupportedError

from ..costs.source import StepCost
from ..layout.candidates import RulesOf, options_of
from ..layout.queries import StepQueries, single_step_program
from .large_numbers import large_values
from .rounding import filters_of, rounding, spent_by
from .step_types import FLOAT, StepTypes, in_types, is_open, operand_type, proposals_in

_DEARER = "costs no more in f32, with the casts around it"
_SPENT = "max_relative_error does not reach for it"


@dataclass(frozen=True)
class TypeChoice:
    """The types chosen for a program.

    Attributes
    ----------
    types : of each step.
    kept : why steps stay in float32 that could have been proposed another type, by their names.
    cost_us, float32_us : estimates, casts included, of the choice and of float32 throughout.
    spent : the square of the relative error that its roundings make.
    """

    types: tuple[StepTypes, ...]
    kept: Mapping[str, str]
    cost_us: float
    float32_us: float
    spent: float = 0.0


class Wish(NamedTuple):
    """The type that a step is to read, and why; one that is ``demanded`` has to be had."""

    dtype: str
    demanded: bool = True
    reason: str = "option precision_for"


@dataclass(frozen=True)
class _Offer:
    types: StepTypes
    cost: float
    error: float = 0.0  # of the algorithm that costs so much


@dataclass
class TypeChooser:
    """Types of every step with the least cost over the whole region; see the module's text.

    Parameters
    ----------
    program : with shapes of numbers, all layouts plain.
    short : the type that is wanted beside float32.
    fixed : what a user asks for steps, by name.
    narrows : whether a constant, by its value, may be stored in ``short``.
    is_large : whether a finite number is infinite in ``short``.
    rounded : the square of the relative error of a constant, by its value, that is stored in ``short``.
    others : costs and errors of other algorithms for a step alone, in the types that it has.
    """

    program: ir.Program
    queries: StepQueries
    cost: StepCost
    rules: RulesOf
    short: str
    fixed: Mapping[str, Wish]
    narrows: Callable[[int], bool]
    is_large: Callable[[float], bool] = lambda _: False
    rounded: Callable[[int], float] = lambda _: 0.0
    others: Callable[[ir.Program], Iterable[tuple[float, float]]] = lambda _: ()

    def __post_init__(self) -> None:
        self._writers = Counter(
            self.program.root(result) for step in self.program.steps for result in step.results
        )
        self._typed = self._typed_roots()
        self._large = large_values(self.program, self.is_large, self.narrows)
        self._known: dict[ir.Program, tuple[list[_Offer], str]] = {}

    def problem(self) -> AssignmentProblem:
        """The problem to solve; UnsupportedError where a step has to have a type that the library lacks."""
        self._found = [self._offers(step) for step in self.program.steps]
        steps = [
            tuple(self._option(step, offer) for offer in offers)
            for step, (offers, _) in zip(self.program.steps, self._found, strict=True)
        ]
        casts = self._casts(steps)
        one = rounding(self.short)
        spending = {form: one for form in casts if form[1] == self.short}
        return AssignmentProblem((*steps, *self._fixed()), casts, spending)

    @property
    def reserved(self) -> float:
        """The errors, all together, of algorithms by which steps of ``problem`` are weighed."""
        return sum(max(offer.error for offer in offers) for offers, _ in self._found)

    def chosen(
        self, problem: AssignmentProblem, found: Assignment, unbounded: Assignment | None = None
    ) -> TypeChoice:
        """The choice that ``found`` stands for, which solves the ``problem`` that was given last.

        Parameters
        ----------
        unbounded : the choice where no budget bounds it.
        """
        types, kept, float_us = [], {}, 0.0
        for at, (step, (offers, reason)) in enumerate(zip(self.program.steps, self._found, strict=True)):
            types.append(offers[found.choices[at]].types)
            float_us += offers[0].cost
            if types[-1].is_float and reason != _NOTHING:
                bounded = unbounded is not None and not offers[unbounded.choices[at]].types.is_float
                kept[step.name] = reason or (_SPENT if bounded else _DEARER)
        spent = assignment_spending(problem, found.choices)
        return TypeChoice(tuple(types), kept, found.cost, float_us, spent)

    def _offers(self, step: ir.Step) -> tuple[list[_Offer], str]:
        """The offers to choose from, and why it is float32 alone, '' where it is not."""
        real = [(role, number) for role, number in operands_of(step) if self._is_real(number)]
        touched = {self.program.root(number) for _, number in real}
        filters = [number for role, number in real if role.endswith("weights")]
        wish = self.fixed.get(step.name)
        if not is_open(self.program, step):
            offers, reason = [_Offer(StepTypes(), 0.0)], _NOTHING
        else:
            offers, reason = self._known_offers(step)
        if len(offers) == 1:
            pass  # nothing to choose from; the reason is told
        elif not all(self._typed.get(root, True) for root in touched):
            offers, reason = offers[:1], "its bytes are another value's too"
        elif not all(self.narrows(self.program.root(number)) for number in filters):
            offers, reason = offers[:1], f"its weights are beyond {self.short}"
        else:
            fitting = [offer for offer in offers if self._holds(step, offer.types)]
            if len(fitting) == 1:
                reason = f"its numbers may be beyond {self.short}"
            offers = fitting
        if wish is None:
            return offers, reason
        if wish.dtype == FLOAT:
            return offers[:1], wish.reason
        short = [offer for offer in offers if offer.types.read == wish.dtype]
        if not short and wish.demanded:
            raise UnsupportedError(f"{step.name}: {reason}")
        return short or offers, reason

    def _holds(self, step: ir.Step, types: StepTypes) -> bool:
        """Whether numbers that may be large are in float32 wherever the step reads and writes them."""
        return all(
            operand_type(role, self._is_constant(number), types) == FLOAT
            for role, number in operands_of(step)
            if self.program.root(number) in self._large and self.program.values[number].dtype == FLOAT
        )

    def _is_real(self, number: int) -> bool:
        return self.program.values[number].dtype == FLOAT

    def _is_constant(self, number: int) -> bool:
        return self.program.values[self.program.root(number)].kind == "constant"

    def _known_offers(self, step: ir.Step) -> tuple[list[_Offer], str]:
        """Proposals with fast code; equal steps of a program are asked about once."""
        own = tuple(self.program.values[number].layout for _, number in operands_of(step))
        alone = single_step_program(self.program, step, own)
        if alone not in self._known:
            self._known[alone] = self._asked(alone)
        return self._known[alone]

    def _asked(self, alone: ir.Program) -> tuple[list[_Offer], str]:
        offers: list[_Offer] = []
        reason = ""
        for types in proposals_in(alone, alone.steps[0], self.short):
            typed = in_types(alone, types)
            found = None if typed is None else self._cost(typed)
            if types.is_float:
                own = found if isinstance(found, float) else 0.0
                offers.append(_Offer(types, *min([(own, 0.0), *self.others(alone)])))
            elif typed is not None and isinstance(found, float):
                offers.append(_Offer(types, *min([(found, 0.0), *self.others(typed)])))
            else:
                reason = reason or str(found or "it reads one value in two types")
        return offers, "" if len(offers) > 1 else reason or "no other type is proposed for its kind"

    def _cost(self, typed: ir.Program) -> float | str:
        """Microseconds in the first layouts that the library has fast code for, or why there are none."""
        (step,) = typed.steps
        reason = ""
        for layouts in options_of(typed, step, self.rules(step)):
            info = self.queries.ask(typed, step, layouts)
            if info.error or info.is_reference:
                error = info.error.removeprefix(f"{step.kind} : ")
                reason = reason or error or "the library has nothing but reference code"
                continue
            return float(self.cost(typed, step, layouts, info))
        return reason

    # --- the assignment problem -------------------------------------------------------------------------

    def _option(self, step: ir.Step, offer: _Offer) -> Option:
        wants = [
            (self.program.root(number), operand_type(role, False, offer.types))
            for role, number in operands_of(step)
            if role not in ir.RESULT_ROLES and self._has_form(number)
        ]
        gives = [
            (self.program.root(result), offer.types.written)
            for result in step.results
            if self._has_form(result)
        ]
        filters = sum(self.rounded(root) for root in filters_of(self.program, step, offer.types))
        spends = spent_by(step, offer.types, filters)
        return Option(offer.cost, tuple(dict.fromkeys(wants)), tuple(gives), spends)

    def _has_form(self, number: int) -> bool:
        root = self.program.values[self.program.root(number)]
        return root.kind != "constant" and root.dtype == FLOAT

    def _fixed(self) -> Iterator[tuple[Option, ...]]:
        for number, value in enumerate(self.program.values):
            if value.kind == "input" and self._has_form(number):
                yield (Option(0.0, (), ((number, FLOAT),)),)
            elif value.kind == "output" and self._writers[number] and self._has_form(number):
                yield (Option(0.0, ((number, FLOAT),), ()),)

    def _casts(self, steps: list[tuple[Option, ...]]) -> dict[Form, float]:
        wanted = {form for options in steps for option in options for form in option.wants}
        wanted |= {(number, FLOAT) for number in self.program.of_kind("output")}
        return {form: self._cast_cost(*form) for form in sorted(wanted) if self._typed.get(form[0], True)}

    def _cast_cost(self, root: int, dtype: str) -> float:
        value = self.program.values[root]
        layout = plain_layout(len(value.shape))
        source = self.short if dtype == FLOAT else FLOAT
        values = (
            ir.Value("", value.shape, source, "input", layout, 0),
            ir.Value("", value.shape, dtype, "local", layout),
        )
        step = reorder("", 0, 1)
        program = ir.Program("", values, (step,))
        info = self.queries.ask(program, step, (layout, layout))
        return float(self.cost(program, step, (layout, layout), info))

    def _typed_roots(self) -> dict[int, bool]:
        """For values that own bytes and are viewed or written: whether all of it may change its type.

        Where several steps write pieces of one value, or a view begins inside, it stays as it is.
        """
        found: dict[int, bool] = {}
        for number, value in enumerate(self.program.values):
            root = self.program.root(number)
            plain = value.dtype == FLOAT and value.alias_offset == 0
            found[root] = found.get(root, self._writers[root] < 2) and plain
        return found


_NOTHING = "no floating numbers"
