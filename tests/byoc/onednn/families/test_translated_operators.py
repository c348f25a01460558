"""Operators as steps by codegen alone: gradients of convolutions, groups, products, pools, norms, views."""

from __future__ import annotations

import pytest
import tvm
from composites import composite_of, roles, shapes, tensor, typed
from tvm import relax

from tvm_mxplan.byoc.onednn import checks
from tvm_mxplan.byoc.onednn.codegen import TRANSLATE
from tvm_mxplan.byoc.spelled_out import norms
from tvm_mxplan.core.layout.layout import same_bytes
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.operators.convolution_gradients import Window, backward_data, backward_weights

OP = relax.op


def translated(kind: str, call: relax.Call):
    """The composite, its steps, and the value of the result."""
    c = composite_of(call)
    dst = TRANSLATE[kind](c)
    assert c.builder.values[dst].shape == tuple(int(dim) for dim in typed(call).ty.shape.values)
    return c, list(c.builder.steps), dst


def root(c, value: int) -> int:
    """The value that another one is a view of."""
    while c.builder.values[value].alias_of >= 0:
        value = c.builder.values[value].alias_of
    return value


# --- gradients of convolutions -----------------------------------------------------------------------------


@pytest.mark.parametrize("groups", [1, 2, 6])
def test_the_gradient_of_data_is_a_deconvolution_by_the_same_weights(groups: int) -> None:
    window = Window((2, 1), (1, 0, 1, 2), (1, 2), groups)
    grad, weights = tensor("g", 2, 12, 5, 8), tensor("w", 12, 6 // groups, 3, 2)
    c, (step,), _ = translated("convolution_backward_data", backward_data(grad, weights, window, (9, 8)))
    assert step.attrs == ir.Deconvolution((2, 1), (1, 0, 1, 2), (1, 2), groups)
    assert roles(c, step)["src"] == 0
    seen = c.builder.values[step.operand("weights")]
    if groups == 1:
        assert (seen.shape, seen.layout, seen.alias_of) == ((6, 12, 3, 2), "bacd", 1)
    else:
        assert seen.shape == (groups, 6 // groups, 12 // groups, 3, 2)
        assert same_bytes(seen.layout, "acbde", seen.shape)
        assert root(c, step.operand("weights")) == 1


@pytest.mark.parametrize("axes", [1, 3])
def test_gradients_of_data_have_any_number_of_axes(axes: int) -> None:
    for groups in (1, 2):
        window = Window((1,) * axes, (0,) * 2 * axes, (1,) * axes, groups)
        grad, weights = tensor("g", 2, 4, *(5,) * axes), tensor("w", 4, 6 // groups, *(3,) * axes)
        call = backward_data(grad, weights, window, (7,) * axes)
        c, (step,), _ = translated("convolution_backward_data", call)
        expected = (6, 4) if groups == 1 else (2, 3, 2)
        assert c.builder.values[step.operand("weights")].shape == (*expected, *(3,) * axes)


@pytest.mark.parametrize("groups", [1, 2, 6])
def test_the_gradient_of_weights_has_groups_apart(groups: int) -> None:
    window = Window((2, 1), (1, 0, 1, 2), (1, 2), groups)
    src, grad = tensor("x", 2, 6, 9, 8), tensor("g", 2, 12, 5, 8)
    call = backward_weights(src, grad, window, (3, 2))
    c, (step,), _ = translated("convolution_backward_weights", call)
    assert step.attrs == ir.ConvolutionBackwardWeights((2, 1), (1, 0, 1, 2), (1, 2), groups)
    assert roles(c, step) == {"src": 0, "gradient": 1, "dst": step.dst}
    apart = (12, 6, 3, 2) if groups == 1 else (groups, 12 // groups, 6 // groups, 3, 2)
    assert c.builder.values[step.dst].shape == apart


@pytest.mark.parametrize(
    ("rows", "reason"),
    [
        ((5, 8), None),
        ((4, 8), "windows at 5 places on axis 0, and a gradient of 4"),
        ((5, 9), "places on axis 1"),
    ],
)
def test_gradients_of_weights_have_a_row_for_each_window(rows: tuple[int, int], reason: str | None) -> None:
    window = Window((2, 1), (1, 0, 1, 2), (1, 2), 1)
    call = typed(backward_weights(tensor("x", 2, 6, 9, 8), tensor("g", 2, 12, *rows), window, (3, 2)))
    answer = checks.convolution_backward_weights({"root": call})
    assert answer is None if reason is None else reason in str(answer)


# --- convolutions and products -----------------------------------------------------------------------------


@pytest.mark.parametrize("groups", [1, 3])
def test_a_convolution_has_its_window_and_groups_apart(groups: int) -> None:
    x, w = tensor("x", 2, 6, 9, 8), tensor("w", 9, 6 // groups, 3, 2)
    call = OP.nn.conv2d(x, w, strides=[2, 1], padding=[1, 0, 2, 1], dilation=[1, 2], groups=groups)
    c, (step,), _ = translated("convolution", call)
    assert step.attrs == ir.Convolution((2, 1), (1, 0, 2, 1), (1, 2), groups)
    apart = (9, 6, 3, 2) if groups == 1 else (3, 3, 2, 3, 2)
    assert shapes(c, step)["weights"] == apart and shapes(c, step)["src"] == (2, 6, 9, 8)


@pytest.mark.parametrize("groups", [1, 2])
def test_a_deconvolution_reads_its_weights_turned(groups: int) -> None:
    x, w = tensor("x", 2, 6, 4, 5), tensor("w", 6, 8 // groups, 3, 2)
    call = OP.nn.conv2d_transpose(x, w, strides=[2, 3], padding=[1, 0, 0, 1], groups=groups)
    c, (step,), _ = translated("deconvolution", call)
    assert step.attrs == ir.Deconvolution((2, 3), (1, 0, 0, 1), (1, 1), groups)
    seen = c.builder.values[step.operand("weights")]
    expected = ((8, 6, 3, 2), "bacd") if groups == 1 else ((2, 4, 3, 3, 2), "acbde")
    assert (seen.shape, seen.layout) == expected


@pytest.mark.parametrize(
    ("left", "right", "src", "weights"),
    [
        ((4, 5), (5, 6), (4, 5), (5, 6)),
        ((2, 3, 4, 5), (5, 6), (2, 3, 4, 5), (1, 1, 5, 6)),
        ((4, 5), (3, 5, 6), (1, 4, 5), (3, 5, 6)),
        ((2, 1, 4, 5), (3, 5, 6), (2, 1, 4, 5), (1, 3, 5, 6)),
    ],
)
def test_operands_of_products_have_one_rank(left, right, src, weights) -> None:
    c, (step,), _ = translated("matmul", OP.matmul(tensor("x", *left), tensor("w", *right)))
    assert (shapes(c, step)["src"], shapes(c, step)["weights"]) == (src, weights)


# --- pools and norms ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "counted", "algorithm"),
    [
        ("max_pool2d", None, "max"),
        ("avg_pool2d", True, "avg_include_padding"),
        ("avg_pool2d", False, "avg_exclude_padding"),
    ],
)
def test_a_pool_has_its_window(kind: str, counted: bool | None, algorithm: str) -> None:
    more = {} if counted is None else {"count_include_pad": counted}
    call = getattr(OP.nn, kind)(tensor("x", 2, 3, 9, 7), [3, 2], [2, 1], [1, 0, 2, 1], **more)
    _, (step,), _ = translated("pooling", call)
    # Padding in front of both axes; the rest follows from the shapes.
    assert step.attrs == ir.Pooling(algorithm, (3, 2), (2, 1), (1, 0), (1, 1))


def test_an_adaptive_pool_has_windows_that_meet() -> None:
    _, (step,), _ = translated("adaptive_pooling", OP.nn.adaptive_avg_pool2d(tensor("x", 2, 3, 9, 8), [3, 2]))
    assert step.attrs == ir.Pooling("avg_exclude_padding", (3, 4), (3, 4), (0, 0), (1, 1))


@pytest.mark.parametrize("scale", [False, True])
@pytest.mark.parametrize("center", [False, True])
def test_norms_have_the_parameters_that_they_are_told(scale: bool, center: bool) -> None:
    x, w, v = tensor("x", 2, 3, 5), tensor("w", 3, 5), tensor("v", 3, 5)
    call = OP.nn.layer_norm(x, w, v, axes=[-2, -1], epsilon=0.25, center=center, scale=scale)
    c, (step,), _ = translated("layer_norm", call)
    assert step.attrs == ir.LayerNormalization(0.25)
    found = shapes(c, step)
    assert found.pop("src") == found.pop("dst") == (2, 15)
    assert found == {**({"scale": (15,)} if scale else {}), **({"shift": (15,)} if center else {})}
    image, gamma, beta = tensor("x", 2, 6, 3, 4), tensor("w", 6), tensor("v", 6)
    call = OP.nn.group_norm(
        image, gamma, beta, num_groups=2, channel_axis=1, axes=[2, 3], epsilon=0.5, center=center, scale=scale
    )
    c, (norm, *rest), _ = translated("channel_norm", call)
    assert norm.attrs == ir.LayerNormalization(0.5) and shapes(c, norm)["src"] == (4, 36)
    wanted = [("mul", 1)] * scale + [("add", 2)] * center
    assert [(one.attrs.algorithm, root(c, one.operand("src1"))) for one in rest] == wanted
    assert all(shapes(c, one)["src1"] == (1, 6, 1, 1) for one in rest)


@pytest.mark.parametrize(("axis", "direct"), [(1, True), (3, True), (-1, True), (2, False), (0, False)])
@pytest.mark.parametrize("kind", ["softmax", "log_softmax"])
def test_softmax_of_other_axes_is_one_of_the_last(axis: int, direct: bool, kind: str) -> None:
    c, steps, _ = translated("softmax", getattr(OP.nn, kind)(tensor("x", 2, 3, 4, 5), axis=axis))
    direct = direct and (kind == "softmax" or axis != 1)  # logarithms run in rows alone
    assert [step.kind for step in steps] == (["softmax"] if direct else ["reorder", "softmax"])
    assert steps[-1].attrs == ir.Softmax(kind, axis % 4 if direct else 3)
    if not direct:
        order = [at for at in range(4) if at != axis] + [axis]
        assert shapes(c, steps[-1])["src"] == tuple((2, 3, 4, 5)[at] for at in order)


# --- what moves --------------------------------------------------------------------------------------------


def test_what_moves_says_where() -> None:
    x = tensor("x", 2, 4, 6)
    _, (step,), _ = translated("slice", OP.strided_slice(x, [1, 2], [1, -3], [3, 5]))
    assert step.attrs == ir.Slice((0, 1, 3))
    _, steps, dst = translated("slice", OP.strided_slice(x, [1], [0], [4]))
    assert (steps, dst) == ([], 0), "all of it"
    _, (step,), _ = translated("pad", OP.nn.pad(x, [0, 0, 1, 2, 3, 0], pad_value=1.5))
    assert step.attrs == ir.Pad((0, 1, 3), 1.5)
    c, steps, dst = translated("permute", OP.permute_dims(x, [2, -3, 1]))
    assert steps == [] and c.builder.values[dst].layout == "bca"


@pytest.mark.parametrize(("method", "expected"), [("linear", "linear"), ("nearest_neighbor", "nearest")])
def test_images_are_resized_by_their_method(method: str, expected: str) -> None:
    call = OP.image.resize2d(tensor("x", 2, 3, 4, 5), relax.ShapeExpr([8, 10]), method=method)
    assert isinstance(call, tvm.ir.Call)
    _, (step,), _ = translated("resize", call)
    assert step.attrs == ir.Resampling(expected)


@pytest.mark.parametrize(
    ("spatial", "pooled"), [((32, 32), True), ((5003, 4), False), ((4, 5003), False), ((5003, 5003), False)]
)
def test_averages_of_images_are_pools_where_every_side_has_short_stages(
    spatial: tuple[int, int], pooled: bool
) -> None:
    """A side of 5,003 has no divisors: its sum is long however the other one is taken."""
    call = OP.mean(tensor("x", 2, 3, *spatial), axis=[2, 3])
    _, steps, _ = translated("reduction", call)
    assert ({step.kind for step in steps} == {"pooling"}) == pooled
    largest = OP.max(tensor("x", 2, 3, *spatial), axis=[2, 3])
    assert [step.kind for step in translated("reduction", largest)[1]] == ["pooling"]


def test_a_norm_of_everything_is_none_of_the_last_axes() -> None:
    """A mean that names no axes is one of all."""
    x = tensor("x", 2, 3, 5)
    for axes, answer in ((None, False), ([0, 1], False), ([2], True), ([1, 2], True)):
        mean = typed(OP.mean(x, axis=axes, keepdims=True))
        match = {"root": x, "mean": mean, "variance": mean, "epsilon": relax.const(1e-5, "float32")}
        assert (norms.of_last_axes(match) is None) == answer, axes
