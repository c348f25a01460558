"""Costs of steps in bfloat16: shares of float32, by kind, and casts by their bytes."""

from __future__ import annotations

from dataclasses import replace

import pytest
from costs_by_hand import info, rates

from tvm_mxplan.byoc.onednn.costs import cost
from tvm_mxplan.byoc.onednn.costs.types import in_float, is_float, time_share
from tvm_mxplan.core.machine import Compute
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.core.program.operands import operands_of
from tvm_mxplan.core.step_facts import StepFacts, reorder_facts

SHORT = "bfloat16"
MACHINE = rates(gbytes=20.0)


def facts(attrs: ir.Attributes, dst: tuple[int, ...], dtype: str, **shapes: tuple[int, ...]) -> StepFacts:
    letters = "abcdefgh"
    values = [
        ir.Value(role, shape, dtype, "constant" if role == "weights" else "input", letters[: len(shape)], 0)
        for role, shape in shapes.items()
    ]
    values.append(ir.Value("dst", dst, dtype, "local", letters[: len(dst)]))
    operands = [ir.Operand(role, at) for at, role in enumerate(shapes)]
    step = ir.Step("s", attrs, (*operands, ir.Operand("dst", len(values) - 1)))
    program = ir.Program("p", tuple(values), (step,))
    layouts = tuple(program.values[number].layout for _, number in operands_of(step))
    return StepFacts(program, step, layouts, info("brgconv:avx512_core_bf16"))


def convolution(channels: int, dtype: str, groups: int = 1) -> StepFacts:
    each = channels // groups
    filters = (channels, channels, 3, 3) if groups == 1 else (groups, each, each, 3, 3)
    image = (2, channels, 28, 28)
    return facts(ir.Convolution((1, 1), (1,) * 4, (1, 1), groups), image, dtype, src=image, weights=filters)


def share(make, *args: object) -> float:
    """Cost in bfloat16 over that in float32."""
    return cost(make(*args, SHORT), MACHINE) / cost(make(*args, "float32"), MACHINE)


def test_products_take_half_and_narrow_ones_more() -> None:
    assert share(convolution, 64) == pytest.approx(0.5)
    assert 0.5 < share(convolution, 8) < 1
    depthwise = cost(convolution(64, SHORT, 64), MACHINE) / cost(convolution(64, "float32", 64), MACHINE)
    assert 0.9 < depthwise < 1.2


def test_rates_of_a_machine_count_where_it_states_them() -> None:
    faster = replace(
        MACHINE, compute=(*MACHINE.compute, Compute(SHORT, "avx512", 4 * MACHINE.gflops("float32")))
    )
    wide, short = (cost(convolution(64, dtype), faster) for dtype in ("float32", SHORT))
    assert short / wide == pytest.approx(0.25)


def test_attention_takes_less_by_tiles_except_of_one_query() -> None:
    for rows, implementation, expected in (
        (128, "attention:avx512_amx", 0.30),
        (1, "attention:avx512_amx", 0.60),
        (128, "attention:avx512_bf16", 0.60),
    ):
        heads = (1, 12, 128, 64)
        shapes = {"src": (1, 12, rows, 64), "key": heads, "value": heads}
        step = facts(ir.Attention(0.125), (1, rows, 12, 64), SHORT, **shapes)
        assert time_share(replace(step, info=info(implementation)), MACHINE) == expected


def test_a_norm_loses_by_converting() -> None:
    def norm(dtype: str) -> StepFacts:
        return facts(ir.LayerNormalization(1e-5), (128, 768), dtype, src=(128, 768))

    assert share(norm) > 1


def test_a_cast_takes_less_than_a_reorder_of_the_wider_type() -> None:
    start = MACHINE.start_us + 2 * MACHINE.fork_us
    one = reorder_facts((3, 64, 56, 56), "float32", "abcd", "acdb")
    cast = replace(one, program=one.program.with_value(1, dtype=SHORT))
    spared = (cost(cast, MACHINE) - start) / (cost(one, MACHINE) - start)
    assert 0.5 < spared <= (4 + 2) / (4 + 4)  # more than in proportion, where less has to leave the caches


@pytest.mark.parametrize("short", [(), (0,), (1,), (2,), (0, 1, 2)])
def test_a_step_is_in_float_where_everything_that_it_touches_is(short: tuple[int, ...]) -> None:
    """One operand in another type is enough; the source's says how fast its numbers are multiplied."""
    wide = convolution(64, "float32")
    program = wide.program
    for number in short:
        program = program.with_value(number, dtype=SHORT)
    mixed = replace(wide, program=program)
    assert is_float(mixed) == (not short)
    assert is_float(in_float(mixed)) and in_float(mixed).step.name == wide.step.name
    assert cost(mixed, MACHINE) == pytest.approx((0.5 if 0 in short else 1.0) * cost(wide, MACHINE))
