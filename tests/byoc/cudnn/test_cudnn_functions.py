"""Steps that cuDNN's own functions run, and chains that products leave to other steps."""

from __future__ import annotations

import pytest
from cudnn_programs import checked_against_tvm, on_h200
from cudnn_stand_in import StandIn
from relax_programs import parse
from tvm import relax

from tvm_mxplan.byoc.cudnn.functions import POOLING
from tvm_mxplan.byoc.cudnn.graphs import graph_of
from tvm_mxplan.byoc.cudnn.layout_rules import conversion_calls, filters_layout
from tvm_mxplan.core.layout.layout import channels_last, parse_layout, plain_layout
from tvm_mxplan.core.program import program as ir

LAST = channels_last(4)


def pool(
    dtype: str, algorithm: str = "max", result: tuple[int, int] = (4, 3), dilation: int = 1
) -> ir.Program:
    """Windows of 3x3, two apart, padded by one in front, of images of 7x5."""
    attrs = ir.Pooling(algorithm, (3, 3), (2, 2), (1, 1), (dilation, dilation))
    values = (
        ir.Value("x", (2, 17, 7, 5), dtype, "input", LAST, 0),
        ir.Value("y", (2, 17, *result), dtype, "output", LAST, 0),
    )
    step = ir.Step("p", attrs, (ir.Operand("src", 0), ir.Operand("dst", 1)))
    return ir.Program("p", values, (step,))


@pytest.mark.parametrize(
    "dtype, algorithm, by_function",
    [
        ("float16", "max", True),
        ("float32", "max", True),
        ("bfloat16", "max", True),
        ("bfloat16", "avg_include_padding", True),
        ("bfloat16", "avg_exclude_padding", True),
        ("float16", "avg_include_padding", False),
        ("float32", "avg_exclude_padding", False),
        ("int8", "max", False),
    ],
)
def test_pools_by_the_function_or_an_engine(
    planner: StandIn, dtype: str, algorithm: str, by_function: bool
) -> None:
    (info,) = on_h200().describe(pool(dtype, algorithm)).steps
    assert info.error == ""
    assert (info.implementation == POOLING) is by_function
    assert bool(planner.requests) is not by_function


@pytest.mark.parametrize("changed", [{"result": (3, 2)}, {"dilation": 2}], ids=["end padding", "dilation"])
def test_pools_that_the_function_has_not(planner: StandIn, changed: dict[str, object]) -> None:
    backend = on_h200()
    (wide,) = backend.describe(pool("float16", **changed)).steps  # type: ignore[arg-type]
    assert wide.implementation != POOLING
    (narrow,) = backend.describe(pool("bfloat16", **changed)).steps  # type: ignore[arg-type]
    assert (
        narrow.implementation == "" and "only engines have, and those compute bfloat16 wrong" in narrow.error
    )


def test_a_pool_carries_no_plan(planner: StandIn) -> None:
    backend = on_h200()
    made = backend.create_module("p", pool("float16"), [])
    assert planner.requests == [] and made["mxplan.program"] is not None


@pytest.mark.parametrize(
    "shape, order, calls",
    [
        ((2, 3, 4, 5), "dacb", 1),
        ((2, 8, 2, 2, 6, 7), "abecfd", 1),  # a pixel shuffle: images and channels keep their order
        ((2, 4, 8, 4, 8, 3), "abdcef", 1),  # windows of images that are stored channels last
        ((1, 6, 4, 8, 4, 8), "acedfb", 1),  # an axis of one index is none
        ((3, 6, 4, 8, 5, 8), "acedfb", 3),
        ((3, 6, 4, 8, 5, 7, 2), "gfedcba", 6),
    ],
)
def test_a_conversion_takes_few_calls(shape: tuple[int, ...], order: str, calls: int) -> None:
    src, dst = (parse_layout(tag).strides(shape) for tag in (order, plain_layout(len(shape))))
    assert conversion_calls(shape, src, dst) == calls
    assert conversion_calls(shape, dst, src) == calls


SHUFFLE = [
    "a = R.nn.conv2d(x, w)",
    "b = R.reshape(a, (2, 2, 2, 2, 5, 3))",
    "c = R.permute_dims(b, [0, 1, 4, 2, 5, 3])",
    "d = R.reshape(c, (2, 2, 10, 6))",
    "e = R.nn.conv2d(d, v)",
]


def test_six_axes_leave_convolutions_in_their_region(planner: StandIn) -> None:
    shapes = {"x": (2, 6, 7, 5), "w": (8, 6, 3, 3), "v": (4, 2, 3, 3)}
    steps = checked_against_tvm(SHUFFLE, shapes)
    assert [step.kind for step in steps] == ["convolution", "convolution"]


@pytest.mark.parametrize("extent, taken", [(4, True), (5, False)])
def test_an_order_of_many_calls_is_left_to_tvm(planner: StandIn, extent: int, taken: bool) -> None:
    parameter = f'x: R.Tensor({(extent,) * 7}, "float32")'
    mod = parse("a = R.permute_dims(x, [6, 5, 4, 3, 2, 1, 0])\nreturn a", parameter)
    told: list[str] = []
    patterns = on_h200().patterns(lambda operator, reason: told.append(f"{operator}: {reason}"))
    found = relax.transform.FuseOpsByPattern(patterns)(relax.transform.ConvertToDataflow(1)(mod))
    assert any(f.attrs and "Composite" in f.attrs for f in found.functions.values()) is taken
    assert taken or any("takes 25 calls, at most 16" in one for one in told), told


IMAGE, FILTERS = (2, 6, 7, 5), (8, 6, 3, 3)
CONV = "a = R.nn.conv2d(x, w)"


def test_what_is_for_all_images_but_not_all_places_stands_behind_no_product(planner: StandIn) -> None:
    one = {"x": (1, *IMAGE[1:]), "w": FILTERS, "u": (1, 8, 5, 3)}
    (alone,) = checked_against_tvm([CONV, "b = R.add(a, u)"], one)
    assert [op.algorithm for op in alone.post_ops] == ["add"]  # type: ignore[union-attr]
    first, second = checked_against_tvm([CONV, "b = R.add(a, u)"], {**one, "x": IMAGE})
    assert (first.kind, second.kind) == ("convolution", "binary") and first.post_ops == ()
    (each,) = checked_against_tvm([CONV, "b = R.add(a, u)"], {**one, "x": IMAGE, "u": (2, 8, 5, 3)})
    assert [op.algorithm for op in each.post_ops] == ["add"]  # type: ignore[union-attr]


@pytest.mark.parametrize("groups, fused", [(1, False), (2, False), (6, True)])
def test_products_by_the_naive_engine_take_nothing_in(planner: StandIn, groups: int, fused: bool) -> None:
    planner.names = ("eng0",)
    lines = [f"a = R.nn.conv2d(x, w, groups={groups})", "b = R.tanh(a)"]
    steps = checked_against_tvm(lines, {"x": IMAGE, "w": (6, 6 // groups, 3, 3)})
    assert [step.kind for step in steps] == (["convolution"] if fused else ["convolution", "eltwise"])


@pytest.mark.parametrize("groups, first", [(1, "RELU_FWD"), (6, "MAX")])
def test_activations_leave_products_their_generated_engines(
    planner: StandIn, groups: int, first: str
) -> None:
    shape = (6, 6, 3, 3) if groups == 1 else (6, 1, 1, 3, 3)
    values = (
        ir.Value("x", IMAGE, "float16", "input", LAST, 0),
        ir.Value("w", shape, "float16", "input", filters_layout(len(shape), groups > 1), 1),
        ir.Value("y", (2, 6, 5, 3), "float16", "output", LAST, 0),
    )
    operands = (ir.Operand("src", 0), ir.Operand("weights", 1), ir.Operand("dst", 2))
    for algorithm, bound, expected in (("relu", 0.0, [first]), ("clip_v2", 6.0, ["RELU_FWD", "MIN"])):
        post_op = ir.EltwisePostOp(algorithm, 0.0, bound)
        attrs = ir.Convolution((1, 1), (0, 0, 0, 0), (1, 1), groups)
        step = ir.Step("c", attrs, operands, (post_op,))
        graph = graph_of(ir.Program("c", values, (step,)), step)
        assert [node["mode"] for node in graph["nodes"][1:]] == expected
        numbers = {one["number"] for one in graph["tensors"] if "number" in one}
        assert numbers == ({bound} if algorithm == "clip_v2" else {0.0} if first == "MAX" else set())
