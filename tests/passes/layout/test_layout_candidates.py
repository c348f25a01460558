"""Layouts that a step may be asked for, their order, and operands that keep their own."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tvm_mxplan.byoc.onednn.layout_rules import layout_rules
from tvm_mxplan.core.layout.layout_rules import LayoutRules
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.core.program.builder import ProgramBuilder
from tvm_mxplan.core.program.operands import operands_of
from tvm_mxplan.passes.layout.candidates import (
    candidates,
    image_layouts,
    in_layout,
    options_of,
    uniform,
)

RULES = layout_rules(16)
PLAIN, LAST, BLOCKED = "abcd", "acdb", "aBcd16b"
IMAGE = (2, 17, 6, 5)
RELU = ir.Eltwise("relu", 0.0, 0.0)
POOL = ir.Pooling("max", (3, 3), (1, 1), (1, 1), (1, 1))
CONV = ir.Convolution((1, 1), (0, 0, 0, 0), (1, 1), 1)


def one(attrs: ir.Attributes, shape: tuple[int, ...], **others: tuple[int, ...]) -> ir.Program:
    """A step on an input of ``shape`` and on others by role, those named weights constants."""
    b = ProgramBuilder("p")
    operands = [("src", b.port("input", "x", shape, "float32"))]
    for role, extents in others.items():
        constant = role in ("weights", "bias", "constant")
        value = (
            b.constant(np.ones(extents, "float32")) if constant else b.port("input", role, extents, "float32")
        )
        operands.append(("src1" if role == "constant" else role, value))
    b.step("step", attrs, shape, operands)
    return b.finish()


def offered(program: ir.Program, source: str, policy: str) -> list[tuple[str, ...]]:
    return candidates(program, program.steps[0], source, policy, RULES)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        ("cost", [LAST, BLOCKED, PLAIN]),
        ("channels_last", [LAST, BLOCKED, PLAIN]),
        ("any", [LAST, BLOCKED, PLAIN]),
        ("blocked", [BLOCKED, LAST, PLAIN]),
        ("plain", [PLAIN, LAST, BLOCKED]),
    ],
)
def test_a_policy_says_which_layout_comes_first(policy, expected):
    assert image_layouts(4, policy, RULES) == expected
    assert image_layouts(3, policy, layout_rules(8)) == [
        {PLAIN: "abc", LAST: "acb", BLOCKED: "aBc8b"}[layout] for layout in expected
    ]


def test_an_image_step_is_offered_every_layout_wherever_its_source_is():
    for source in (PLAIN, LAST, BLOCKED):
        assert offered(one(POOL, IMAGE), source, "blocked") == [(tag, tag) for tag in (BLOCKED, LAST, PLAIN)]


@pytest.mark.parametrize("attrs", [RELU, ir.Pad((0, 0, 1, 1), 0.0), ir.Softmax("softmax", 1)])
def test_a_step_that_does_not_care_follows_its_source(attrs):
    program = one(attrs, IMAGE)
    assert offered(program, BLOCKED, "channels_last") == [(tag, tag) for tag in (BLOCKED, LAST, PLAIN)]
    assert offered(program, PLAIN, "channels_last") == [(tag, tag) for tag in (PLAIN, LAST, BLOCKED)]


def test_with_the_policy_any_every_step_follows_its_source_first():
    assert offered(one(POOL, IMAGE), PLAIN, "any")[0] == (PLAIN, PLAIN)
    assert offered(one(POOL, IMAGE), PLAIN, "cost")[0] == (LAST, LAST)


@pytest.mark.parametrize(
    ("shape", "taken"), [((2, 3), 1), ((2, 3, 4), 3), ((1, 2, 3, 4, 5), 3), ((1,) * 6, 1)]
)
def test_only_images_have_several_layouts(shape, taken):
    """Of ranks 3 to 5; matrices and more than five dimensions stand as they stand."""
    found = offered(one(RELU, shape), "abcdef"[: len(shape)], "cost")
    assert len(found) == taken
    assert ("abcdef"[: len(shape)],) * 2 in found


def test_other_steps_keep_their_layouts_or_are_plain():
    program = one(ir.LayerNormalization(1e-5), (2, 3, 4, 5), scale=(5,))
    assert offered(program, LAST, "cost") == [("abcd", "a", "abcd")]
    program = program.with_value(0, layout="dcba")
    assert offered(program, LAST, "cost") == [("dcba", "a", "abcd"), ("abcd", "a", "abcd")]
    product = one(ir.MatMul(), (3, 4), weights=(4, 4)).with_value(1, layout="ba")
    assert offered(product, "ab", "cost") == [("ab", "ba", "ab")]
    product = product.with_value(0, layout="ba")
    assert offered(product, "ab", "cost") == [("ba", "ba", "ab"), ("ab", "ba", "ab")]


def test_weights_and_parameters_stand_as_they_are():
    program = one(CONV, IMAGE, weights=(17, 17, 1, 1), bias=(17,))
    for layout in (PLAIN, LAST, BLOCKED):
        assert uniform(program, program.steps[0], layout) == (layout, PLAIN, "a", layout)


def test_a_first_layer_may_read_the_plain_image_and_write_any_layout():
    program = one(CONV, IMAGE, weights=(17, 17, 1, 1))
    ways = {(source, result) for source, _, result in options_of(program, program.steps[0], RULES)}
    assert ways == {(tag, tag) for tag in (PLAIN, LAST, BLOCKED)} | {(PLAIN, LAST), (PLAIN, BLOCKED)}
    pooled = one(POOL, IMAGE)
    assert options_of(pooled, pooled.steps[0], RULES) == [(tag, tag) for tag in (LAST, BLOCKED, PLAIN)]


@pytest.mark.parametrize(("kind", "channels"), [(ir.Convolution, 3), (ir.Deconvolution, 8)])
def test_a_last_layer_may_read_any_layout_and_write_the_plain_image(kind, channels):
    """With what is added to its result as it stands, and no wide one."""

    def ways(channels):
        b = ProgramBuilder("p")
        x = b.port("input", "x", IMAGE, "float32")
        weights = b.constant(np.ones((channels, 17, 1, 1), "float32"))
        shape = (2, channels, 6, 5)
        added = b.port("input", "added", shape, "float32")
        b.step(
            "step",
            kind((1, 1), (0, 0, 0, 0), (1, 1), 1),
            shape,
            [("src", x), ("weights", weights)],
            post_ops=(ir.BinaryPostOp("add", added),),
        )
        program = b.finish()
        return {tuple(way) for way in options_of(program, program.steps[0], RULES)}

    def plain_results(channels):
        return {source for source, _, result, added in ways(channels) if result == added == PLAIN}

    assert plain_results(channels) == {PLAIN, LAST, BLOCKED}
    assert plain_results(9) == {PLAIN}


@pytest.mark.parametrize(
    ("role", "shape", "follows"),
    [
        ("src1", IMAGE, True),
        ("src1", (1, 1, 1, 1), False),
        ("src1", (2, 17, 1, 1), True),
        ("src1", (1, 17, 1, 1), True),
        ("constant", (1, 17, 1, 1), False),
        ("constant", (1, 1, 6, 1), True),
        ("src1", (1, 1, 6, 1), True),
    ],
)
def test_the_second_operand_of_a_binary_step(role, shape, follows):
    """Whole tensors and gates stand as the first does; constants for each channel, and numbers, do not."""
    program = one(ir.Binary("mul"), IMAGE, **{role: shape})
    for layout in (LAST, BLOCKED):
        second = layout if follows else PLAIN
        assert uniform(program, program.steps[0], layout) == (layout, second, layout)


@pytest.mark.parametrize(("shape", "follows"), [(IMAGE, True), ((1, 17, 1, 1), False), ((2, 17, 1, 1), True)])
def test_what_a_post_op_reads(shape, follows):
    program = one(CONV, IMAGE, weights=(17, 17, 1, 1), other=shape)
    *operands, other, dst = program.steps[0].operands
    step = replace(
        program.steps[0], operands=(*operands, dst), post_ops=(ir.BinaryPostOp("add", other.value),)
    )
    assert uniform(program, step, LAST) == (LAST, PLAIN, LAST, LAST if follows else PLAIN)


def test_an_inner_product_reads_its_image_in_any_layout():
    b = ProgramBuilder("p")
    x = b.port("input", "x", IMAGE, "float32")
    weights = b.constant(np.ones((5, 17, 6, 5), "float32"))
    b.step("fc", ir.InnerProduct(), (2, 5), [("src", x), ("weights", weights)])
    program = b.finish()
    assert offered(program, BLOCKED, "plain") == [(tag, PLAIN, "ab") for tag in (BLOCKED, PLAIN, LAST)]
    assert in_layout(program, program.steps[0], LAST) == (LAST, PLAIN, "ab")


def test_what_a_step_touches():
    """Operands, then what its post-ops read; most post-ops read nothing."""
    operands = (ir.Operand("src", 4), ir.Operand("weights", 2), ir.Operand("dst", 5))
    post_ops = (
        ir.EltwisePostOp("relu", 0.0, 0.0),
        ir.BinaryPostOp("add", 7),
        ir.SumPostOp(1.0),
        ir.BinaryPostOp("mul", 4),
        ir.DepthwisePostOp(3, 1, 1),
    )
    assert operands_of(ir.Step("s", CONV, operands, post_ops)) == [
        ("src", 4), ("weights", 2), ("dst", 5), ("post_op", 7), ("post_op", 4),
    ]  # fmt: skip


def test_a_cast_follows_its_source_and_may_change_the_layout_on_the_way() -> None:
    """As what the program asks for as well: a transpose that converts is one step."""
    turned = "acbd"
    values = (
        ir.Value("x", (1, 12, 128, 64), "float32", "input", turned, 0),
        ir.Value("y", (1, 12, 128, 64), "bfloat16", "local", "abcd"),
    )
    step = ir.Step("cast", ir.Reorder(), (ir.Operand("src", 0), ir.Operand("dst", 1)))
    program = ir.Program("p", values, (step,))
    found = candidates(program, step, "aBcd16b", "cost", RULES)
    assert found[0] == ("aBcd16b", "aBcd16b")
    assert {("abcd", "acdb"), ("acdb", "abcd"), ("acdb", "acdb"), (turned, "abcd")} <= set(found)
    copied = program.with_value(1, dtype="float32")
    alike = [(layout, layout) for layout in ("aBcd16b", "acdb", "abcd")]
    assert candidates(copied, step, "aBcd16b", "cost", RULES) == [(turned, "abcd"), *alike]
    stands = [(turned, "abcd"), ("abcd", "abcd")]
    assert candidates(copied, step, "aBcd16b", "cost", LayoutRules()) == stands


# --- rules of libraries -------------------------------------------------------------------------------------


def test_a_library_without_rules_is_asked_for_what_stands_there() -> None:
    for attrs in (POOL, RELU):
        program = one(attrs, IMAGE).with_value(0, layout=LAST)
        step = program.steps[0]
        assert candidates(program, step, LAST, "cost", LayoutRules()) == [(LAST, PLAIN), (PLAIN, PLAIN)]


def test_a_library_says_which_forms_it_takes() -> None:
    rules = LayoutRules(4, ("plain", "blocked"), images=(ir.Pooling,), follows=(ir.Eltwise,))
    program = one(POOL, IMAGE)
    assert candidates(program, program.steps[0], LAST, "cost", rules) == [(PLAIN, PLAIN), ("aBcd4b",) * 2]
    assert candidates(program, program.steps[0], LAST, "blocked", rules)[0] == ("aBcd4b",) * 2
    program = one(RELU, IMAGE)
    assert candidates(program, program.steps[0], LAST, "cost", rules)[0] == (LAST, LAST)
    program = one(CONV, IMAGE, weights=(17, 17, 1, 1))
    assert options_of(program, program.steps[0], rules) == [(PLAIN, PLAIN, PLAIN)]
