"""Steps on integers: their share of the time in float32, and the implementation that the share is one of."""

from __future__ import annotations

from dataclasses import replace

import pytest
from costs_by_hand import info

from tvm_mxplan.byoc.onednn.costs.integers import float_info, integer_share, reads_integers
from tvm_mxplan.core.description import NOTHING_KNOWN
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.core.step_facts import StepFacts, operands_of

WIDE, NARROW = "brg_conv_fwd:avx512_core_vnni", "brg_conv_fwd:avx2"


def facts(attrs: ir.Attributes, channels: int, implementation: str = WIDE, dtype: str = "uint8") -> StepFacts:
    image = (1, channels, 8, 8)
    values = (
        ir.Value("x", image, dtype, "input", "acdb", 0),
        ir.Value("w", (channels, channels, 1, 1), "int8", "constant", "abcd", 0),
        ir.Value("y", image, "float32", "output", "acdb", 0),
    )
    operands = (ir.Operand("src", 0), ir.Operand("weights", 1), ir.Operand("dst", 2))
    step = ir.Step("s", attrs, operands)
    layouts = tuple(values[number].layout for _, number in operands_of(step))
    return StepFacts(ir.Program("p", values, (step,)), step, layouts, info(implementation))


def convolution(groups: int) -> ir.Convolution:
    return ir.Convolution((1, 1), (0, 0, 0, 0), (1, 1), groups)


@pytest.mark.parametrize(
    ("attrs", "channels", "wide", "narrow"),
    [
        (convolution(1), 64, 0.28, 0.56),
        (convolution(1), 16, 0.28, 0.56),
        (convolution(1), 15, 0.33, 0.66),
        (convolution(4), 64, 0.28, 0.56),
        (convolution(8), 64, 0.33, 0.66),
        (convolution(64), 64, 0.85, 0.85 * 1.6),
        (convolution(2), 2, 0.85, 0.85 * 1.6),
        (convolution(1), 1, 0.33, 0.66),
        (ir.Deconvolution((1, 1), (0, 0, 0, 0), (1, 1), 1), 64, 0.28, 0.56),
        (ir.InnerProduct(), 64, 0.28, 0.56),
        (ir.MatMul(), 64, 0.28, 0.56),
        (ir.Pooling("max", (2, 2), (1, 1), (0, 0), (1, 1)), 64, 0.30, 0.30),
        (ir.Slice((0, 0, 0, 0)), 64, 0.30, 0.30),
    ],
)
def test_shares_of_the_time_in_float32(
    attrs: ir.Attributes, channels: int, wide: float, narrow: float
) -> None:
    assert integer_share(facts(attrs, channels)) == pytest.approx(wide)
    assert integer_share(facts(attrs, channels, NARROW)) == pytest.approx(narrow)


def test_integers_have_eight_bits() -> None:
    for dtype, expected in (("uint8", True), ("int8", True), ("float32", False), ("int32", False)):
        assert reads_integers(facts(convolution(1), 64, dtype=dtype)) == expected


@pytest.mark.parametrize(
    ("attrs", "channels", "family", "expected"),
    [
        (convolution(1), 64, "brgconv_int8", "brgconv"),
        (convolution(1), 64, "brgconv_int8_1x1", "brgconv_1x1"),
        (convolution(64), 64, "jit_int8_dw", "jit_dw"),
        (convolution(2), 2, "jit_int8", "jit_dw"),
        (ir.MatMul(), 64, "brgemm_int8", "brgemm_int8"),
        (convolution(1), 64, "jit", "jit"),
    ],
)
def test_the_implementation_that_a_share_is_of(attrs, channels: int, family: str, expected: str) -> None:
    asked = facts(attrs, channels)
    for isa, wide in (("avx2", "avx512"), ("", "")):
        known = replace(NOTHING_KNOWN, family=family, instruction_set=isa)
        found = float_info(replace(asked, info=known))
        changed = expected != family
        assert (found.family, found.instruction_set) == (expected, wide if changed else isa)
