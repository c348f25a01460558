"""``InferLayouts`` with choices that were made before: what is replayed, and what is said of it."""

from __future__ import annotations

from dataclasses import replace

import pytest
import tvm
from blocks import BLOCKED_NAME
from region_passes import region_passes
from relax_programs import parse

from tvm_mxplan.byoc.onednn.backend import OneDNN
from tvm_mxplan.core.decisions.choices import Choices
from tvm_mxplan.core.decisions.journal import Journal
from tvm_mxplan.core.description import Description
from tvm_mxplan.core.layout.layout_decision import LayoutDecision
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.errors import InvalidInputError
from tvm_mxplan.passes.layout import InferLayouts, infer_layouts


def test_a_replayed_choice_says_which_of_its_own_steps_were_forced(monkeypatch: pytest.MonkeyPatch) -> None:
    """Options name steps of the whole module; each region tells of those that are its."""
    pool = "R.nn.max_pool2d({0}, pool_size=[3, 3], padding=[1, 1])"
    lines = f"a = {pool.format('x')}\nb = R.sin(a)\nc = {pool.format('b')}\nd = R.exp(c)\nreturn d"
    layers = {"max_pool2d_1": BLOCKED_NAME}

    ticks = iter(range(1000))
    monkeypatch.setattr(infer_layouts.time, "perf_counter", lambda: 1e6 + next(ticks))

    def decided(choices: Choices) -> list[LayoutDecision]:
        backend, journal = OneDNN(), Journal()
        passes = [
            *region_passes(backend, named=True),
            InferLayouts(backend, layers=layers, choices=choices, journal=journal),
        ]
        tvm.transform.Sequential(passes)(parse(lines, 'x: R.Tensor((1, 64, 8, 8), "float32")'))
        decisions = [journal.layouts[name] for name in sorted(journal.layouts)]
        assert all(0 < one.seconds < 1000 for one in decisions), "between two looks at the clock"
        return decisions

    first = Choices()
    made = decided(first)
    second = Choices(known=first.made)
    again = decided(second)
    for decisions, replayed in ((made, False), (again, True)):
        assert [(one.forced, one.replayed) for one in decisions] == [
            ((), replayed),
            (("max_pool2d_1",), replayed),
        ]
    assert (first.regions, first.used) == (2, 0)
    assert (second.regions, second.used, second.made) == (2, 2, first.made)


def test_a_layout_for_a_step_that_is_not_there_is_an_error() -> None:
    lines = "a = R.nn.max_pool2d(x, pool_size=[3, 3])\nb = R.tanh(a)\nreturn b"
    for layers, wrong in (
        ({"max_pool2d_0": "nhwc", "tanh_0": "nhwc"}, "tanh_0"),
        ({"conv2d_7": "nhwc"}, "conv2d_7"),
    ):
        passes = [
            *region_passes(OneDNN(), named=True),
            InferLayouts(OneDNN(), layers=layers),
        ]
        with pytest.raises(
            InvalidInputError, match=f"option layers: {wrong} is no step of the library's own"
        ):
            tvm.transform.Sequential(passes)(parse(lines, 'x: R.Tensor((1, 64, 8, 8), "float32")'))


class Other(OneDNN):
    """Another library, which has no region here."""

    @property
    def name(self) -> str:
        return "mxplan_other"


def test_a_layout_for_a_step_of_another_library_is_that_librarys() -> None:
    lines = "a = R.nn.max_pool2d(x, pool_size=[3, 3])\nb = R.tanh(a)\nreturn b"
    infer = InferLayouts(Other(), layers={"max_pool2d_0": "nhwc"})
    passes = [*region_passes(OneDNN(), named=True), infer]
    tvm.transform.Sequential(passes)(parse(lines, 'x: R.Tensor((1, 64, 8, 8), "float32")'))
    assert not infer.journal.layouts


class Elsewhere(OneDNN):
    """A library that runs steps by other code than the one that the choice was made with."""

    def describe(self, program: ir.Program) -> Description:
        said = super().describe(program)
        steps = (replace(info, implementation=info.implementation and "other") for info in said.steps)
        return replace(said, steps=tuple(steps))


def test_a_choice_that_the_library_would_run_otherwise_is_made_anew() -> None:
    def decided(choices: Choices, backend: OneDNN) -> list[LayoutDecision]:
        journal = Journal()
        passes = [
            *region_passes(backend),
            InferLayouts(backend, "channels_last", choices=choices, journal=journal),
        ]
        lines = "return R.nn.max_pool2d(x, pool_size=[3, 3], padding=[1, 1])"
        tvm.transform.Sequential(passes)(parse(lines, 'x: R.Tensor((1, 64, 8, 8), "float32")'))
        return list(journal.layouts.values())

    first = Choices()
    decided(first, OneDNN())
    for backend, replayed in ((OneDNN(), True), (Elsewhere(), False)):
        choices = Choices(known=first.made)
        (decision,) = decided(choices, backend)
        assert (decision.replayed, choices.used) == (replayed, int(replayed))


def test_reasons_are_told_to_whoever_asked() -> None:
    class Refusing(OneDNN):
        def describe(self, program: ir.Program) -> Description:
            said = super().describe(program)
            return replace(said, steps=tuple(replace(info, error="not today") for info in said.steps))

    journal = Journal()
    backend = OneDNN()
    passes = [
        *region_passes(backend),
        InferLayouts(Refusing(), journal=journal),
    ]
    lines = "return R.nn.max_pool2d(x, pool_size=[3, 3], padding=[1, 1])"
    tvm.transform.Sequential(passes)(parse(lines, 'x: R.Tensor((1, 64, 8, 8), "float32")'))
    assert journal.refused and all("not today" in reason for reason in journal.refused.values())
