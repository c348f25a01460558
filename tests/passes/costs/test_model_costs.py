"""``ModelCost``: a backend's model, asked about steps, conversions and copies at one machine's rates."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from agreeable_backend import Agreeable
from costs_by_hand import rates

from tvm_mxplan.core.description import Implementation, StepInfo
from tvm_mxplan.core.machine import MachineRates, default_rates
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.core.step_facts import StepFacts
from tvm_mxplan.passes.costs.model import ModelCost, cost_or_model, planned_step_us, region_us

MACHINE = rates(gbytes=17.0)
IMAGE = (1, 17, 5, 7)
VALUES = (
    ir.Value("x", IMAGE, "bfloat16", "input", "abcd", 0),
    ir.Value("a", IMAGE, "bfloat16", "local", "aBcd16b"),
    ir.Value("y", IMAGE, "bfloat16", "output", "abcd", 0),
)
FIRST, SECOND = (
    ir.Step(f"s{at}", ir.Reorder(), (ir.Operand("src", at), ir.Operand("dst", at + 1)), (), implementation)
    for at, implementation in enumerate(("jit:wide", ""))
)
PROGRAM = ir.Program("p", VALUES, (FIRST, SECOND))


class Noting(Agreeable):
    """Notes what it is asked; every step costs 100 microseconds more than the one before."""

    def __init__(self) -> None:
        self.asked: list[tuple[StepFacts, MachineRates]] = []

    def implementation(self, name: str) -> Implementation:
        return Implementation(name, f"{name} family", "wide", False)

    def cost(self, facts: StepFacts, machine: MachineRates) -> float:
        self.asked.append((facts, machine))
        return 100.0 * len(self.asked)


@pytest.fixture
def backend() -> Noting:
    return Noting()


def test_steps_and_copies_are_asked_as_they_are(backend: Any) -> None:
    cost, info, layouts = ModelCost(backend, MACHINE), StepInfo("jit", 64, 8, ""), ("acdb", "abcd")
    assert cost(PROGRAM, FIRST, layouts, info) == 100.0
    assert cost.modelled(PROGRAM, FIRST, layouts, info) == 200.0
    assert cost.copies(PROGRAM, SECOND, layouts) == 300.0
    (first, machine), (again, _), (copied, _) = backend.asked
    assert first == again == StepFacts(PROGRAM, FIRST, layouts, info)
    assert machine is MACHINE
    assert copied == StepFacts(PROGRAM, SECOND, layouts)
    assert not cost.knows(PROGRAM, FIRST, layouts) and not cost.measured


@pytest.mark.parametrize(("sources", "first"), [(("aBcd16b", "abcd"), "aBcd16b"), ((), "abcd")])
def test_a_conversion_is_from_the_likeliest_layout_or_the_plain_one(
    backend: Any, sources: tuple[str, ...], first: str
) -> None:
    assert ModelCost(backend, MACHINE).reorder(PROGRAM, 1, "acdb", sources, None) == 100.0
    ((facts, machine),) = backend.asked
    assert (facts.layouts, facts.shape("src"), facts.dtype("src")) == ((first, "acdb"), IMAGE, "bfloat16")
    assert machine is MACHINE


def test_a_model_where_there_is_no_other_source(backend: Any) -> None:
    given = ModelCost(backend, MACHINE)
    assert cost_or_model(given, Noting()) is given  # type: ignore[arg-type]
    assert cost_or_model(None, backend) == ModelCost(backend, default_rates())


def test_a_region_takes_what_its_steps_take(backend: Any) -> None:
    """In the layouts and the implementation of the plan; what stands in place takes nothing."""
    assert planned_step_us(PROGRAM, SECOND, backend, MACHINE) == 0.0
    assert backend.asked == []
    again = replace(PROGRAM, steps=(FIRST, SECOND, FIRST))
    assert region_us(again, backend, MACHINE) == 300.0
    (facts, machine), (other, _) = backend.asked
    assert facts == other and machine is MACHINE
    assert (facts.layouts, facts.info.implementation) == (("abcd", "aBcd16b"), "jit:wide")
    assert (facts.info.family, facts.info.instruction_set) == ("jit:wide family", "wide")
    assert (facts.info.scratchpad_bytes, facts.info.weights_bytes) == (0, 0)
