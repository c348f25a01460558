"""Programs before and after their layouts: reorders where layouts meet, once, and where tensors are small."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from program_text import lines, text

from tvm_mxplan.byoc.backend import Hop
from tvm_mxplan.byoc.onednn.backend import OneDNN
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.core.program.builder import ProgramBuilder
from tvm_mxplan.passes.layout.apply import apply_layouts
from tvm_mxplan.passes.layout.candidates import in_layout
from tvm_mxplan.passes.layout.infer_layouts import infer_layouts

IMAGE = (1, 32, 8, 8)
RELU = ir.Eltwise("relu", 0.0, 0.0)
RELU_POST_OP = ir.EltwisePostOp("relu", 0.0, 0.0)


class Images(ProgramBuilder):
    """A builder of a region of one input, with shorthands that give the new value."""

    def __init__(self, *shape: int) -> None:
        super().__init__("images")
        self.x = self.port("input", "x", shape, "float32")

    def conv(self, src: int, channels: int, kernel: int = 1) -> int:
        batch, inputs, *size = self.values[src].shape
        weights = self.constant(np.zeros((channels, inputs, kernel, kernel), np.float32))
        attrs = ir.Convolution((1, 1), (kernel // 2,) * 4, (1, 1), 1)
        return self.step("conv", attrs, (batch, channels, *size), [("src", src), ("weights", weights)])

    def relu(self, src: int) -> int:
        return self.step("relu", RELU, self.values[src].shape, [("src", src)])

    def pool(self, src: int, factor: int) -> int:
        batch, channels, *size = self.values[src].shape
        window = (factor, factor)
        attrs = ir.Pooling("max", window, window, (0, 0), (1, 1))
        shape = (batch, channels, *(extent // factor for extent in size))  # type: ignore[operator]
        return self.step("pool", attrs, shape, [("src", src)])

    def enlarge(self, src: int, factor: int) -> int:
        batch, channels, *size = self.values[src].shape
        shape = (batch, channels, *(extent * factor for extent in size))  # type: ignore[operator]
        return self.step("resize", ir.Resampling("nearest"), shape, [("src", src)])

    def program(self, *results: int) -> ir.Program:
        for number, result in enumerate(results):
            value = self.values[result]
            self.write_output(result, self.port("output", f"y{number}", value.shape, "float32"))
        return self.finish()


def laid_out(program: ir.Program, *layouts: str, back_to_plain: bool = False) -> str:
    """The program with a layout for each step, as text."""
    choices = [in_layout(program, step, tag) for step, tag in zip(program.steps, layouts, strict=True)]
    return text(apply_layouts(program, choices, back_to_plain=back_to_plain))


# --- reorders where layouts meet ----------------------------------------------------------------------------


def test_a_reorder_stands_where_layouts_meet() -> None:
    b = Images(*IMAGE)
    program = b.program(b.relu(b.conv(b.x, 16)))
    assert text(program) == lines("""
        conv0 abcd = convolution(x abcd)
        relu0 abcd of y0 = eltwise(conv0 abcd)
    """)
    assert laid_out(program, "acdb", "abcd") == lines("""
        x acdb = reorder(x abcd)
        conv0 acdb = convolution(x acdb)
        conv0 abcd = reorder(conv0 acdb)
        relu0 abcd of y0 = eltwise(conv0 abcd)
    """)


def test_two_reorders_that_undo_each_other_are_none() -> None:
    """Between steps of one layout nothing is left of the pair that naive policies make."""
    b = Images(*IMAGE)
    program = b.program(b.conv(b.conv(b.x, 16), 8))
    naive = laid_out(program, "aBcd16b", "acdb", back_to_plain=True)
    assert naive == lines("""
        x aBcd16b = reorder(x abcd)
        conv0 aBcd16b = convolution(x aBcd16b)
        conv0 abcd = reorder(conv0 aBcd16b)
        conv0 acdb = reorder(conv0 abcd)
        conv1 acdb = convolution(conv0 acdb)
        conv1 abcd of y0 = reorder(conv1 acdb)
    """)
    assert laid_out(program, "acdb", "acdb") == lines("""
        x acdb = reorder(x abcd)
        conv0 acdb = convolution(x acdb)
        conv1 acdb = convolution(conv0 acdb)
        conv1 abcd of y0 = reorder(conv1 acdb)
    """)


def test_one_reorder_for_all_who_want_a_value_so() -> None:
    b = Images(*IMAGE)
    program = b.program(b.conv(b.x, 16), b.conv(b.x, 8), b.relu(b.x))
    assert laid_out(program, "acdb", "acdb", "abcd") == lines("""
        x acdb = reorder(x abcd)
        conv0 acdb = convolution(x acdb)
        conv0 abcd of y0 = reorder(conv0 acdb)
        conv1 acdb = convolution(x acdb)
        conv1 abcd of y1 = reorder(conv1 acdb)
        relu0 abcd of y2 = eltwise(x abcd)
    """)


def test_the_same_bytes_under_another_name_are_no_reorder() -> None:
    """One pixel: channels last and plain are the same bytes, and are seen as what each step wants."""
    b = Images(1, 32, 1, 1)
    program = b.program(b.conv(b.relu(b.x), 16))
    assert laid_out(program, "abcd", "acdb") == lines("""
        relu0 abcd = eltwise(x abcd)
        conv0 acdb of conv0 = convolution(relu0 acdb of relu0)
    """)


def test_what_a_post_op_reads_is_had_in_its_layout_too() -> None:
    b = Images(*IMAGE)
    y = b.conv(b.x, 24)
    z = b.conv(b.x, 24)
    post_ops = (ir.BinaryPostOp("add", y), RELU_POST_OP, ir.BinaryPostOp("mul", y))
    b.steps[-1] = replace(b.steps[-1], post_ops=post_ops)
    assert laid_out(b.program(z), "acdb", "aBcd16b") == lines("""
        x acdb = reorder(x abcd)
        conv0 acdb = convolution(x acdb)
        x aBcd16b = reorder(x abcd)
        conv0 aBcd16b = reorder(conv0 acdb)
        conv1 aBcd16b = convolution(x aBcd16b) + add conv0 aBcd16b + mul conv0 aBcd16b
        conv1 abcd of y0 = reorder(conv1 aBcd16b)
    """)


def test_weights_and_vectors_stay_as_they_are() -> None:
    b = Images(*IMAGE)
    y = b.conv(b.x, 16)
    vector = b.constant(np.ones((1, 16, 1, 1), np.float32))
    program = b.program(b.step("add", ir.Binary("add"), (1, 16, 8, 8), [("src", y), ("src1", vector)]))
    assert laid_out(program, "aBcd16b", "aBcd16b") == lines("""
        x aBcd16b = reorder(x abcd)
        conv0 aBcd16b = convolution(x aBcd16b)
        add0 aBcd16b = binary(conv0 aBcd16b, constant1 abcd)
        add0 abcd of y0 = reorder(add0 aBcd16b)
    """)


# --- where the choice by cost puts them ---------------------------------------------------------------------


def reorders(program: ir.Program) -> list[tuple[object, ...]]:
    """Shapes of what is reordered."""
    return [program.values[step.dst].shape for step in program.steps if isinstance(step.attrs, ir.Reorder)]


@pytest.mark.parametrize(
    ("size", "change", "left"),
    [
        (64, lambda b, y: b.pool(y, 8), [(1, 64, 64, 64), (1, 64, 8, 8)]),
        (32, lambda b, y: b.enlarge(y, 4), [(1, 64, 32, 32), (1, 64, 32, 32)]),
    ],
    ids=["below a pooling", "above an enlargement"],
)
def test_a_reorder_stands_where_the_image_is_small(
    size: int, change: Callable[[Images, int], int], left: list[tuple[int, ...]]
) -> None:
    b = Images(1, 64, size, size)
    after, decision, _ = infer_layouts(b.program(change(b, b.conv(b.conv(b.x, 64, 3), 64, 3))), OneDNN())
    assert decision.gap == 0.0
    assert reorders(after) == left, text(after)


def test_a_dense_layer_reads_the_image_as_it_is_pooled() -> None:
    b = Images(1, 64, 32, 32)
    image = b.pool(b.conv(b.conv(b.x, 64, 3), 64, 3), 2)
    weights = b.constant(np.zeros((10, 64, 16, 16), np.float32))
    operands = [("src", image), ("weights", weights)]
    after, *_ = infer_layouts(b.program(b.step("dense", ir.InnerProduct(), (1, 10), operands)), OneDNN())
    assert text(after) == lines("""
        x acdb = reorder(x abcd)
        conv0 acdb = convolution(x acdb)
        conv1 acdb = convolution(conv0 acdb)
        pool0 acdb = pooling(conv1 acdb)
        dense0 ab of y0 = inner_product(pool0 acdb)
    """)


@pytest.mark.parametrize("policy", ["any", "channels_last", "blocked", "plain", "naive"])
def test_greedy_policies_prove_nothing(policy: str) -> None:
    b = Images(*IMAGE)
    _, decision, _ = infer_layouts(b.program(b.conv(b.x, 16)), OneDNN(), policy)  # type: ignore[arg-type]
    assert decision.cost_us < 0
    assert str(decision).startswith(f"layouts by policy {policy} in ")


def test_only_the_naive_policy_goes_back_to_plain_after_each_step() -> None:
    b = Images(*IMAGE)
    program = b.program(b.relu(b.relu(b.x)))
    choices = [in_layout(program, step, "acdb") for step in program.steps]
    after = {naive: text(apply_layouts(program, choices, back_to_plain=naive)) for naive in (False, True)}
    assert text(apply_layouts(program, choices)) == after[False] != after[True]
    assert (after[False].count("reorder"), after[True].count("reorder")) == (2, 4)


def test_a_result_that_is_the_first_value_is_shown() -> None:
    """A value that aliases the output stays plain, also where the output is value 0."""
    image = (1, 16, 4, 4)
    values = (
        ir.Value("y", image, "float32", "output", "abcd", 0),
        ir.Value("x", image, "float32", "input", "abcd", 0),
        ir.Value("v", image, "float32", "local", "abcd", alias_of=0),
    )
    relu = ir.Eltwise("relu", 0.0, 0.0)
    step = ir.Step("relu", relu, (ir.Operand("src", 1), ir.Operand("dst", 2)))
    after = apply_layouts(ir.Program("p", values, (step,)), [("acdb", "acdb")])
    assert [one.kind for one in after.steps] == ["reorder", "eltwise", "reorder"]
    last = after.values[after.steps[-1].dst]
    assert (last.layout, after.values[after.root(after.steps[-1].dst)].kind) == ("abcd", "output")


def test_an_output_that_is_read_again_is_read_as_its_step_wrote_it() -> None:
    b = Images(*IMAGE)
    first = b.relu(b.x)
    program = b.program(first, b.relu(first))
    after = apply_layouts(program, [in_layout(program, step, "acdb") for step in program.steps])
    assert [step.kind for step in after.steps].count("reorder") == 3  # the input, and both outputs
    one, other = (step for step in after.steps if isinstance(step.attrs, ir.Eltwise))
    assert other.operand("src") == one.dst and after.values[one.dst].layout == "acdb"


def test_what_stores_the_same_bytes_has_nothing_to_go_back_to() -> None:
    """Channels last of single pixels are plain, also for the policy that makes every result plain."""
    b = Images(1, 32, 1, 1)
    program = b.program(b.relu(b.relu(b.x)))
    assert laid_out(program, "acdb", "acdb", back_to_plain=True) == laid_out(program, "acdb", "acdb")
    assert "reorder" not in laid_out(program, "acdb", "acdb", back_to_plain=True)


def test_what_stands_between_two_conversions_has_bytes_of_its_own() -> None:
    """Though it is made for a value that is part of another one."""
    b = Images(*IMAGE)
    program = b.program(b.relu(b.relu(b.x)))
    out = next(number for number, value in enumerate(program.values) if value.alias_of >= 0)
    program = program.with_value(out, alias_offset=64)

    def hops(_value: ir.Value, layout: str) -> tuple[Hop, ...]:
        return Hop("other", "abdc"), Hop("", layout)

    choices = [in_layout(program, step, "acdb") for step in program.steps]
    after = apply_layouts(program, choices, hops=hops)
    between = [value for value in after.values if value.layout == "abdc"]
    assert len(between) == 2
    assert {(value.kind, value.index, value.alias_of, value.alias_offset) for value in between} == {
        ("local", -1, -1, 0)
    }
    made = [step for step in after.steps if isinstance(step.attrs, ir.Reorder)]
    assert [step.library for step in made] == ["other", ""] * 2
    assert [step.name.endswith("_by_abdc") for step in made] == [True, False] * 2
