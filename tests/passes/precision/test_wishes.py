"""The words by which users ask for types of operators."""

from __future__ import annotations

import pytest

from tvm_mxplan.core.program import program as ir
from tvm_mxplan.passes.precision.choose_types import Wish
from tvm_mxplan.passes.precision.wishes import Names, PrecisionWish, fixed_types


def test_a_wish_is_for_the_first_word_that_it_names() -> None:
    wish = PrecisionWish("f32", {"conv2d_1": "bf16", "conv2d": "f32"})
    assert wish.of(["conv2d_1", "conv2d"]) == "bf16"
    assert wish.of(["conv2d", "conv2d_1"]) == "f32"
    assert wish.of(["matmul_0"]) is None and wish.of([]) is None
    assert not wish.is_float([]) and not PrecisionWish("bf16").is_float([])
    assert PrecisionWish().is_float(["conv2d_0"])
    assert PrecisionWish("f32", {"conv2d": "f32"}).is_float(["conv2d_0"])
    assert PrecisionWish("f32", {"conv2d": "model", "exp": "f16"}).is_float(["conv2d_0"])
    assert not PrecisionWish("auto").is_float([]) and PrecisionWish("auto").is_bounded
    assert not PrecisionWish("bf16").is_bounded and not PrecisionWish("model").is_bounded
    assert PrecisionWish("model").is_float([]) and not PrecisionWish("model").is_float(["conv2d_0"])


CONV = ir.Convolution((1, 1), (0, 0, 0, 0), (1, 1), 1)
NAMES = (
    ("conv2d_0", CONV),
    ("conv2d_1", CONV),
    ("conv2d_1.depthwise", CONV),
    ("exp_0", ir.Eltwise("exp", 0.0, 0.0)),
)
INSIDE = {"conv2d_0": ["relu_0", "add_0"], "conv2d_1": ["clip_0"]}
NOT = Wish("float32")
MUST, MAY = Wish("bfloat16", demanded=True), Wish("bfloat16", demanded=False)


@pytest.mark.parametrize(
    ("precision", "operators", "expected"),
    [
        ("f32", {"conv2d_1": "bf16"}, [NOT, MUST, MUST, NOT]),
        ("f32", {"conv2d_1.depthwise": "bf16"}, [NOT, NOT, MUST, NOT]),
        ("f32", {"conv2d": "bf16"}, [MAY, MAY, MAY, NOT]),
        ("f32", {"conv2d": "bf16", "conv2d_0": "f32"}, [NOT, MAY, MAY, NOT]),
        ("f32", {"add_0": "bf16"}, [MUST, NOT, NOT, NOT]),
        ("f32", {"relu_0": "bf16", "exp_0": "bf16"}, [MUST, NOT, NOT, MUST]),
        ("f32", {"eltwise": "bf16"}, [NOT, NOT, NOT, MAY]),
        ("bf16", {}, [None] * 4),
        ("auto", {}, [None] * 4),
        ("auto", {"exp": "f32", "conv2d_1": "bf16"}, [None, MUST, MUST, Wish("float32", demanded=False)]),
        ("bf16", {"exp": "f32"}, [None, None, None, Wish("float32", demanded=False)]),
        ("bf16", {"clip_0": "f32", "convolution": "bf16"}, [MAY, NOT, MAY, None]),
    ],
)
def test_steps_by_what_users_call_them(precision, operators, expected) -> None:
    """By their name, that of the operator they are part of, of what was fused into them, and by kind."""
    steps = tuple(ir.Step(name, attrs, (ir.Operand("src", 0), ir.Operand("dst", 1))) for name, attrs in NAMES)
    wish = PrecisionWish(precision, operators)
    fixed = fixed_types(ir.Program("p", (), steps), wish, Names(INSIDE, ()))
    assert [fixed.get(step.name) for step in steps] == expected


def test_as_the_model_states_it() -> None:
    """One stated operator of a step is enough; what only moves elements takes what comes."""
    plain = ir.Step("reshape_0", ir.Reorder(), (ir.Operand("src", 0), ir.Operand("dst", 1)))
    summed = ir.Step("reshape_1", ir.Reorder(), plain.operands, (ir.EltwisePostOp("relu", 0.0, 0.0),))
    steps = tuple(ir.Step(name, attrs, plain.operands) for name, attrs in NAMES)
    program = ir.Program("p", (), (*steps, plain, summed))
    names = Names(INSIDE, ("add_0", "clip_0"))
    assert names.are_stated(["relu_0", "add_0"]) and not names.are_stated(["relu_0"])
    assert not names.are_stated([])
    by_model = Wish("float32", reason="the model states f32")
    expected = {"conv2d_1.depthwise": by_model, "exp_0": by_model, "reshape_1": by_model}
    assert fixed_types(program, PrecisionWish("model"), names) == expected
    assert fixed_types(program, PrecisionWish("auto"), names) == {}
