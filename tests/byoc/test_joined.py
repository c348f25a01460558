"""Libraries that share regions: who leads, and how values get from one's layouts into another's."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest

from tvm_mxplan import UnsupportedError
from tvm_mxplan.byoc.backend import Sharing
from tvm_mxplan.byoc.joined import Joined, joined, leaders
from tvm_mxplan.core.description import Description, Implementation, StepInfo
from tvm_mxplan.core.machine import default_rates
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.core.program.dims import Symbol


@dataclass
class Library:
    """One that converts between some layouts; the runtime that it stands for asks by the step's library."""

    library: str
    shares: Sharing | None
    pairs: dict[str, set[tuple[str, str]]] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return f"mxplan_{self.library}"

    def describe(self, program: ir.Program) -> Description:
        (step,) = program.steps
        pair = program.values[0].layout, program.values[1].layout
        error = "" if pair in self.pairs[step.library] else "no such layouts"
        return Description((StepInfo("code", 0, 0, error),), ())

    def implementation(self, name: str) -> Implementation:
        return Implementation(name, self.library)

    def cost(self, facts: Any, machine: Any) -> float:
        return len(self.library)


def sharing(runtime: str, leads: bool) -> Sharing:
    return Sharing(runtime, leads, {})


LEADER = Library(
    "leader",
    sharing("r", True),
    {"": {("acdb", "abcd"), ("abcd", "acdb")}, "guest": {("abcd", "aBcd5b"), ("aBcd5b", "abcd")}},
)
GUEST = Library("guest", sharing("r", False))
STRANGER = Library("stranger", sharing("other", False))
ALONE = Library("alone", None)


def value(layout: str, dim: Any = 2) -> ir.Value:
    return ir.Value("v", (dim, 17, 5, 7), "float32", "local", layout)


def test_who_leads() -> None:
    libraries: list[Any] = [GUEST, ALONE, LEADER, STRANGER]
    assert leaders(libraries) == {"mxplan_guest": "mxplan_leader"}
    found = joined(libraries)
    assert [one.name for one in found] == [one.name for one in libraries]
    assert [isinstance(one, Joined) for one in found] == [False, False, True, False]
    assert leaders([GUEST, ALONE]) == {} and joined([LEADER, ALONE]) == [LEADER, ALONE]  # type: ignore[list-item]


def test_a_conversion_is_of_the_first_library_that_has_it() -> None:
    both = Joined(LEADER, (GUEST,))  # type: ignore[arg-type]
    assert both.hops(value("acdb"), "abcd") == (("", "abcd"),)
    assert both.hops(value("abcd"), "aBcd5b") == (("guest", "aBcd5b"),)
    assert both.shares.hops(value("abcd"), "aBcd5b") == (("guest", "aBcd5b"),)


def test_two_hops_where_nobody_has_it_in_one() -> None:
    both = Joined(LEADER, (GUEST,))  # type: ignore[arg-type]
    assert both.hops(value("acdb"), "aBcd5b") == (("", "abcd"), ("guest", "aBcd5b"))
    assert both.hops(value("aBcd5b", Symbol("n")), "acdb") == (
        ("guest", "abcd"),
        ("", "acdb"),
    )
    with pytest.raises(UnsupportedError, match="v: no library converts acdb into aBcd7b"):
        both.hops(value("acdb"), "aBcd7b")


def test_names_and_costs_are_of_whom_they_are() -> None:
    both = Joined(LEADER, (GUEST,))  # type: ignore[arg-type]
    assert both.implementation("guest:avx2").family == "guest"
    assert both.implementation("brgconv:avx2").family == "leader"
    assert both.library == "leader"


@dataclass
class Chooser(Library):
    """One that has code for softmax, and for sums of float32 alone where a guest is asked."""

    def describe(self, program: ir.Program) -> Description:
        def has(step: ir.Step) -> bool:
            return not step.library or program.values[step.operand("src")].dtype == "float32"

        return Description(
            tuple(StepInfo("", 0, 0, "" if has(step) else "no code") for step in program.steps), ()
        )


def test_a_guest_gets_the_steps_that_it_runs_faster(monkeypatch: pytest.MonkeyPatch) -> None:
    values = tuple(
        ir.Value(f"v{at}", (2, 3), dtype, kind, "ab")
        for at, (dtype, kind) in enumerate(
            (("float32", "input"), ("float32", "local"), ("bfloat16", "input"), ("bfloat16", "local"))
        )
    )

    def step(name: str, attrs: ir.Attributes, src: int, dst: int) -> ir.Step:
        return ir.Step(name, attrs, (ir.Operand("src", src), ir.Operand("dst", dst)))

    total = ir.Reduction("sum")
    steps = (step("a", total, 0, 1), step("b", ir.Softmax("softmax", 1), 0, 1), step("c", total, 2, 3))
    program = ir.Program("p", values, steps)
    monkeypatch.setattr("tvm_mxplan.byoc.joined.translate_region", lambda *_: (program, []))

    def largest(_program: ir.Program, step: ir.Step) -> ir.Attributes | None:
        return ir.Reduction("max") if isinstance(step.attrs, ir.Reduction) else None

    guest = Chooser("guest", sharing("r", False)._replace(takes_over=largest))
    both = Joined(Chooser("leader", sharing("r", True)), (guest,))  # type: ignore[arg-type]
    found = both.translate(None, "p", default_rates()).program  # type: ignore[arg-type]
    assert [one.library for one in found.steps] == ["guest", "", ""]
    assert [one.attrs for one in found.steps] == [ir.Reduction("max"), steps[1].attrs, total]
    neither = Joined(Chooser("leader", sharing("r", True)), (Chooser("guest", sharing("r", False)),))  # type: ignore[arg-type]
    assert neither.translate(None, "p", default_rates()).program == program  # type: ignore[arg-type]


class Copier(Library):
    """One that copies float32 by its own code, and any type by a guest's."""

    def describe(self, program: ir.Program) -> Description:
        known = program.steps[0].library or program.values[0].dtype == "float32"
        return Description((StepInfo("", 0, 0, "" if known else "no such type"),), ())


def test_a_copy_is_of_the_first_library_that_has_its_type(monkeypatch: pytest.MonkeyPatch) -> None:
    kinds = (("float32", "input"), ("float32", "output"), ("bool", "input"), ("bool", "output"))
    values = tuple(
        ir.Value(f"v{at}", (2, 3), dtype, kind, "ab")  # type: ignore[arg-type]
        for at, (dtype, kind) in enumerate(kinds)
    )
    pairs = ((0, 1), (2, 3))
    steps = tuple(
        ir.Step(f"copy{src}", ir.Reorder(), (ir.Operand("src", src), ir.Operand("dst", dst)))
        for src, dst in pairs
    )
    program = ir.Program("p", values, steps)
    monkeypatch.setattr("tvm_mxplan.byoc.joined.translate_region", lambda *_: (program, []))
    both = Joined(Copier("leader", sharing("r", True)), (GUEST,))  # type: ignore[arg-type]
    found = both.translate(None, "p", default_rates()).program  # type: ignore[arg-type]
    assert [one.library for one in found.steps] == ["", "guest"]
