"""The words by which users ask for element types, and the steps that they stand for."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from tvm_mxplan.core.decisions.precision import AS_STATED, AUTO, ELEMENT_TYPES, HALF, Precision
from tvm_mxplan.core.policies import Rule
from tvm_mxplan.core.program import program as ir

from .choose_types import Wish
from .step_types import FLOAT, computes


@dataclass(frozen=True)
class PrecisionWish:
    """A user's wish for element types.

    Attributes
    ----------
    precision : of all operators; ``AS_STATED`` for what the model states of each, ``AUTO`` for what costs
        least within ``max_relative_error``; ``HALF`` is float32.
    operators : of operators by their names, or of all of a kind; a name comes first.
    max_relative_error : what roundings and algorithms together may add to the error of the results; bounds
        nothing but ``AUTO``.
    rule : how algorithms of convolutions are going to be chosen, in float32.
    """

    precision: str = "f32"
    operators: Mapping[str, Precision] = field(default_factory=dict)
    max_relative_error: float = 0.0
    rule: Rule = "direct"

    @property
    def is_bounded(self) -> bool:
        """Whether the errors of roundings are bounded."""
        return self.precision == AUTO

    def is_float(self, stated: Collection[str]) -> bool:
        """True if nothing is wanted but float32; ``stated`` are operators whose type the model states."""
        general = {"bf16"} if self.precision == AS_STATED and stated else {self.precision}
        return {*general, *self.operators.values()} <= {"f32", AS_STATED, HALF}

    def of(self, words: list[str]) -> Precision | None:
        """The precision under the first of these words that the wish names; None where it names none."""
        return next((self.operators[word] for word in words if word in self.operators), None)


@dataclass(frozen=True)
class Names:
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


def fixed_types(program: ir.Program, wish: PrecisionWish, names: Names) -> dict[str, Wish]:
    """Steps, by name, whose type is not open: what is asked of them, or not wanted of the others."""
    found = {}
    for step in program.steps:
        operators = names.of(step)
        kind = step.name.partition(".")[0].rpartition("_")[0]
        by_name, by_kind = wish.of(operators), wish.of([kind, step.kind])
        said = by_name or by_kind
        if said is not None:
            found[step.name] = Wish(ELEMENT_TYPES[said], demanded=by_name is not None)
        elif wish.precision in ("f32", HALF):
            found[step.name] = Wish(FLOAT)
        elif wish.precision == AS_STATED and computes(step) and not names.are_stated(operators):
            found[step.name] = Wish(FLOAT, reason="the model states f32")
    return found
