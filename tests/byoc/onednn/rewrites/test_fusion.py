"""Fusion on plain programs: who takes whom, in which order, and what keeps steps apart."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
from small_programs import Small, chain, fused, kinds

from tvm_mxplan.byoc.onednn import library
from tvm_mxplan.byoc.onednn.broadcasting import broadcast_runs, can_be_fast, is_fast, is_per_channel
from tvm_mxplan.byoc.onednn.rewrites.fusion import MAX_POST_OPS, _joined, _last_or_whole, fuse, takes_binary
from tvm_mxplan.core.layout.layout import channels_last, plain_layout
from tvm_mxplan.core.program import program as ir

IMAGE = (2, 5, 6, 6)


def test_eltwise_goes_into_its_producer():
    b = Small((2, 7, 6, 6), IMAGE)
    after = fused(b, b.eltwise(b.conv(b.inputs[0], 7), "relu"))
    assert kinds(after) == ["convolution"]
    assert after.steps[0].post_ops == (ir.EltwisePostOp("relu", 0.0, 0.0),)


def test_post_ops_keep_their_order():
    b = Small((2, 7, 6, 6), IMAGE, (2, 7, 6, 6))
    y = b.eltwise(b.conv(b.inputs[0], 7), "tanh")
    y = b.eltwise(b.binary(y, b.inputs[1]), "relu")
    y = b.binary(y, b.numbers(1, 7, 1, 1), "mul")
    after = fused(b, b.eltwise(y, "abs"))
    assert chain(after.steps[0]) == ["tanh", "add", "relu", "mul", "abs"]


@pytest.mark.parametrize("swapped", [False, True])
def test_the_latest_of_two_equal_producers_takes_the_sum(swapped):
    b = Small((2, 7, 6, 6), IMAGE)
    early = b.conv(b.inputs[0], 7)
    late = b.conv(b.inputs[0], 7, kernel=1)
    after = fused(b, b.binary(late, early) if swapped else b.binary(early, late))
    assert [chain(step) for step in after.steps] == [[], ["add"]]


def test_a_heavy_producer_comes_before_a_later_light_one():
    b = Small(IMAGE, IMAGE)
    heavy = b.conv(b.inputs[0], 5)
    light = b.eltwise(b.inputs[0], "tanh")
    after = fused(b, b.binary(light, heavy))
    assert kinds(after) == ["eltwise", "convolution"]
    assert chain(after.steps[1]) == ["add"]


def test_the_producer_moves_behind_what_its_post_op_reads():
    b = Small(IMAGE, IMAGE)
    early = b.conv(b.inputs[0], 5)
    pooled = b.step(
        "pooling", ir.Pooling("max", (3, 3), (1, 1), (1, 1), (1, 1)), IMAGE, [("src", b.inputs[0])]
    )
    after = fused(b, b.binary(early, pooled))
    assert kinds(after) == ["pooling", "convolution"]


@pytest.mark.parametrize("algorithm", ["add", "mul", "sub", "div"])
def test_only_commutative_operations_take_their_second_operand(algorithm):
    b = Small(IMAGE, IMAGE)
    x = b.eltwise(b.conv(b.eltwise(b.inputs[0], "abs"), 5), "linear", 1.0, 1.0)
    after = fused(b, b.binary(b.inputs[0], x, algorithm))
    assert len(after.steps) == (2 if algorithm in ("add", "mul") else 3)


def test_a_value_read_twice_stays():
    b = Small(IMAGE, IMAGE)
    x = b.conv(b.inputs[0], 5)
    after = fused(b, b.binary(b.eltwise(x, "relu"), b.eltwise(x, "tanh")))
    assert kinds(after) == ["convolution", "eltwise", "binary"]


def test_a_value_added_to_itself_stays():
    b = Small(IMAGE, IMAGE)
    x = b.conv(b.inputs[0], 5)
    assert kinds(fused(b, b.binary(x, x))) == ["convolution", "binary"]


def test_an_output_that_is_read_inside_stays():
    b = Small(IMAGE, IMAGE)
    second = b.port("output", "z", IMAGE, "float32")
    x = b.conv(b.inputs[0], 5)
    b.write_output(x, second)
    b.write_output(b.eltwise(x, "relu"), b.output)
    after = fuse(b.finish(), b.constants).program
    assert kinds(after) == ["convolution", "eltwise"]


def test_a_value_that_is_seen_in_another_shape_stays():
    b = Small((2, 180), IMAGE)
    flat = b.reshape(b.conv(b.inputs[0], 5), (2, 180))
    assert kinds(fused(b, b.eltwise(flat, "relu"))) == ["convolution", "eltwise"]


def test_chains_are_cut_at_the_limit():
    b = Small(IMAGE, IMAGE)
    y = b.conv(b.inputs[0], 5)
    for _ in range(MAX_POST_OPS + 1):
        y = b.eltwise(y, "tanh")
    after = fused(b, y)
    assert [len(step.post_ops) for step in after.steps] == [MAX_POST_OPS, 0]


@pytest.mark.parametrize(
    ("first", "algorithm", "rest"),
    [
        (("exp", 0.0, 0.0), "mul", ["exp", "tanh"]),
        (("linear", 2.0, 0.0), "mul", ["tanh"]),
        (("linear", 1.0, 0.5), "add", ["tanh"]),
        (("linear", 2.0, 0.5), "mul", ["linear", "tanh"]),
    ],
)
def test_a_chain_that_starts_with_eltwise_becomes_binary(first, algorithm, rest):
    """oneDNN's eltwise takes post-ops in reference code only."""
    b = Small(IMAGE, IMAGE)
    after = fused(b, b.eltwise(b.eltwise(b.inputs[0], *first), "tanh"))
    assert after.steps[0].attrs == ir.Binary(algorithm)
    assert chain(after.steps[0]) == rest


def test_a_single_eltwise_stays_one():
    b = Small(IMAGE, IMAGE)
    assert kinds(fused(b, b.eltwise(b.inputs[0], "exp"))) == ["eltwise"]


def test_two_lines_are_one():
    b = Small((3, 7), (3, 4))
    y = b.eltwise(b.eltwise(b.matmul(b.inputs[0], 7), "tanh"), "linear", 2.0, 1.0)
    after = fused(b, b.eltwise(y, "linear", 3.0, -1.0))
    assert after.steps[0].post_ops[-1] == ir.EltwisePostOp("linear", 6.0, 2.0)


def test_shuffle_and_softmax_take_nothing():
    b = Small((2, 6, 4, 4), (2, 6, 4, 4))
    y = b.step("shuffle", ir.Shuffle(1, 2), (2, 6, 4, 4), [("src", b.inputs[0])])
    y = b.step("softmax", ir.Softmax("softmax", 1), (2, 6, 4, 4), [("src", b.eltwise(y, "tanh"))])
    after = fused(b, b.eltwise(y, "sqrt"))
    assert kinds(after) == ["shuffle", "eltwise", "softmax", "eltwise"]


# --- the tables of broadcasts, held against the library itself --------------------------------------------


Shapes = list[tuple[str, tuple[int, ...]]]


def _implementation(attrs: ir.Attributes, shapes: Shapes, layout: str) -> str:
    """A module that runs one step; a last operand in the role post_op is added to the result."""
    values: list[ir.Value] = []
    for role, shape in shapes:
        kind = {"dst": "local", "weights": "constant"}.get(role, "input")
        tag = plain_layout(len(shape)) if role == "weights" else layout
        index = -1 if kind == "local" else sum(value.kind == kind for value in values)
        values.append(ir.Value(role, shape, "float32", kind, tag, index))  # type: ignore[arg-type]
    operands = tuple(ir.Operand(role, i) for i, (role, _) in enumerate(shapes) if role != "post_op")
    post_ops = tuple(ir.BinaryPostOp("add", i) for i, (role, _) in enumerate(shapes) if role == "post_op")
    program = ir.Program("p", tuple(values), (ir.Step("s", attrs, operands, post_ops),))
    return library.describe(program).steps[0].implementation


def test_what_is_called_fast_is_not_reference_code():
    random = np.random.default_rng(0)
    for _ in range(150):
        dst = tuple(int(random.choice([1, 2, 3, 5])) for _ in range(int(random.integers(1, 7))))
        operand = tuple(size if random.random() < 0.5 else 1 for size in dst)
        if not can_be_fast(operand, dst):
            continue
        if not is_fast(operand, dst):
            runs = broadcast_runs(operand, dst)
            dst = tuple(int(np.prod([dst[axis] for axis in axes])) for _, axes in runs)
            operand = tuple(1 if wide else size for (wide, _), size in zip(runs, dst, strict=True))
        shapes = [("src", dst), ("src1", operand), ("dst", dst)]
        implementation = _implementation(ir.Binary("mul"), shapes, plain_layout(len(dst)))
        assert not implementation.startswith("ref"), (dst, operand)


_IMAGE, _HALF, _LAST = (2, 17, 4, 4), (2, 17, 2, 2), channels_last(4)
_CASES: list[tuple[ir.Attributes, Shapes, str]] = [
    (
        ir.Convolution((1, 1), (0, 0, 0, 0), (1, 1), 1),
        [("src", (2, 3, 4, 4)), ("weights", (17, 3, 1, 1)), ("dst", _IMAGE)],
        _LAST,
    ),
    (ir.Binary("mul"), [("src", _IMAGE), ("src1", _IMAGE), ("dst", _IMAGE)], _LAST),
    (ir.Pooling("max", (2, 2), (2, 2), (0, 0), (1, 1)), [("src", _IMAGE), ("dst", _HALF)], _LAST),
    (ir.Resampling("linear"), [("src", _HALF), ("dst", _IMAGE)], _LAST),
    (ir.MatMul(), [("src", (5, 4)), ("weights", (4, 17)), ("dst", (5, 17))], "ab"),
    (ir.MatMul(), [("src", (2, 5, 4)), ("weights", (1, 4, 17)), ("dst", (2, 5, 17))], "abc"),
    (ir.MatMul(), [("src", (2, 3, 5, 4)), ("weights", (2, 3, 4, 17)), ("dst", (2, 3, 5, 17))], "abcd"),
]


@pytest.mark.parametrize(("attrs", "shapes", "layout"), _CASES)
def test_binary_post_ops_that_are_fused_are_not_reference_code(attrs, shapes, layout):
    dst = shapes[-1][1]
    taken = 0
    for wide in itertools.product((False, True), repeat=len(dst)):
        operand = tuple(1 if one else size for one, size in zip(wide, dst, strict=True))
        if takes_binary(attrs, operand, dst):
            taken += 1
            implementation = _implementation(attrs, [*shapes, ("post_op", operand)], layout)
            assert not implementation.startswith(("ref", "simple")), (operand, implementation)
    assert taken >= 2


@pytest.mark.parametrize("channels", [1, 3, 17])
@pytest.mark.parametrize("batch", [1, 2])
def test_vectors_behind_images_of_any_size(batch, channels):
    """Of images of one pixel, oneDNN 3.2 takes the wrong elements behind some kinds of step."""
    for pixels in ((), (1,), (2,), (1, 1), (1, 2), (3, 1), (2, 2), (1, 1, 1), (1, 2, 1)):
        shape, vector = (batch, channels, *pixels), (1, channels, *(1,) * len(pixels))
        b = Small(shape, shape)
        y = b.binary(b.binary(b.inputs[0], b.numbers(*vector), "mul"), b.numbers(*vector), "add")
        assert len(fused(b, y).steps) == (2 if batch > 1 < channels and pixels and set(pixels) == {1} else 1)
        b = Small(shape, shape)
        fused(b, b.binary(b.eltwise(b.inputs[0], "tanh"), b.numbers(*vector), "mul"))
        if pixels:
            b = Small(shape, shape)
            y = b.step("resampling", ir.Resampling("nearest"), shape, [("src", b.inputs[0])])
            fused(b, b.binary(y, b.numbers(*vector), "mul"))


@pytest.mark.parametrize(
    ("operand", "dst", "axis", "expected"),
    [
        ((1, 7, 1, 1), (2, 7, 3, 3), 1, True),
        ((1, 1, 1, 1), (2, 7, 3, 3), 1, True),
        ((2, 7, 1, 1), (2, 7, 3, 3), 1, False),
        ((1, 1, 3), (2, 7, 3), 2, True),
        ((1, 1, 3), (2, 7, 3), 1, False),
    ],
)
def test_per_channel(operand, dst, axis, expected):
    assert is_per_channel(operand, dst, axis) is expected


# --- whose step it is ---------------------------------------------------------------------------------------


def test_steps_that_others_took_in_are_told():
    """A pad and a scale fold into the convolution, relu and add are its post-ops, the rest is its own."""
    b = Small((2, 7, 8, 8), IMAGE, (2, 7, 8, 8))
    y = b.conv(b.pad(b.inputs[0], (0, 0, 2, 2), (0, 0, 2, 2)), 7, kernel=3)
    y = b.eltwise(b.binary(y, b.numbers(1, 7, 1, 1), "mul"), "relu")
    y = b.binary(y, b.inputs[1])
    b.write_output(b.step("softmax", ir.Softmax("softmax", 1), b.shape(y), [("src", y)]), b.output)
    after, _, names = fuse(b.finish(), list(b.constants))
    assert [step.name for step in after.steps] == ["convolution0", "softmax0"]
    assert names == dict.fromkeys(["pad0", "binary0", "eltwise0", "binary1"], "convolution0")


def test_a_chain_of_scales_is_the_step_that_is_left():
    b = Small(IMAGE, IMAGE)
    y = b.inputs[0]
    for algorithm in ("mul", "add", "mul"):
        y = b.binary(y, b.numbers(1, 5, 1, 1), algorithm)
    b.write_output(y, b.output)
    after, _, names = fuse(b.finish(), list(b.constants))
    (step,) = after.steps
    assert names == {name: step.name for name in ("binary0", "binary1", "binary2") if name != step.name}


@pytest.mark.parametrize(
    ("operand", "dst", "taken"),
    [
        ((2, 3, 5), (2, 3, 5), True),
        ((1, 1, 5), (2, 3, 5), True),
        ((1, 1, 1), (2, 3, 5), True),
        ((2, 1, 5), (2, 3, 5), True),
        ((2, 1, 1, 7), (2, 3, 5, 7), True),
        ((2, 3, 1), (2, 3, 5), False),
        ((2, 1, 1), (2, 3, 5), False),
        ((2, 1, 1), (2, 3, 1), False),
        ((2, 3, 1, 7), (2, 3, 5, 7), False),
        ((2, 1), (2, 5), False),
        ((1, 5), (2, 5), True),
    ],
)
def test_what_a_matrix_product_adds(operand, dst, taken) -> None:
    """All of it, a row, a number, or a row for each sample."""
    assert _last_or_whole(operand, dst) == taken


def test_what_is_not_in_the_table_takes_no_other_tensor():
    shape = (2, 5, 6, 6)
    for attrs in (ir.Softmax("softmax", 1), ir.Shuffle(1, 2), ir.Reorder(), ir.Concat(1)):
        assert not takes_binary(attrs, shape, shape)
    assert takes_binary(ir.Convolution((1, 1), (0, 0, 0, 0), (1, 1), 1), shape, shape)


@pytest.mark.parametrize("others", [(0,), (1,), (0, 1)])
def test_steps_of_other_libraries_stay_what_they_are(others):
    """Neither are they fused into a step, nor is a step fused into them."""
    b = Small((2, 7, 6, 6), (2, 5, 6, 6))
    y = b.eltwise(b.conv(b.inputs[0], 7), "relu")
    for at in others:
        b.steps[at] = replace(b.steps[at], library="other")
    b.write_output(y, b.output)
    before = b.finish()
    after = fuse(before, list(b.constants)).program
    assert [(step.kind, step.library, step.post_ops) for step in after.steps] == [
        (step.kind, step.library, ()) for step in before.steps
    ]
    assert [type(step.attrs) for step in after.steps] == [ir.Convolution, ir.Eltwise]


@pytest.mark.parametrize(
    ("attrs", "before", "merged"),
    [
        (ir.Convolution((1, 1), (0, 0, 0, 0), (1, 1), 1), (), True),
        (ir.Convolution((1, 1), (0, 0, 0, 0), (1, 1), 1), (ir.EltwisePostOp("tanh", 0.0, 0.0),), False),
        (ir.Pooling("max", (2, 2), (2, 2), (0, 0), (1, 1)), (), False),
    ],
)
def test_lines_that_cancel_are_one_right_behind_a_sum_alone(attrs, before, merged):
    """(x - 1e6) / 3 + 0.5: sums have errors of that size already, what has been through a function not."""
    first, last = ir.EltwisePostOp("linear", 1.0, -1e6), ir.EltwisePostOp("linear", 1 / 3, 0.5)
    joined = _joined(ir.Step("s", attrs, (), (*before, first)), last)
    assert joined == ((*before, first, last) if not merged else joined)
    assert len(joined) == len(before) + (1 if merged else 2)
