"""``AssignPrecision``: in which element types the steps of every region compute, and where casts stand.

Before   programs in float32, plain layouts
After    steps that read bfloat16 where that is wanted and costs less; filters in it; casts where types meet

The region's body stays in float32: it says what the program computes, not how exactly.  What a region takes
and returns keeps its type.  The decision is made in ``choose_types``, symbolic shapes at typical numbers; a
library that does not compute in the type on this machine keeps everything in float32, with the reason.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import tvm
from tvm import relax

from tvm_mxplan.byoc.backend import Backend
from tvm_mxplan.core.decisions.journal import Journal
from tvm_mxplan.core.decisions.precision import AS_STATED, ELEMENT_TYPES, Precision, PrecisionDecision
from tvm_mxplan.core.element_types import numpy_type
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.core.program.specialize import typical
from tvm_mxplan.errors import InvalidInputError, UnsupportedError

from ..costs.model import cost_or_model
from ..costs.source import CostSource
from ..layout.queries import StepQueries
from ..origins import origin_table
from ..region.attached import attach, carries_program, constants_of, fused_of, program_of, regions
from .apply_types import Constant, apply_types
from .choose_types import TypeChoice, TypeChooser, Wish
from .split_pairs import parts_of, split_pairs
from .step_types import FLOAT, computes

_SHORT = ELEMENT_TYPES["bf16"]


@dataclass(frozen=True)
class PrecisionWish:
    """A user's wish for element types.

    Attributes
    ----------
    precision : of all operators; ``AS_STATED`` for what the model states of each.
    operators : of operators by their names, or of all of a kind; a name comes first.
    """

    precision: str = "f32"
    operators: Mapping[str, Precision] = field(default_factory=dict)

    def is_float(self, stated: Collection[str]) -> bool:
        """True if nothing is wanted but float32; ``stated`` are operators whose type the model states."""
        general = {"bf16"} if self.precision == AS_STATED and stated else {self.precision}
        return {*general, *self.operators.values()} <= {"f32", AS_STATED}

    def of(self, words: list[str]) -> Precision | None:
        """The precision under the first of these words that the wish names; None where it names none."""
        return next((self.operators[word] for word in words if word in self.operators), None)


@tvm.transform.module_pass(opt_level=0, name="AssignPrecision")
class AssignPrecision:
    """Module pass; see the module's text.

    Parameters
    ----------
    backend : whose regions to decide on.
    wish : what is wanted.
    cost : what steps cost in given layouts and types; None for the library's model.
    journal : is told what was decided.
    """

    def __init__(
        self,
        backend: Backend,
        wish: PrecisionWish,
        cost: CostSource | None = None,
        journal: Journal | None = None,
    ) -> None:
        self.backend = backend
        self.wish = wish
        self.cost = cost_or_model(cost, backend)
        self.journal = Journal() if journal is None else journal

    def transform_module(self, mod: tvm.IRModule, _ctx: tvm.transform.PassContext) -> tvm.IRModule:
        stated = {
            name
            for name, origins in origin_table(mod).items()
            if any(origin.computes == _SHORT for origin in origins)
        }
        if self.wish.is_float(stated):
            return mod
        self._check_names(mod)
        why_not = self.backend.lacks(_SHORT)
        mod = mod.clone()
        for gvar, function in list(regions(mod, self.backend.name)):
            if why_not:
                decision = PrecisionDecision(self.wish.precision, why_not=why_not)
            else:
                function, decision = self._assign(function, stated)
                mod.update_func(gvar, function)
            self.journal.assign_precision(program_of(function).name, decision)
        return mod

    def _assign(
        self, function: relax.Function, stated: Collection[str]
    ) -> tuple[relax.Function, PrecisionDecision]:
        constants = constants_of(function)
        arrays = [np.from_dlpack(constant) for constant in constants]
        inside: dict[str, list[str]] = {}
        for name, into in fused_of(function).items():
            inside.setdefault(into, []).append(name)
        program, choice = self._choose(program_of(function), _Names(inside, stated), arrays)
        typed = apply_types(program, choice.types)
        stored = [_stored(one, constants, arrays) for one in typed.constants]
        function = attach(function, typed.program, stored)
        counts = Counter(types.read for types in choice.types)
        decision = PrecisionDecision(
            self.wish.precision,
            {dtype: counts[dtype] for dtype in (_SHORT, FLOAT) if counts[dtype]},
            typed.casts,
            round(choice.cost_us, 2),
            round(choice.float32_us, 2),
            choice.kept,
        )
        return function, decision

    def _choose(
        self, whole: ir.Program, names: _Names, arrays: list[np.ndarray]
    ) -> tuple[ir.Program, TypeChoice]:
        """Types for the program with its pairs of convolutions taken apart, as far as that is of use."""
        pairs = [step.name for step in whole.steps if step.has_depthwise]
        kept: set[str] = set()
        while True:
            program = split_pairs(whole, kept)
            ranges, fixed = _Ranges(program, arrays), self._fixed(program, names)
            queries = StepQueries(self.backend)
            chooser = TypeChooser(
                typical(program),
                queries,
                self.cost,
                self.backend.layout_rules,
                _SHORT,
                fixed,
                ranges.are_finite,
                is_beyond,
            )
            try:
                choice = chooser.choose()
            except UnsupportedError as error:
                raise InvalidInputError(f"option precision_for: {error}") from None
            types = {step.name: chosen for step, chosen in zip(program.steps, choice.types, strict=True)}
            float_pairs = {
                name
                for name in pairs
                if name not in kept and all(types[part].is_float for part in parts_of(name))
            }
            if not float_pairs:
                return program, choice
            kept |= float_pairs

    def _fixed(self, program: ir.Program, names: _Names) -> dict[str, Wish]:
        """Steps, by name, whose type is not open: what is asked of them, or not wanted of the others."""
        found = {}
        for step in program.steps:
            operators = names.of(step)
            kind = step.name.partition(".")[0].rpartition("_")[0]
            by_name, by_kind = self.wish.of(operators), self.wish.of([kind, step.kind])
            said = by_name or by_kind
            if said is not None:
                found[step.name] = Wish(ELEMENT_TYPES[said], demanded=by_name is not None)
            elif self.wish.precision == "f32":
                found[step.name] = Wish(FLOAT)
            elif self.wish.precision == AS_STATED and computes(step) and not names.are_stated(operators):
                found[step.name] = Wish(FLOAT, reason="the model states f32")
        return found

    def _check_names(self, mod: tvm.IRModule) -> None:
        """InvalidInputError where an operator that no library runs is to compute in another type."""
        carrying = [f for f in mod.functions.values() if carries_program(f)]
        steps = {step.name.partition(".")[0] for f in carrying for step in program_of(f).steps}
        steps |= {name for f in carrying for name in fused_of(f)}
        for name, precision in self.wish.operators.items():
            if precision != "f32" and name.rpartition("_")[2].isdecimal() and name not in steps:
                raise InvalidInputError(
                    f"option precision_for: {name}={precision}, but {name} is in no library's region: "
                    "TVM computes it in f32; the report says why"
                )


@dataclass(frozen=True)
class _Names:
    """The operators of steps, by their names.

    Attributes
    ----------
    inside : those that are computed in another one's step, by that one.
    stated : those that the model states to compute in the shorter type.
    """

    inside: Mapping[str, Sequence[str]]
    stated: Collection[str]

    def of(self, step: ir.Step) -> list[str]:
        """The step's own name, its operator's and those of the operators inside it."""
        return [step.name, step.name.partition(".")[0], *self.inside.get(step.name, ())]

    def are_stated(self, names: Sequence[str]) -> bool:
        """Whether the model states the shorter type of one of them."""
        return any(name in self.stated for name in names)


class _Ranges:
    """Says of constants whether they keep finite numbers where they are stored in the shorter type."""

    def __init__(self, program: ir.Program, arrays: list[np.ndarray]) -> None:
        self._program, self._arrays = program, arrays
        self._known: dict[int, bool] = {}

    def are_finite(self, root: int) -> bool:
        """True for what is no constant, too."""
        value = self._program.values[root]
        if value.kind != "constant" or value.dtype != FLOAT:
            return True
        if value.index not in self._known:
            array = self._arrays[value.index]
            largest = max(abs(float(array.max(initial=0.0))), abs(float(array.min(initial=0.0))))
            self._known[value.index] = not is_beyond(largest)
        return self._known[value.index]


def is_beyond(number: float) -> bool:
    """Whether a finite number is infinite in the shorter type."""
    return bool(np.isfinite(number)) and not np.isfinite(float(np.asarray(number, numpy_type(_SHORT))))


def _stored(
    constant: Constant, tensors: list[tvm.runtime.Tensor], arrays: list[np.ndarray]
) -> np.ndarray | tvm.runtime.Tensor:
    """A constant in the type that it is wanted in; each number is rounded once."""
    index, dtype = constant
    if str(tensors[index].dtype) == dtype:
        return tensors[index]
    return arrays[index].astype(numpy_type(dtype))
