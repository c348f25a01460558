"""Copies of transposed views on plain programs: who reads what, each view once, constants ahead of time."""

from __future__ import annotations

import pytest
from small_programs import Small, fused, kinds

from tvm_mxplan.byoc.onednn.rewrites.fusion import fuse
from tvm_mxplan.byoc.onednn.rewrites.transposes import copy_transposed
from tvm_mxplan.byoc.rewrites.graph import Graph
from tvm_mxplan.core.layout.layout import channels_last, plain_layout
from tvm_mxplan.core.program import program as ir

SHAPE = (2, 3, 4, 5)


def rewritten(b: Small, result: int) -> ir.Program:
    """The program afterwards; it cannot be run before, that is the point."""
    b.write_output(result, b.output)
    return fuse(b.finish(), b.constants)[0]


def source_layouts(program: ir.Program) -> list[str]:
    return [program.values[step.operand("src")].layout for step in program.steps]


def test_elementwise_steps_read_a_copy():
    b = Small((2, 4, 3, 5), SHAPE)
    after = rewritten(b, b.eltwise(b.permute(b.inputs[0], (0, 2, 1, 3)), "exp"))
    assert kinds(after) == ["reorder", "eltwise"]
    assert source_layouts(after) == ["acbd", "abcd"]


def test_channels_last_is_read_as_it_stands():
    b = Small((2, 5, 3, 4), SHAPE)
    after = rewritten(b, b.eltwise(b.permute(b.inputs[0], (0, 3, 1, 2)), "exp"))
    assert kinds(after) == ["eltwise"]
    assert source_layouts(after) == ["acdb"]


def test_extents_of_one_change_no_bytes():
    b = Small((5, 4, 1), (1, 5, 4))
    after = fused(b, b.eltwise(b.permute(b.inputs[0], (1, 2, 0)), "exp"))
    assert kinds(after) == ["eltwise"]
    assert source_layouts(after) == ["abc"]


def test_one_copy_for_several_readers():
    b = Small((2, 4, 3, 5), SHAPE)
    view = b.permute(b.inputs[0], (0, 2, 1, 3))
    after = rewritten(b, b.binary(b.eltwise(view, "exp"), view, "mul"))
    assert kinds(after).count("reorder") == 1


def test_post_op_operands_are_copied():
    b = Small((2, 7, 3, 5), (2, 7, 3, 5), (2, 3, 7, 5))
    y = b.binary(b.conv(b.inputs[0], 7), b.permute(b.inputs[1], (0, 2, 1, 3)))
    after = fused(b, y)
    assert kinds(after) == ["reorder", "convolution"]
    assert len(after.steps[1].post_ops) == 1


def test_post_op_operands_of_products_are_copied_whatever_their_rows():
    """Products read matrices by their strides, and addends in plain order alone."""
    b = Small((2, 7, 3, 5), (2, 7, 3, 6), (2, 3, 7, 5))
    y = b.binary(b.matmul(b.inputs[0], 5), b.permute(b.inputs[1], (0, 2, 1, 3)))
    after = fused(b, y)
    assert kinds(after) == ["reorder", "matmul"] and len(after.steps[1].post_ops) == 1
    reorder, matmul = after.steps
    assert after.root(matmul.post_ops[0].value) == reorder.dst  # type: ignore[union-attr]


@pytest.mark.parametrize("role", ["src", "key", "value"])
@pytest.mark.parametrize(("axes", "copied"), [((0, 2, 1, 3), False), ((0, 1, 3, 2), True)])
def test_attention_reads_what_has_its_numbers_side_by_side(role: str, axes: tuple[int, ...], copied: bool):
    """Heads behind rows are read as they stand, and rows behind numbers are not."""
    shape = (2, 3, 4, 5)
    stored = tuple(shape[axes.index(axis)] for axis in range(4))
    b = Small((2, 4, 3, 5), *(stored if one == role else shape for one in ("src", "key", "value")))
    operands = [
        (one, b.permute(value, axes) if one == role else value)
        for one, value in zip(("src", "key", "value"), b.inputs, strict=True)
    ]
    b.write_output(b.step("attention", ir.Attention(0.5), (2, 4, 3, 5), operands), b.output)
    graph = Graph(b.finish(), list(b.constants))
    copy_transposed(graph)
    program, _ = graph.close()
    assert ("reorder" in kinds(program)) == copied
    (step,) = [step for step in program.steps if step.kind == "attention"]
    layouts = {one: program.values[step.operand(one)].layout for one in ("src", "key", "value")}
    assert layouts == dict.fromkeys(layouts, "abcd") | ({} if copied else {role: "acbd"})


def test_constants_are_transposed_ahead_of_time():
    b = Small((2, 4, 3, 5), (2, 4, 3, 5))
    after = fused(b, b.binary(b.inputs[0], b.permute(b.numbers(*SHAPE), (0, 2, 1, 3))))
    assert kinds(after) == ["binary"]


@pytest.mark.parametrize(
    ("axes", "copied"),
    [((0, 1, 3, 2), False), ((1, 0, 2, 3), False), ((2, 0, 3, 1), False), ((0, 3, 1, 2), True)],
)
def test_products_read_weights_along_rows_or_columns(axes, copied):
    shape = tuple(SHAPE[axis] for axis in axes)
    leading, (depth, width) = shape[:2], shape[2:]
    b = Small((*leading, 6, width), (*leading, 6, depth), SHAPE)
    operands = [("src", b.inputs[0]), ("weights", b.permute(b.inputs[1], axes))]
    after = fused(b, b.step("matmul", ir.MatMul(), (*leading, 6, width), operands))
    assert kinds(after) == (["reorder", "matmul"] if copied else ["matmul"])


def test_products_take_constant_weights_in_any_order():
    """They are packed when the program is loaded; a copy in plain order would be one more."""
    b = Small((2, 5, 6, 4), (2, 5, 6, 3))
    stored = b.numbers(*SHAPE)
    weights = b.permute(stored, (0, 3, 1, 2))
    after = fused(
        b, b.step("matmul", ir.MatMul(), (2, 5, 6, 4), [("src", b.inputs[0]), ("weights", weights)])
    )
    assert kinds(after) == ["matmul"]
    read = after.values[after.steps[0].operand("weights")]
    assert read.layout == "acdb" and after.values[read.alias_of].shape == SHAPE


@pytest.mark.parametrize("role", ["weights", "recurrence"])
def test_matrices_of_recurrent_layers_are_read_as_they_stand(role):
    """The runtime packs them, whatever their order."""
    steps, samples, units, gates = 5, 2, 3, 4
    shape = (1, 1, units, gates, units)
    turned = (1, 1, gates, units, units)
    b = Small((steps, samples, units), (steps, samples, units))
    both = {name: b.numbers(*(turned if name == role else shape)) for name in ("weights", "recurrence")}
    both[role] = b.permute(both[role], (0, 1, 3, 2, 4))
    operands = [("src", b.inputs[0]), *both.items()]
    attrs = ir.Recurrent("lstm", "forward")
    b.write_output(b.step("lstm", attrs, (steps, samples, units), operands), b.output)
    graph = Graph(b.finish(), list(b.constants))
    copy_transposed(graph)
    program, _ = graph.close()
    assert kinds(program) == ["recurrent"]
    layouts = {name: program.values[program.steps[0].operand(name)].layout for name in both}
    assert layouts == {**dict.fromkeys(both, "abcde"), role: "abdce"}


def test_products_read_any_source():
    b = Small((4, 2, 5, 6), SHAPE)
    after = fused(b, b.matmul(b.permute(b.inputs[0], (2, 0, 3, 1)), 6))
    assert kinds(after) == ["matmul"]


def test_layer_norm_of_transposed_heads():
    b = Small((2, 4, 3, 5), SHAPE)
    view = b.permute(b.inputs[0], (0, 2, 1, 3))
    y = b.step("layer_norm", ir.LayerNormalization(1e-5), (2, 4, 3, 5), [("src", view)])
    assert kinds(rewritten(b, y)) == ["reorder", "layer_normalization"]


@pytest.mark.parametrize("kind", ["convolution", "deconvolution", "inner_product"])
def test_weights_that_the_runtime_packs_are_read_as_they_stand(kind):
    """Whatever their order; an elementwise step beside it reads a copy of the same view."""
    attrs = {
        "convolution": ir.Convolution((1, 1), (0, 0, 0, 0), (1, 1), 1),
        "deconvolution": ir.Deconvolution((1, 1), (0, 0, 0, 0), (1, 1), 1),
        "inner_product": ir.InnerProduct(),
    }[kind]
    out = (2, 3) if kind == "inner_product" else (2, 3, 4, 5)
    window = (4, 5) if kind == "inner_product" else (1, 1)
    b = Small(out, (2, 7, 4, 5), (7, 3, *window))
    view = b.permute(b.inputs[1], (1, 0, 2, 3))
    y = b.step(kind, attrs, out, [("src", b.inputs[0]), ("weights", view)])
    b.eltwise(view, "exp")
    b.write_output(y, b.output)
    graph = Graph(b.finish(), list(b.constants))
    copy_transposed(graph)
    program, _ = graph.close()
    (step,) = [step for step in program.steps if step.kind == kind]
    assert program.values[step.operand("weights")].layout == "bacd"
    (beside,) = [step for step in program.steps if step.kind == "eltwise"]
    assert program.values[beside.operand("src")].layout == "abcd"


@pytest.mark.parametrize("shape", [(2, 3), (4, 2, 3), (2, 3, 4, 5), (2, 3, 4, 5, 6), (2, 3, 4, 5, 3, 2)])
def test_other_steps_read_what_is_plain_or_has_channels_last(shape):
    rank = len(shape)
    for axes in ((*range(1, rank), 0), (0, *range(2, rank), 1)):
        b = Small(tuple(shape[axis] for axis in axes), shape)
        view = b.permute(b.inputs[0], axes)
        layout = b.values[view].layout
        kind = kinds(rewritten(b, b.eltwise(view, "exp")))
        common = layout == plain_layout(rank) or (3 <= rank <= 5 and layout == channels_last(rank))
        assert kind == (["eltwise"] if common else ["reorder", "eltwise"]), layout
