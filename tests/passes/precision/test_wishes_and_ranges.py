"""Constants that bfloat16 cannot hold, and the words by which users ask for types of operators."""

from __future__ import annotations

import numpy as np
import pytest

from tvm_mxplan.byoc.onednn.backend import OneDNN
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.passes.precision.assign_precision import AssignPrecision, PrecisionWish, _Ranges
from tvm_mxplan.passes.precision.choose_types import Wish

LARGEST = float(np.finfo(np.float32).max)
LARGEST_SHORT = 3.3895313892515355e38


@pytest.mark.parametrize(
    ("numbers", "fine"),
    [
        ([], True),
        ([0.0, -1.5], True),
        ([LARGEST_SHORT], True),
        ([-LARGEST_SHORT, 2.0], True),
        ([LARGEST], False),
        ([1.0, -LARGEST], False),
        ([np.inf], True),
        ([-np.inf, LARGEST_SHORT], True),
    ],
)
def test_numbers_that_would_become_infinite(numbers: list[float], fine: bool) -> None:
    """Infinities themselves stay what they are."""
    values = (
        ir.Value("x", (4,), "float32", "input", "a", 0),
        ir.Value("i", (4,), "int32", "constant", "a", 0),
        ir.Value("w", (4,), "float32", "constant", "a", 1),
    )
    arrays = [np.full(4, 2**31 - 1, "int32"), np.array(numbers, "float32")]
    ranges = _Ranges(ir.Program("p", values, ()), arrays)
    assert [ranges.are_finite(number) for number in (0, 1, 2, 2)] == [True, True, fine, fine]


def test_a_wish_is_for_the_first_word_that_it_names() -> None:
    wish = PrecisionWish("f32", {"conv2d_1": "bf16", "conv2d": "f32"})
    assert wish.of(["conv2d_1", "conv2d"]) == "bf16"
    assert wish.of(["conv2d", "conv2d_1"]) == "f32"
    assert wish.of(["matmul_0"]) is None and wish.of([]) is None
    assert not wish.is_float and not PrecisionWish("bf16").is_float
    assert PrecisionWish().is_float and PrecisionWish("f32", {"conv2d": "f32"}).is_float


CONV = ir.Convolution((1, 1), (0, 0, 0, 0), (1, 1), 1)
NAMES = (
    ("conv2d_0", CONV),
    ("conv2d_1", CONV),
    ("conv2d_1.depthwise", CONV),
    ("exp_0", ir.Eltwise("exp", 0.0, 0.0)),
)
FUSED = {"relu_0": "conv2d_0", "add_0": "conv2d_0", "clip_0": "conv2d_1"}
NOT = Wish("float32")
MUST, MAY = Wish("bfloat16", demanded=True), Wish("bfloat16", demanded=False)


@pytest.mark.parametrize(
    ("precision", "operators", "expected"),
    [
        ("f32", {"conv2d_1": "bf16"}, [NOT, MUST, MUST, NOT]),
        ("f32", {"conv2d": "bf16"}, [MAY, MAY, MAY, NOT]),
        ("f32", {"conv2d": "bf16", "conv2d_0": "f32"}, [NOT, MAY, MAY, NOT]),
        ("f32", {"add_0": "bf16"}, [MUST, NOT, NOT, NOT]),
        ("f32", {"relu_0": "bf16", "exp_0": "bf16"}, [MUST, NOT, NOT, MUST]),
        ("f32", {"eltwise": "bf16"}, [NOT, NOT, NOT, MAY]),
        ("bf16", {}, [None] * 4),
        ("bf16", {"exp": "f32"}, [None, None, None, Wish("float32", demanded=False)]),
        ("bf16", {"clip_0": "f32", "convolution": "bf16"}, [MAY, NOT, MAY, None]),
    ],
)
def test_steps_by_what_users_call_them(precision, operators, expected) -> None:
    """By their name, that of the operator they are part of, of what was fused into them, and by kind."""
    steps = tuple(ir.Step(name, attrs, (ir.Operand("src", 0), ir.Operand("dst", 1))) for name, attrs in NAMES)
    pass_ = AssignPrecision(OneDNN(), PrecisionWish(precision, operators))
    fixed = pass_._fixed(ir.Program("p", (), steps), FUSED)
    assert [fixed.get(step.name) for step in steps] == expected
