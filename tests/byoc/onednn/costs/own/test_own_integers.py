"""Shares of our kernels for integers in the time of oneDNN's: formulas by hand, and who is chosen."""

from __future__ import annotations

import pytest
from costs_by_hand import info, rates

from tvm_mxplan.byoc.onednn.costs.integers import float_info, integer_share
from tvm_mxplan.byoc.onednn.costs.own.integers import is_own, own_share
from tvm_mxplan.byoc.onednn.costs.steps import cost
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.core.step_facts import StepFacts, operands_of

POINT, DEPTH, WINDOWS = "integers_1x1:avx512_vnni", "integers_dw:avx512_vnni", "integers_windows:avx512_vnni"
THEIRS, THEIR_WINDOWS = "brgconv_1x1:avx512_core_vnni", "brgconv:avx512_core_vnni"


def facts(
    implementation: str,
    channels: tuple[int, int] = (64, 64),
    size: int = 56,
    groups: int = 1,
    strides: tuple[int, int] = (1, 1),
    post_ops: int = 0,
    dst: str = "uint8",
    window: int = 1,
) -> StepFacts:
    inputs, outputs = channels
    weights = (outputs, inputs, window, window) if groups == 1 else (groups, 1, 1, 3, 3)
    values = (
        ir.Value("x", (1, inputs, size * strides[0], size * strides[1]), "uint8", "input", "acdb", 0),
        ir.Value("w", weights, "int8", "constant", "abcde"[: len(weights)], 0),
        ir.Value("s", (1,), "float32", "constant", "a", 1),
        ir.Value("y", (1, outputs, size, size), dst, "output", "acdb", 0),
    )
    operands = [ir.Operand("src", 0), ir.Operand("weights", 1)]
    if dst == "uint8":
        operands.append(ir.Operand("dst_scale", 2))
    padding = (0, 0, 0, 0) if groups == window == 1 else (1, 1, 1, 1)
    ops = (ir.EltwisePostOp("round", 0.0, 0.0),) * post_ops
    attrs = ir.Convolution(strides, padding, (1, 1), groups)
    step = ir.Step("s", attrs, (*operands, ir.Operand("dst", 3)), ops)
    layouts = tuple(values[number].layout for _, number in operands_of(step))
    return StepFacts(ir.Program("p", values, (step,)), step, layouts, info(implementation))


@pytest.mark.parametrize(
    ("kind", "slow"),
    [({}, 2.0), ({"channels": (3, 64), "window": 3}, 2.0), ({"channels": (64, 64), "groups": 64}, 1.6)],
)
def test_words_take_longer_than_bytes(kind: dict, slow: float) -> None:
    family = "integers_dw" if "groups" in kind else "integers_windows" if "window" in kind else "integers_1x1"
    words, four = (facts(f"{family}:{name}", **kind) for name in ("avx2_words", "avx512_vnni"))
    assert is_own(words)
    assert integer_share(words) == pytest.approx(slow * integer_share(four))


def test_families() -> None:
    assert is_own(facts(POINT)) and is_own(facts(DEPTH, groups=64)) and not is_own(facts(THEIRS))
    assert float_info(facts(POINT)).family == "brgconv_1x1"
    assert float_info(facts(DEPTH, groups=64)).family == "jit_dw"
    assert is_own(facts(WINDOWS, window=3)) and float_info(facts(WINDOWS, window=3)).family == "brgconv"


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        (facts(POINT), (128 + 32) / (128 + 63)),
        (facts(POINT, (17, 64)), (40 + 32) / (40 + 63)),
        (facts(POINT, post_ops=4), (128 + 32 + 68) / (128 + 63 + 36)),
        (facts(POINT, size=28), (128 + 32) / (128 + 63) / 1.15),
        (facts(POINT, size=29), (128 + 32) / (128 + 63)),
        (facts(WINDOWS, (16, 64), window=3), (288 * 1.02 + 32) / (288 + 63)),
        (facts(WINDOWS, (3, 64), window=3, size=14), (72 * 1.02 + 32) / (72 + 63)),
        (facts(WINDOWS, (3, 64), window=3, post_ops=2), (72 * 1.02 + 32 + 34) / (72 + 63 + 18)),
        (facts(DEPTH, groups=64), 0.62),
        (facts(DEPTH, (40, 40), groups=40), 0.62),
        (facts(DEPTH, groups=64, strides=(2, 2)), 0.92),
        (facts(DEPTH, (40, 40), groups=40, strides=(2, 2)), 0.92 * 64 / 48),
        (facts(DEPTH, groups=64, post_ops=1), 0.92),
        (facts(DEPTH, groups=64, dst="float32"), 0.92),
    ],
)
def test_shares(made: StepFacts, expected: float) -> None:
    assert own_share(made) == pytest.approx(expected)


def test_a_share_is_one_of_the_time_in_their_kernels() -> None:
    machine = rates()
    for post_ops in (0, 5):
        ours, theirs = facts(POINT, post_ops=post_ops), facts(THEIRS, post_ops=post_ops)
        assert cost(ours, machine) == pytest.approx(own_share(ours) * cost(theirs, machine))
    for channels in ((3, 64), (16, 64), (64, 64)):
        ours = facts(WINDOWS, channels, window=3)
        theirs = facts(THEIR_WINDOWS, channels, window=3)
        assert cost(ours, machine) == pytest.approx(own_share(ours) * cost(theirs, machine))
        assert cost(ours, machine) < cost(theirs, machine)
    many = (256, 256)
    assert cost(facts(WINDOWS, many, window=3), machine) > cost(facts(THEIR_WINDOWS, many, window=3), machine)
    assert cost(facts(POINT), machine) < cost(facts(THEIRS), machine)
    assert cost(facts(POINT, post_ops=5), machine) > cost(facts(THEIRS, post_ops=5), machine)
