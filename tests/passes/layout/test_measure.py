"""``StepTimer``: what is asked of the meter, and what counts where it does not answer."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest
from costs_by_hand import MODEL, info

from tvm_mxplan.byoc.onednn.backend import OneDNN
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.passes.layout import measure
from tvm_mxplan.passes.layout.measure import StepTimer, least_of_runs, time_alone

FAST, SLOW = info("jit"), info("ref:any")
SHAPE = (1, 17, 9, 9)
NHWC = ("acdb", "abcd", "acdb")


class Meter:
    """Answers by kind, and notes what it was asked; measures for real where it has no answer."""

    def __init__(self, **answers: float | None) -> None:
        self.answers = answers
        self.asked: list[tuple[str, ir.Program]] = []

    def microseconds(self, kind, question, measure):
        self.asked.append((kind, question))
        return self.answers[kind] if kind in self.answers else measure()[0]


def convolution() -> ir.Program:
    values = (
        ir.Value("x", SHAPE, "float32", "local", "abcd"),
        ir.Value("w", (17, 17, 3, 3), "float32", "constant", "abcd", 0),
        ir.Value("y", SHAPE, "float32", "local", "abcd"),
    )
    attrs = ir.Convolution((1, 1), (1, 1, 1, 1), (1, 1), 1)
    operands = (ir.Operand("src", 0), ir.Operand("weights", 1), ir.Operand("dst", 2))
    return ir.Program("p", values, (ir.Step("conv", attrs, operands),))


def concatenation() -> ir.Program:
    values = (
        ir.Value("a", SHAPE, "float32", "input", "abcd", 0),
        ir.Value("b", SHAPE, "float32", "input", "abcd", 1),
        ir.Value("y", (1, 34, 9, 9), "float32", "output", "abcd", 0),
    )
    operands = (ir.Operand("src", 0), ir.Operand("src", 1), ir.Operand("dst", 2))
    return ir.Program("p", values, (ir.Step("concat", ir.Concat(1), operands),))


def timer(meter: Meter) -> StepTimer:
    return StepTimer(partial(time_alone, OneDNN()), MODEL, meter)


def test_a_step_is_measured_in_its_layouts():
    meter, program = Meter(), convolution()
    assert timer(meter)(program, program.steps[0], NHWC, FAST) > 0
    ((kind, question),) = meter.asked
    assert kind == "step"
    assert [value.layout for value in question.values] == list(NHWC)


def test_reference_code_is_not_measured():
    meter, program = Meter(step=1.0), convolution()
    cost = timer(meter)(program, program.steps[0], NHWC, SLOW)
    assert (cost, meter.asked) == (MODEL(program, program.steps[0], NHWC, SLOW), [])


def test_what_was_measured_is_told_from_estimates():
    program = convolution()
    step = program.steps[0]
    meter = Meter(step=None)
    cost = timer(meter)
    assert not MODEL.knows(program, step, NHWC)
    cost(program, step, NHWC, FAST)
    assert not cost.knows(program, step, NHWC)
    meter.answers["step"] = 5.0
    cost(program, step, NHWC, FAST)
    assert cost.knows(program, step, NHWC)
    assert not cost.knows(program, step, ("abcd",) * 3)


@pytest.mark.parametrize("together, cost", [(150.0, 50.0), (104.0, 7.0), (None, 7.0)])
def test_a_reorder_costs_what_it_adds_to_its_reader_or_takes_alone(together, cost):
    meter, program = Meter(reorder=7.0, step=100.0, group=together), convolution()
    reader = (program.steps[0], NHWC)
    assert timer(meter).reorder(program, 0, "acdb", ["aBcd16b"], reader) == cost
    asked = dict(meter.asked)
    assert [value.layout for value in asked["reorder"].values] == ["aBcd16b", "acdb"]
    assert [step.kind for step in asked["group"].steps] == ["reorder", "convolution"]
    assert asked["group"].values[asked["group"].steps[0].operand("src")].layout == "aBcd16b"


def test_a_reorder_stands_in_front_of_the_operand_that_wants_it():
    """Here of the weights, which are no constant."""
    meter, program = Meter(reorder=7.0, step=100.0, group=150.0), convolution().with_value(1, kind="local")
    reader = (program.steps[0], ("acdb", "Abcd16a", "acdb"))
    assert timer(meter).reorder(program, 1, "Abcd16a", ["abcd"], reader) == 50.0
    group = dict(meter.asked)["group"]
    before, step = group.steps
    assert before.dst == step.operand("weights")
    assert [group.values[before.operand(role)].layout for role in ("src", "dst")] == ["abcd", "Abcd16a"]
    assert group.values[step.operand("src")].layout == "acdb"


def test_groups_and_copies_really_run():
    meter, program = Meter(), convolution()
    assert timer(meter).reorder(program, 0, "acdb", [], (program.steps[0], NHWC)) > 0
    assert [kind for kind, _ in meter.asked] == ["reorder", "group", "step"]
    concat = concatenation()
    assert timer(meter).copies(concat, concat.steps[0], ("acdb",) * 3) > 0
    assert meter.asked[-1][0] == "copy"


def test_the_model_counts_where_nothing_is_measured():
    """Scaled by how far measurements were from it."""
    program = convolution()
    step = program.steps[0]
    estimate = MODEL(program, step, NHWC, FAST)
    meter = Meter(step=None, reorder=None, copy=None)
    cost = timer(meter)
    assert cost(program, step, NHWC, FAST) == estimate
    meter.answers["step"] = 3 * estimate
    for _ in range(5):
        assert cost(program, step, NHWC, FAST) == 3 * estimate
    meter.answers["step"] = None
    assert cost(program, step, NHWC, FAST) == pytest.approx(3 * estimate)
    alone = MODEL.reorder(program, 0, "acdb", [], None)
    assert cost.reorder(program, 0, "acdb", [], None) == pytest.approx(3 * alone)
    concat = concatenation()
    copies = MODEL.copies(concat, concat.steps[0], NHWC)
    assert cost.copies(concat, concat.steps[0], NHWC) == pytest.approx(3 * copies)


def test_the_first_runs_do_not_count():
    """They load code and touch memory for the first time."""
    calls = []

    class Backend:
        def create_module(self, *_: object) -> dict[str, Callable[..., None]]:
            return {"step": lambda *arguments: calls.append(arguments)}

    _, repeats = time_alone(Backend(), concatenation())
    assert len(calls) > repeats
    assert [argument.shape for argument in calls[0]] == [SHAPE, SHAPE, (1, 34, 9, 9)]


def test_the_least_of_some_runs_counts():
    calls = []
    value, repeats = least_of_runs(lambda: calls.append(1))
    assert len(calls) == repeats >= 4
    assert 0 < value < 1e6


def test_noise_only_adds(monkeypatch):
    """Runs of 5, 3, 9 and 4 ms, by a clock of our own: the shortest counts."""
    ticks = iter([0.0, *(tick for at, took in enumerate((5, 3, 9, 4)) for tick in (at, at + took / 1e3))])
    monkeypatch.setattr(measure.time, "perf_counter", lambda: next(ticks, 1e9))
    assert least_of_runs(lambda: None) == (pytest.approx(3000.0), 4)


def test_only_convolutions_are_timed_together_with_what_they_read():
    meter, program = Meter(reorder=7.0, step=100.0, group=150.0), convolution()
    assert timer(meter).reorder(program, 0, "acdb", [], None) == 7.0
    relu = ir.Step("relu", ir.Eltwise("relu", 0.0, 0.0), (ir.Operand("src", 0), ir.Operand("dst", 2)))
    assert timer(meter).reorder(program, 0, "acdb", [], (relu, ("acdb", "acdb"))) == 7.0
    assert [kind for kind, _ in meter.asked] == ["reorder", "reorder"]


def test_what_a_step_writes_is_handed_out() -> None:
    """A result that nobody sees may never be written: it becomes an output, and it is random before."""
    values = (
        ir.Value("x", SHAPE, "float32", "input", "abcd", 0),
        ir.Value("a", SHAPE, "float32", "local", "acdb"),
        ir.Value("b", SHAPE, "float32", "local", "acdb"),
    )
    reorder, relu = ir.Reorder(), ir.Eltwise("relu", 0.0, 0.0)
    steps = (
        ir.Step("r", reorder, (ir.Operand("src", 0), ir.Operand("dst", 1))),
        ir.Step("e", relu, (ir.Operand("src", 1), ir.Operand("dst", 2))),
    )
    built: list[ir.Program] = []

    class Noting(OneDNN):
        def create_module(self, symbol, program, constants):
            built.append(program)
            return super().create_module(symbol, program, constants)

    time_alone(Noting(), ir.Program("p", values, steps))
    assert [(value.kind, value.index) for value in built[0].values] == [
        ("input", 0),
        ("output", 0),
        ("output", 1),
    ]
