"""Layer norms of whole images: which are taken in the order of channels last, and the same numbers."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from small_programs import Small, fused, kinds, run

from tvm_mxplan.byoc.onednn.backend import OneDNN
from tvm_mxplan.byoc.onednn.rewrites import fusion
from tvm_mxplan.byoc.onednn.rewrites.norms import normalize_channels_last
from tvm_mxplan.byoc.rewrites.graph import Graph
from tvm_mxplan.core.layout.layout import plain_layout
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.passes.layout.infer_layouts import infer_layouts

IMAGE = (2, 16, 5, 7)
ROWS = (2, 560)


def normalized(b: Small, src: int, rows: tuple[int, ...] = ROWS) -> int:
    """The image ``src`` with the mean and the variance of each sample removed."""
    norm = b.step("layer_norm", ir.LayerNormalization(1e-5), rows, [("src", b.reshape(src, rows))])
    return b.reshape(norm, b.shape(src))


def scaled(b: Small, src: int) -> int:
    return b.binary(b.binary(src, b.numbers(1, 16, 1, 1), "mul"), b.numbers(1, 16, 1, 1), "add")


def block(rows: tuple[int, ...] = ROWS) -> tuple[Small, int]:
    """A convolution, a norm of one group, and a sum of both."""
    b = Small(IMAGE, (2, 3, 5, 7))
    x = b.conv(b.inputs[0], 16)
    return b, b.conv(b.binary(scaled(b, normalized(b, x, rows)), x), 16)


@pytest.mark.parametrize("rows", [ROWS, (2, 1, 560)], ids=["rows", "rows of one group"])
def test_a_norm_of_an_image_needs_no_reorder_where_channels_are_last(rows: tuple[int, ...]) -> None:
    b, y = block(rows)
    after = fused(b, y)
    assert kinds(after).count("layer_normalization") == 1
    planned = infer_layouts(after, OneDNN()).program
    (norm,) = (step for step in planned.steps if step.kind == "layer_normalization")
    inside = [step.kind for step in planned.steps[1:-1]]  # behind the input, in front of the output
    assert "reorder" not in inside, inside
    assert planned.values[norm.operand("src")].shape == rows


def test_the_numbers_stay_in_channels_last() -> None:
    b, y = block()
    b.write_output(y, b.output)
    before, constants = b.finish(), list(b.constants)
    after, changed, _ = fusion.fuse(before, constants)
    planned = infer_layouts(after, OneDNN()).program
    np.testing.assert_allclose(run(planned, changed), run(before, constants), rtol=1e-4, atol=1e-4)


def test_a_norm_that_is_read_as_rows_stays() -> None:
    b = Small(ROWS, IMAGE)
    x = b.eltwise(b.inputs[0], "tanh")
    norm = b.step("layer_norm", ir.LayerNormalization(1e-5), ROWS, [("src", b.reshape(x, ROWS))])
    assert "reorder" not in kinds(fused(b, b.eltwise(norm, "tanh")))


def test_a_norm_of_several_groups_stays() -> None:
    b = Small(IMAGE, IMAGE)
    groups = (8, 140)
    assert "reorder" not in kinds(fused(b, scaled(b, normalized(b, b.eltwise(b.inputs[0], "tanh"), groups))))


def test_a_norm_of_an_input_stays() -> None:
    b = Small(IMAGE, IMAGE)
    assert "reorder" not in kinds(fused(b, scaled(b, normalized(b, b.inputs[0]))))


# --- one norm: the form that is taken, and each way not to have it ------------------------------------------

RELU = ir.Eltwise("relu", 0.0, 0.0)
X, MADE, SEEN, NORM, BACK, OUT = range(6)


def one(
    image: tuple[int, ...] = IMAGE, rows: tuple[int, ...] = (), maker: ir.Attributes = RELU
) -> ir.Program:
    """An image is made, seen as rows, normalized, seen as the image again, and read."""
    rows = rows or (image[0], math.prod(image[1:]))

    def value(name: str, shape: tuple[int, ...], kind: ir.ValueKind, index: int = -1, of: int = -1):
        return ir.Value(name, shape, "float32", kind, plain_layout(len(shape)), index, alias_of=of)

    values = (
        value("x", image, "input", 0),
        value("made", image, "local"),
        value("seen", rows, "local", of=MADE),
        value("norm", rows, "local"),
        value("back", image, "local", of=NORM),
        value("out", image, "output", 0),
    )
    steps = ((maker, X, MADE), (ir.LayerNormalization(1e-5), SEEN, NORM), (RELU, BACK, OUT))
    return ir.Program(
        "p",
        values,
        tuple(
            ir.Step(f"s{at}", attrs, (ir.Operand("src", src), ir.Operand("dst", dst)))
            for at, (attrs, src, dst) in enumerate(steps)
        ),
    )


def rewritten(program: ir.Program) -> ir.Program:
    graph = Graph(program, [])
    normalize_channels_last(graph)
    return graph.finish()


def is_taken(program: ir.Program) -> bool:
    after = rewritten(program)
    turned = any(step.kind == "reorder" for step in after.steps)
    assert turned or after == program, "what is not taken stays as it is"
    return turned


@pytest.mark.parametrize(
    ("image", "order"),
    [((2, 6, 10), "acb"), (IMAGE, "acdb"), ((3, 6, 2, 5, 7), "acdeb"), ((2, 6, 1, 7), "acdb")],
)
def test_the_norm_is_that_of_a_copy_with_channels_last(image: tuple[int, ...], order: str) -> None:
    after = rewritten(one(image))
    assert [step.kind for step in after.steps] == ["eltwise", "reorder", "layer_normalization", "eltwise"]
    made, copy, norm, read = after.steps
    values = after.values
    last = (image[0], *image[2:], image[1])
    source, copied = values[copy.operand("src")], values[copy.dst]
    assert (source.alias_of, source.shape, copied.shape) == (made.dst, last, last)
    assert copied.layout == plain_layout(len(image)) and copied.alias_of < 0
    rows = values[norm.operand("src")]
    assert (rows.alias_of, rows.shape) == (copy.dst, (image[0], math.prod(image[1:])))
    back = values[read.operand("src")]
    seen = values[back.alias_of]
    assert (back.shape, back.layout, seen.shape, seen.alias_of) == (image, order, last, norm.dst)
    planned = infer_layouts(after, OneDNN()).program
    np.testing.assert_allclose(run(planned, []), run(one(image), []), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("maker", "taken"),
    [
        (ir.Convolution((1, 1), (0, 0, 0, 0), (1, 1), 1), True),
        (ir.Deconvolution((1, 1), (0, 0, 0, 0), (1, 1), 1), True),
        (ir.Pooling("max", (1, 1), (1, 1), (0, 0), (1, 1)), True),
        (ir.Resampling("nearest"), True),
        (ir.Binary("add"), True),
        (ir.Eltwise("tanh", 0.0, 0.0), True),
        (ir.Concat(1), True),
        (ir.Softmax("softmax", 1), False),
        (ir.MatMul(), False),
        (ir.Shuffle(1, 2), False),
    ],
)
def test_images_that_are_stored_in_several_layouts_are_turned(maker: ir.Attributes, taken: bool) -> None:
    assert is_taken(one(maker=maker)) == taken


@pytest.mark.parametrize(
    ("image", "rows", "taken"),
    [
        (IMAGE, (2, 1, 560), True),
        (IMAGE, (8, 140), False),
        ((2, 560, 1, 1), (2, 560), False),  # one pixel has one order
        ((2, 1, 8, 70), (2, 560), False),  # so has one channel
        ((2, 560, 1, 2), (2, 1120), True),
        ((2, 560), (2, 560), False),
        ((2, 2, 2, 2, 2, 5), (2, 80), False),  # more axes than an image has
        ((2, 2, 2, 2, 5), (2, 40), True),
    ],
)
def test_images_of_more_than_one_order_are_turned(
    image: tuple[int, ...], rows: tuple[int, ...], taken: bool
) -> None:
    assert is_taken(one(image, rows)) == taken


@pytest.mark.parametrize(
    ("number", "change"),
    [
        (SEEN, {"layout": "ba"}),
        (SEEN, {"alias_offset": 64}),
        (SEEN, {"kind": "output", "index": 1}),
        (MADE, {"layout": "acdb"}),
        (MADE, {"kind": "output", "index": 1}),
        (NORM, {"kind": "output", "index": 1}),
        (BACK, {"layout": "acdb"}),
        (BACK, {"alias_offset": 64}),
        (BACK, {"kind": "output", "index": 1}),
    ],
)
def test_what_others_see_or_is_stored_otherwise_stays(number: int, change: dict) -> None:
    assert is_taken(one())
    assert not is_taken(one().with_value(number, **change))


def test_a_norm_with_factors_stays() -> None:
    """They come in the order of the first line."""
    program = one()
    scale = ir.Value("scale", (560,), "float32", "constant", "a", 0)
    norm = program.steps[1]
    scaled = replace(norm, operands=(norm.operands[0], ir.Operand("scale", 6), norm.operands[1]))
    changed = replace(
        program, values=(*program.values, scale), steps=(program.steps[0], scaled, program.steps[2])
    )
    assert not is_taken(changed)


def read_too(program: ir.Program, value: ir.Value, reads: int) -> ir.Program:
    """With one more value, and a step behind all others that reads the one of a number."""
    shape = [*program.values, value][reads].shape
    out = ir.Value("more", shape, "float32", "output", plain_layout(len(shape)), 1)
    numbers = len(program.values)
    step = ir.Step("more", RELU, (ir.Operand("src", reads), ir.Operand("dst", numbers + 1)))
    return replace(program, values=(*program.values, value, out), steps=(*program.steps, step))


def view(of: int, shape: tuple[int, ...]) -> ir.Value:
    return ir.Value("view", shape, "float32", "local", plain_layout(len(shape)), alias_of=of)


NEW = len(one().values)


@pytest.mark.parametrize(
    ("value", "reads", "taken"),
    [
        (view(NORM, IMAGE), NEW, True),  # the image once more
        (view(BACK, (2, 560)), BACK, True),
        (view(MADE, (2, 560)), NEW, True),  # what was made is read in any form
        (view(NORM, (4, 280)), BACK, True),  # a view that nobody reads
        (view(NORM, (4, 280)), NEW, False),
        (view(NORM, (4, 280)), NORM, False),
        (view(NORM, (2, 16, 7, 5)), NEW, False),
    ],
)
def test_whoever_reads_the_norm_reads_the_image(value: ir.Value, reads: int, taken: bool) -> None:
    program = read_too(one(), value, reads)
    after = rewritten(program)
    assert any(step.kind == "reorder" for step in after.steps) == taken
    if taken:
        images = [after.values[step.operand("src")] for step in after.steps[3:]]
        turned = [image.layout for image in images if image.shape == IMAGE]
        assert turned == ["acdb"] * (1 + (reads in (BACK, NEW) and value.alias_of != MADE))


def test_the_image_is_found_behind_views_of_the_norm() -> None:
    """The rows are seen in another form first, which nobody reads."""
    program = one()
    between = view(NORM, (4, 280))
    values = [*program.values, between]
    values[BACK] = replace(values[BACK], alias_of=NEW)
    behind = replace(program, values=tuple(values))
    assert any(step.kind == "reorder" for step in rewritten(behind).steps)
    written = ir.Step("write", RELU, (ir.Operand("src", X), ir.Operand("dst", NEW)))
    assert not any(
        step.kind == "reorder"
        for step in rewritten(replace(behind, steps=(*behind.steps[:2], written, behind.steps[2]))).steps
    )


def test_a_norm_that_nobody_reads_stays() -> None:
    program = one()
    unread = replace(program, steps=program.steps[:2])
    graph = Graph(unread, [])
    graph.forget_views(NORM)
    normalize_channels_last(graph)
    assert [step.kind for step in graph.finish().steps] == ["eltwise", "layer_normalization"]


def test_a_norm_into_a_part_of_something_stays() -> None:
    program = one()
    whole = ir.Value("whole", (4, 560), "float32", "local", "ab")
    values = [*program.values, whole]
    values[NORM] = replace(values[NORM], alias_of=NEW)
    part = replace(program, values=tuple(values))
    assert not any(step.kind == "reorder" for step in rewritten(part).steps)
