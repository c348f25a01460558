"""Relax's operators that oneDNN takes, asked one call at a time."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from tvm import relax, tirx

from tvm_mxplan.byoc.onednn import checks

N = tirx.Var("n", "int64")
IMAGE = (2, 6, 8, 10)
op, nn, image = relax.op, relax.op.nn, relax.op.image


def tensor(*shape: object, dtype: str = "float32") -> relax.Var:
    return relax.Var("x", relax.TensorType(shape, dtype))


def ask(check: Callable[[checks.Match], str | None], call: relax.Expr) -> str | None:
    """The answer for a call whose type was inferred."""
    return check({"root": relax.BlockBuilder().normalize(call)})


def constant(*shape: int) -> relax.Expr:
    return relax.const(np.ones(shape, "float32"))


# --- tensors -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "reason"),
    [
        (nn.relu(tensor(2, 3)), None),
        (nn.relu(tensor(N, 3)), None),
        (op.add(tensor(2, 3), constant(2, 3)), None),
        (op.add(constant(2, 3), constant(2, 3)), "constants only"),
        (op.add(tensor(2, 3), relax.const(1.0, "float32")), None),
        (nn.relu(tensor(2, 3, dtype="float16")), "element type float16"),
        (op.astype(tensor(2, 3), "int32"), "element type int32"),
        (op.astype(tensor(2, 3, dtype="int32"), "float32"), "element type int32"),
        (nn.relu(tensor(1, 1, 1, 1, 2, 3)), None),
        (nn.relu(tensor(1, 1, 1, 1, 1, 2, 3)), "rank 7, at most 6"),
        (nn.relu(relax.Var("x", relax.TensorType(dtype="float32", ndim=2))), "not known at compile time"),
        (nn.relu(tensor(2, 0, 3)), "an empty tensor"),
        (nn.relu(tensor()), "rank 0"),
        (op.concat([tensor(2, 3), tensor(2, 3, dtype="int32")][:1], 0), None),
        (op.concat([tensor(2, 3), tensor(0, 3)], 0), "an empty tensor"),
    ],
)
def test_tensors(call, reason):
    answer = ask(checks.tensors_ok, call)
    assert answer is None if reason is None else reason in str(answer)


def test_a_composite_of_constants_but_for_what_it_works_on():
    """An operand that a pattern names ``x`` decides whether anything is left to compute."""
    call = relax.BlockBuilder().normalize(op.add(constant(2, 3), constant(2, 3)))
    assert checks.tensors_ok({"root": call, "x": tensor(2, 3)}) is None
    assert checks.tensors_ok({"root": call, "x": constant(2, 3)}) == "constants only"


def test_what_stands_inside_a_composite() -> None:
    """Numbers are no tensors; tensors have a known shape, and none is NaN, in whatever place."""
    call = relax.BlockBuilder().normalize(nn.relu(tensor(2, 3)))
    unknown = relax.Var("u", relax.TensorType(dtype="float32", ndim=2))
    nan = relax.const(np.full((), np.nan, "float32"))
    for inside, reason in (
        (tirx.FloatImm("float32", 1.0), None),
        (relax.ShapeExpr((2, 3)), None),
        (tensor(2, 3), None),
        (relax.const(np.float32(0.0)), None),
        (constant(2, 3), None),
        (unknown, "not known at compile time"),
        (nan, "(NaN)"),
    ):
        answer = checks.tensors_ok({"root": call, "inside": inside})
        assert answer is None if reason is None else reason in str(answer)
    assert "(NaN)" in str(ask(checks.tensors_ok, op.add(tensor(2, 3), nan)))
    scalar = relax.const(np.float32(2.0))
    assert ask(checks.tensors_ok, op.add(scalar, tensor(2, 3))) is None


def test_bounds_in_ascending_order() -> None:
    for low, high, refused in (
        (0.0, 6.0, False),
        (2.0, 2.0, False),
        (6.0, 0.0, True),
        (float("nan"), 1.0, True),
    ):
        assert (ask(checks.clip, op.clip(tensor(2, 3), low, high)) is not None) == refused


def test_slopes_and_padding_are_numbers() -> None:
    for number, refused in ((0.1, False), (float("inf"), False), (float("nan"), True)):
        assert (ask(checks.leaky_relu, nn.leakyrelu(tensor(2, 3), number)) is not None) == refused
        padded = nn.pad(tensor(4, 5), [0, 0, 1, 2], pad_value=number)
        assert (ask(checks.pad, padded) is not None) == refused


@pytest.mark.parametrize(
    ("threshold", "refused"), [(20.0, False), (14.0, False), (13.0, True), (1.0, True), (-1.0, True)]
)
def test_thresholds_of_softplus(threshold: float, refused: bool) -> None:
    """exp(-14) is 8e-7, which is just below 14 units of 6e-8; exp(-13) is 2.3e-6."""
    call = nn.softplus(tensor(2, 3), threshold=threshold)
    assert (ask(checks.softplus, call) is not None) == refused


# --- convolutions and products -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "refused"),
    [
        (nn.conv2d(tensor(*IMAGE), constant(4, 6, 3, 3)), False),
        (nn.conv1d(tensor(2, 6, 8), constant(4, 6, 3)), False),
        (nn.conv3d(tensor(2, 6, 8, 8, 8), constant(4, 6, 3, 3, 3)), False),
        (nn.conv2d(tensor(2, 8, 10, 6), constant(4, 6, 3, 3), data_layout="NHWC"), True),
        (nn.conv2d(tensor(*IMAGE), constant(3, 3, 6, 4), kernel_layout="HWIO"), True),
        (nn.conv2d(tensor(*IMAGE), constant(4, 6, 3, 3), out_layout="NHWC"), True),
        (nn.conv2d(tensor(*IMAGE), constant(4, 6, 3, 3), out_layout="NCHW"), False),
        (nn.conv2d(tensor(2, N, 8, 8), tensor(4, N, 3, 3)), True),
        (nn.conv2d_transpose(tensor(*IMAGE), constant(6, 4, 3, 3)), False),
        (nn.conv1d_transpose(tensor(2, 6, 8), constant(6, 4, 3)), False),
        (nn.conv2d_transpose(tensor(2, 8, 10, 6), constant(6, 4, 3, 3), data_layout="NHWC"), True),
    ],
)
def test_convolutions(call, refused):
    assert (ask(checks.convolution, call) is not None) == refused


@pytest.mark.parametrize(
    ("left", "right", "refused"),
    [((3, 4), (4, 5), False), ((4,), (4, 5), True), ((3, 4), (4,), True), ((2, 3, 4), (4, 5), False)],
)
def test_products(left, right, refused):
    assert (ask(checks.matmul, op.matmul(tensor(*left), tensor(*right))) is not None) == refused


# --- pooling -----------------------------------------------------------------------------------------------


def pool(kind: str = "max", shape: tuple = IMAGE, **options) -> relax.Call:
    options = {"pool_size": [3, 2], "strides": [2, 2], **options}
    return getattr(nn, f"{kind}_pool2d")(tensor(*shape), **options)


@pytest.mark.parametrize(
    ("call", "reason"),
    [
        (pool(), None),
        (pool(padding=[2, 1, 2, 1]), None),
        (pool(padding=[3, 0, 0, 0]), "is not smaller"),
        (pool(padding=[0, 0, 0, 2]), "is not smaller"),
        (pool(layout="NHWC"), "channels first"),
        (pool(out_layout="NHWC"), "channels first"),
        (pool(dilation=[1, 2]), "dilated"),
        (pool(shape=(N, 6, 8, 10)), None),
        (pool(shape=(N, 6, 8, 10), ceil_mode=True), "symbolic"),
        (pool(ceil_mode=True), None),
        (pool("avg", ceil_mode=True), None),
        (pool("avg", ceil_mode=True, count_include_pad=True), "past the padded input"),
        (pool("avg", ceil_mode=False, count_include_pad=True), None),
        (pool("avg", shape=(2, 6, 7, 10), ceil_mode=True, count_include_pad=True), None),
        (pool("avg", shape=(2, 6, 7, 9), ceil_mode=True, count_include_pad=True), "past the padded input"),
        (pool("avg", shape=(2, 6, 7, 9), padding=[0, 0, 0, 1], ceil_mode=True, count_include_pad=True), None),
        (pool("avg", shape=(2, 6, 7, 9), padding=[0, 1, 0, 0], ceil_mode=True, count_include_pad=True), None),
    ],
)
def test_pooling(call, reason):
    answer = ask(checks.pooling, call)
    assert answer is None if reason is None else reason in str(answer)


@pytest.mark.parametrize(
    ("shape", "size", "refused"),
    [(IMAGE, [4, 5], False), (IMAGE, [1, 1], False), (IMAGE, [3, 5], True), (IMAGE, [4, 3], True)],
)
def test_adaptive_pooling(shape, size, refused):
    call = nn.adaptive_avg_pool2d(tensor(*shape), size)
    assert (ask(checks.adaptive_pooling, call) is not None) == refused


def test_adaptive_pooling_of_unknown_extents():
    assert "symbolic" in str(ask(checks.adaptive_pooling, nn.adaptive_avg_pool2d(tensor(2, 6, N, 8), [1, 1])))


# --- elementwise -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("left", "right", "refused"),
    [
        ((2, 6, 8, 10), (2, 6, 8, 10), False),
        ((2, 6, 8, 10), (6, 1, 1), False),
        ((6, 1, 1), (2, 6, 8, 10), False),
        ((2, 6, 1, 10), (2, 1, 8, 10), True),
        ((2, 6, 8, 10), (2, 1, 8, 1), True),
        ((2, 6, 8, 10), (10,), False),
        ((N, 6, 8, 10), (6, 1, 1), False),
    ],
)
def test_binary(left, right, refused):
    assert (ask(checks.binary, op.add(tensor(*left), tensor(*right))) is not None) == refused


def test_a_number_fits_every_shape():
    assert ask(checks.binary, op.add(tensor(2, 6, 8), relax.const(2.0, "float32"))) is None
    assert ask(checks.binary, op.add(constant(1, 1, 1), tensor(2, 6, 8))) is None
    assert ask(checks.binary, op.add(constant(1, 1, 1), tensor(6, 8))) is not None


def test_powers_are_of_constant_numbers():
    assert ask(checks.power, op.power(tensor(2, 3), relax.const(2.0, "float32"))) is None
    assert ask(checks.power, op.power(tensor(2, 3), constant(3))) is not None
    assert ask(checks.power, op.power(tensor(2, 3), tensor(2, 3))) is not None


@pytest.mark.parametrize(
    ("slopes", "axis", "refused"),
    [
        (constant(6), 1, False),
        (constant(1), 1, False),
        (tensor(6), 1, False),
        (tensor(10), -1, False),
        (tensor(1), 1, True),
    ],
)
def test_slopes_for_each_channel(slopes, axis, refused):
    call = nn.prelu(tensor(*IMAGE), slopes, axis)
    assert (ask(checks.prelu, call) is not None) == refused


def test_softplus_bends_upwards():
    for beta, refused in ((1.0, False), (0.5, False), (0.0, True), (-1.0, True)):
        assert (ask(checks.softplus, nn.softplus(tensor(2, 3), beta=beta)) is not None) == refused


# --- reductions and norms ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("axis", "refused"),
    [([3], False), ([-1], False), ([2, 3], False), ([3, 2], False), ([-2, 3], False), ([0, 1, 2, 3], False),
     ([2], False), ([1, 3], True), ([0], False), (None, True)],
)  # fmt: skip
def test_reductions_go_over_the_last_axes_or_are_pools(axis, refused):
    assert (ask(checks.reduction, op.sum(tensor(*IMAGE), axis)) is not None) == refused


def test_layer_norms_go_over_the_last_axes():
    for axes, shape, refused in (([3], (10,), False), ([-2, -1], (8, 10), False), ([2], (8,), True)):
        call = nn.layer_norm(tensor(*IMAGE), constant(*shape), constant(*shape), axes)
        assert (ask(checks.normalized_axes, call) is not None) == refused


@pytest.mark.parametrize(
    ("shape", "channel_axis", "axes", "refused"),
    [
        (IMAGE, 1, [2, 3], False),
        (IMAGE, -3, [-1, -2], False),
        (IMAGE, 1, [3], True),
        (IMAGE, 2, [1, 3], True),
        (IMAGE, 1, [0, 2, 3], True),
        ((1, 6, 8, 10), 1, [0, 2, 3], False),
        ((2, 6, 1, 10), 1, [3], False),
        ((N, 6, 8, 10), 1, [0, 2, 3], True),
        ((N, 6, 8, 10), 1, [2, 3], False),
        ((2, 6, N, 10), 1, [2, 3], True),
    ],
)
def test_group_norms_go_over_all_behind_the_channels(shape, channel_axis, axes, refused):
    vector = constant(8 if channel_axis == 2 else 6)
    call = nn.group_norm(tensor(*shape), vector, vector, 2, channel_axis, axes)
    assert (ask(checks.channel_normalization, call) is not None) == refused


def test_softmax_with_symbols_goes_over_the_last_axis():
    for axis, shape, refused in (
        (2, (N, 3, 4), False),
        (-1, (N, 3, 4), False),
        (1, (N, 3, 4), True),
        (1, (2, 3, 4), False),
    ):
        assert (ask(checks.softmax, nn.softmax(tensor(*shape), axis)) is not None) == refused


# --- movement ----------------------------------------------------------------------------------------------


def test_concats_are_of_tuples_that_are_written_out():
    pair = relax.Var("t", relax.TupleType([relax.TensorType((2, 3), "float32")] * 2))
    assert ask(checks.concat, op.concat([tensor(2, 3), tensor(2, 3)], 1)) is None
    assert ask(checks.concat, op.concat(pair, 1)) is not None


def test_slices_have_unit_strides_and_known_bounds():
    x = tensor(4, N, 6)
    for call, refused in (
        (op.strided_slice(x, [0, 2], [1, 2], [3, 5]), False),
        (op.strided_slice(x, [0, 2], [1, 2], [3, 5], [1, 1]), False),
        (op.strided_slice(x, [2], [0], [6], [2]), True),
        (op.strided_slice(x, [1], [0], [3]), True),
    ):
        assert (ask(checks.strided_slice, call) is not None) == refused


def test_reshapes_have_a_shape():
    assert ask(checks.reshape, op.reshape(tensor(2, 3), (6,))) is None
    assert ask(checks.reshape, op.reshape(tensor(1), ())) is not None


def test_pads_are_constant_and_no_crops():
    for width, mode, refused in (
        ([0, 0, 1, 2], "constant", False),
        ([0, 0, 0, 0], "constant", False),
        ([0, 0, -1, 2], "constant", True),
        ([0, 0, 1, 2], "reflect", True),
    ):
        assert (ask(checks.pad, nn.pad(tensor(4, 5), width, pad_mode=mode)) is not None) == refused


def resize(
    out: tuple, method: str, mode: str, rounding: str = "", shape: tuple = IMAGE, **options
) -> relax.Call:
    options = {
        "method": method,
        "coordinate_transformation_mode": mode,
        "rounding_method": rounding,
        **options,
    }
    return image.resize2d(tensor(*shape), relax.ShapeExpr(out), **options)


NEAREST = "nearest_neighbor"


@pytest.mark.parametrize(
    ("call", "refused"),
    [
        (resize((16, 20), "linear", "half_pixel"), False),
        (resize((11, 13), "linear", "half_pixel"), False),
        (resize((16, 20), "linear", "pytorch_half_pixel"), False),
        (resize((1, 20), "linear", "pytorch_half_pixel"), True),
        (resize((16, 20), "linear", "align_corners"), True),
        (resize((16, 20), "linear", "asymmetric"), True),
        (resize((16, 20), "cubic", "half_pixel"), True),
        (resize((16, 20), "linear", "half_pixel", layout="NHWC", shape=(2, 8, 10, 6)), True),
        (resize((16, 30), NEAREST, "asymmetric", "floor"), False),
        (resize((16, 30), NEAREST, "half_pixel", "round_prefer_floor"), False),
        (resize((16, 30), NEAREST, "half_pixel", "floor"), True),
        (resize((16, 30), NEAREST, "asymmetric", "round"), True),
        (resize((12, 20), NEAREST, "asymmetric", "floor"), True),
        (resize((16, 25), NEAREST, "asymmetric", "floor"), True),
        (resize((16, 20), NEAREST, "asymmetric", "floor", shape=(N, 6, 8, 10)), True),
        (resize((16, 20), "linear", "half_pixel", shape=(N, 6, 8, 10)), False),
    ],
)
def test_resizes(call, refused):
    assert (ask(checks.resize, call) is not None) == refused


@pytest.mark.parametrize(
    ("source", "size", "reason"),
    [
        ((1, 1, 8, 10), (16, 20), None),
        ((2, 6, 8, 10), (16, 20), None),
        ((2, 6, 8, 10), (1, 20), "pytorch_half_pixel"),
        ((2, 6, 8, 10), (16, 1), "pytorch_half_pixel"),
    ],
)
def test_pytorchs_half_pixels_differ_where_one_pixel_is_left(source, size, reason):
    """Of the image: one sample or one channel is nothing special."""
    call = image.resize2d(
        tensor(*source),
        relax.ShapeExpr(size),
        layout="NCHW",
        method="linear",
        coordinate_transformation_mode="pytorch_half_pixel",
    )
    answer = ask(checks.resize, call)
    assert answer is None if reason is None else reason in str(answer)
