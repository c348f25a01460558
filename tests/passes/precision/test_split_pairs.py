"""Pairs of convolutions taken apart: the value between them, their operands and what stands behind each."""

from __future__ import annotations

import pytest

from tvm_mxplan.byoc.onednn.backend import OneDNN
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.core.program.program_rules import check_program
from tvm_mxplan.passes.precision import assign_precision
from tvm_mxplan.passes.precision.choose_types import TypeChoice
from tvm_mxplan.passes.precision.split_pairs import parts_of, split_pairs
from tvm_mxplan.passes.precision.step_types import StepTypes

RELU, TANH = (ir.EltwisePostOp(name, 0.0, 0.0) for name in ("relu", "tanh"))


def pair(
    before: tuple[ir.PostOp, ...], behind: tuple[ir.PostOp, ...], batch: int = 2, biased: bool = True
) -> ir.Program:
    """A pointwise convolution of 8 channels to 24, then a depthwise one of stride 2 on 11 x 7."""
    values = (
        ir.Value("x", (batch, 8, 11, 7), "float32", "input", "abcd", 0),
        ir.Value("w", (24, 8, 1, 1), "float32", "constant", "abcd", 0),
        ir.Value("v", (24,), "float32", "constant", "a", 1),
        ir.Value("d", (24, 1, 1, 3, 3), "float32", "constant", "abcde", 2),
        ir.Value("e", (24,), "float32", "constant", "a", 3),
        ir.Value("y", (batch, 24, 6, 4), "float32", "output", "abcd", 0),
        ir.Value("z", (batch, 24, 6, 4), "float32", "output", "abcd", 1),
    )
    roles = [("src", 0), ("weights", 1), ("dst", 5), ("depthwise_weights", 3)]
    roles += [("bias", 2), ("depthwise_bias", 4)] if biased else []
    operands = tuple(ir.Operand(*one) for one in roles)
    attrs = ir.Convolution((1, 1), (0, 0, 0, 0), (1, 1), 1)
    step = ir.Step("c", attrs, operands, (*before, ir.DepthwisePostOp(3, 2, 1), *behind))
    last = ir.Step("last", ir.Reorder(), (ir.Operand("src", 5), ir.Operand("dst", 6)))
    return ir.Program("p", values, (step, last))


@pytest.mark.parametrize("before", [(), (RELU,), (RELU, TANH)])
@pytest.mark.parametrize("behind", [(), (TANH,), (TANH, RELU)])
def test_post_ops_stand_behind_the_convolution_that_they_stood_behind(before, behind) -> None:
    program = split_pairs(pair(before, behind))
    check_program(program)
    first, second, last = program.steps
    assert (first.post_ops, second.post_ops) == (before, behind)
    assert (first.name, second.name) == parts_of("c") == ("c", "c.depthwise")
    assert last == pair(before, behind).steps[1]


@pytest.mark.parametrize("biased", [True, False])
def test_each_has_its_own_operands(biased: bool) -> None:
    whole = pair((RELU,), (), biased=biased)
    program = split_pairs(whole)
    assert program.values[: len(whole.values)] == whole.values
    (middle,) = program.values[len(whole.values) :]
    assert (middle.shape, middle.kind, middle.dtype, middle.layout) == (
        (2, 24, 11, 7), "local", "float32", "abcd",
    )  # fmt: skip
    first, second, _ = program.steps
    at = len(whole.values)
    biases = ({"bias": 2}, {"bias": 4}) if biased else ({}, {})
    assert {o.role: o.value for o in first.operands} == {"src": 0, "weights": 1, **biases[0], "dst": at}
    assert {o.role: o.value for o in second.operands} == {"src": at, "weights": 3, **biases[1], "dst": 5}
    assert first.attrs == whole.steps[0].attrs
    assert second.attrs == ir.Convolution((2, 2), (1, 1, 1, 1), (1, 1), 24)


def test_only_pairs_that_are_not_kept_are_taken_apart() -> None:
    whole = pair((), ())
    assert split_pairs(whole, {"c"}) == whole
    assert len(split_pairs(whole, {"last"}).steps) == 3
    assert split_pairs(split_pairs(whole)) == split_pairs(whole)


@pytest.mark.parametrize(
    ("first", "second", "apart"),
    [("float32", "float32", False), ("bfloat16", "float32", True), ("float32", "bfloat16", True)],
)
def test_a_pair_is_one_step_again_where_both_stay_in_float32(monkeypatch, first, second, apart) -> None:
    asked: list[list[str]] = []

    class Chooser:
        def __init__(self, program: ir.Program, *_others: object) -> None:
            self.program = program
            asked.append([step.name for step in program.steps])

        def choose(self) -> TypeChoice:
            types = {"c": first, "c.depthwise": second}
            chosen = [StepTypes(types.get(s.name, "float32"), "float32") for s in self.program.steps]
            return TypeChoice(tuple(chosen), {}, 1.0, 2.0)

    monkeypatch.setattr(assign_precision, "TypeChooser", Chooser)
    wish = assign_precision.PrecisionWish("bf16")
    whole = pair((), ())
    program, choice = assign_precision.AssignPrecision(OneDNN(), wish)._choose(whole, {}, [])
    assert program == (split_pairs(whole) if apart else whole)
    assert len(choice.types) == len(program.steps)
    assert asked == [["c", "c.depthwise", "last"], ["c", "last"]][: 1 if apart else 2]
