"""Costs that algorithms are chosen by: weights from memory, and the margin for another algorithm."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, cast

import pytest
from costs_by_hand import rates

from tvm_mxplan.core.description import NOTHING_KNOWN
from tvm_mxplan.core.machine import MachineRates
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.passes.dispatch.choose_algorithms import ChooseAlgorithms, ColdCosts, margin_of

PROGRAM, STEP, LAYOUTS = cast("ir.Program", object()), cast("ir.Step", object()), ("abcd", "acdb")


@dataclass
class Warm:
    """Costs that are told, and what was asked."""

    us: float
    measured: bool = False
    known: bool = True
    machine: MachineRates = field(default_factory=rates)
    asked: list[tuple[Any, ...]] = field(default_factory=list)

    def __call__(self, *question: Any) -> float:
        self.asked.append(("cost", *question))
        return self.us

    def modelled(self, *question: Any) -> float:
        self.asked.append(("modelled", *question))
        return self.us

    def knows(self, *question: Any) -> bool:
        self.asked.append(("knows", *question))
        return self.known


@pytest.mark.parametrize(("us", "expected"), [(5.0, 10.0), (9.999, 10.0), (11.0, 11.0), (0.0, 10.0)])
@pytest.mark.parametrize("kind", ["cost", "modelled"])
def test_weights_are_read_from_memory_at_the_least(us: float, expected: float, kind: str) -> None:
    warm, info = Warm(us), replace(NOTHING_KNOWN, weights_bytes=400_000)  # 40 GB/s
    assert warm.machine.memory.read == 40.0 < warm.machine.levels[0].read
    cold = ColdCosts(warm)  # type: ignore[arg-type]
    answer = (
        cold(PROGRAM, STEP, LAYOUTS, info) if kind == "cost" else cold.modelled(PROGRAM, STEP, LAYOUTS, info)
    )
    assert answer == pytest.approx(expected)
    assert warm.asked == [(kind, PROGRAM, STEP, LAYOUTS, info)]


def test_without_weights_costs_are_as_they_are() -> None:
    assert ColdCosts(Warm(3.25))(PROGRAM, STEP, LAYOUTS, NOTHING_KNOWN) == 3.25  # type: ignore[arg-type]


@pytest.mark.parametrize("measured", [False, True])
@pytest.mark.parametrize("known", [False, True])
def test_what_is_known_of_them_is_the_sources(measured: bool, known: bool) -> None:
    warm = Warm(1.0, measured, known)
    cold = ColdCosts(warm)  # type: ignore[arg-type]
    assert (cold.measured, cold.knows(PROGRAM, STEP, LAYOUTS)) == (measured, known)
    assert cold.machine is warm.machine
    assert warm.asked == [("knows", PROGRAM, STEP, LAYOUTS)]


def test_measured_costs_are_trusted_further_than_a_models() -> None:
    assert margin_of(Warm(1.0, measured=False)) == 0.8  # type: ignore[arg-type]
    assert margin_of(Warm(1.0, measured=True)) == 0.97  # type: ignore[arg-type]


def test_what_the_pass_does_by_itself() -> None:
    from tvm_mxplan.byoc.onednn.backend import OneDNN

    step = ChooseAlgorithms(OneDNN())
    assert (step.rule, step.max_relative_error, step.cost.measured) == ("cost", 1e-4, False)
    given = ChooseAlgorithms(OneDNN(), "direct", 0.0, cast("Any", Warm(1.0, measured=True)))
    assert (given.rule, given.max_relative_error, given.cost.measured) == ("direct", 0.0, True)
