"""Demands of operators on open dimensions: calls that break them are refused by the node's name."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx_models import model, normal

import tvm_mxplan
from tvm_mxplan.errors import InvalidInputError, UnsupportedError
from tvm_mxplan.frontend.onnx import import_model
from tvm_mxplan.testing.reference import onnxruntime_outputs

UNCACHED = {"cache": "disabled"}
CASES: dict[str, tuple[str, int, tuple[int, ...], tuple[int, ...], str]] = {
    # The model; its opset; a shape that fits; one that does not; words of its error.
    "reshape": (
        "(float[a] x) => (float[p, q] y) <int64[2] s = {2, 10}> { y = Reshape(x, s) }",
        17, (20,), (9,), r"\(Reshape\): \[a\] has other than as many elements as \[2, 10\]",
    ),
    "reshape to rows": (
        "(float[a, 5] x) => (float[p, q] y) <int64[2] s = {-1, 10}> { y = Reshape(x, s) }",
        17, (6, 5), (5, 5), r"\(Reshape\): \[a, 5\] has other",
    ),
    "reshape as computed": (
        """(float[a] x) => (float[p, q] y) <int64[1] two = {2}> {
            d = Shape(x) h = Div(d, two) s = Concat<axis = 0>(h, two) y = Reshape(x, s)
        }""",
        17, (6,), (5,), r"\(Reshape\): \[a\] has other",
    ),
    "squeeze": (
        "(float[a, 2] x) => (float[q] y) <int64[1] s = {0}> { y = Squeeze(x, s) }",
        17, (1, 2), (3, 2), r"\(Squeeze\): axis 0 has a elements; expected 1",
    ),
    "space to depth": (
        "(float[1, 1, h, 2] x) => (float[1, 4, p, 1] y) { y = SpaceToDepth<blocksize = 2>(x) }",
        17, (1, 1, 4, 2), (1, 1, 3, 2), r"\(SpaceToDepth\): axis 2 has h elements; expected a multiple of 2",
    ),
    "depth to space": (
        "(float[1, c, 1, 1] x) => (float[1, p, 2, 2] y) { y = DepthToSpace<blocksize = 2>(x) }",
        17, (1, 8, 1, 1), (1, 6, 1, 1), r"\(DepthToSpace\): axis 1 has c elements; expected a multiple of 4",
    ),
    "split": (
        "(float[a] x) => (float[p] y, float[q] z) { y, z = Split<axis = 0>(x) }",
        17, (4,), (5,), r"\(Split\): a elements in 2 equal parts",
    ),
    "pad of a part": (
        "(float[n] x) => (float[p] y) <int64[2] s = {-2, -2}> { y = Pad(x, s) }",
        17, (5,), (3,), r"\(Pad\): padding -2 and -2 leaves less than nothing of axis 0 of n elements",
    ),
    "pad of nothing": (
        """(float[n] x) => (float[p] y) <int64[2] s = {1, 1}> { y = Pad<mode = "edge">(x, s) }""",
        17, (2,), (0,), r"\(Pad\): axis 0 is empty",
    ),
    "pool": (
        "(float[1, 1, h, 5] x) => (float[1, 1, p, 3] y) { y = AveragePool<kernel_shape = [3, 3]>(x) }",
        17, (1, 1, 4, 5), (1, 1, 1, 5), r"\(AveragePool\): axis 2 has h elements and 0 of padding",
    ),
}  # fmt: skip


def test_a_check_of_inputs_divides_no_region() -> None:
    """It stands in front of all that is computed."""
    parsed = model(
        """agraph (float[n, t, 8] x, float[8, 8] w, float[16, 8] v) => (float[p, 8] y)
        <int64[2] s = {-1, 16}> {
            a = MatMul(x, w) b = Relu(a) c = Reshape(b, s) d = MatMul(c, v) y = Relu(d)
        }"""
    )
    executable = tvm_mxplan.compile(parsed, options=UNCACHED)
    (region,) = executable.report.regions
    assert [step.kind for step in region.steps if step.kind != "reorder"] == ["matmul", "matmul"]
    inputs = {"x": normal(2, 3, 8), "w": normal(8, 8), "v": normal(16, 8)}
    (found,), (wanted,) = executable.run(inputs), onnxruntime_outputs(parsed, inputs)
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5)
    with pytest.raises(InvalidInputError, match=r"\(Reshape\): \[n, t, 8\] has other"):
        executable.run({**inputs, "x": normal(3, 3, 8)})


@pytest.mark.parametrize("name", CASES)
def test_a_call_that_breaks_a_demand(name: str) -> None:
    """Beside one that meets it, whose numbers are onnxruntime's."""
    text, opset, right, wrong, words = CASES[name]
    parsed = model(f"agraph {text}", opset)
    executable = tvm_mxplan.compile(parsed, options=UNCACHED)
    x = normal(*right)
    for ours, theirs in zip(executable.run(x), onnxruntime_outputs(parsed, {"x": x}), strict=True):
        # An average of nine numbers around 1 may be near 0: eight roundings of their sums, in whatever order.
        np.testing.assert_allclose(ours, theirs, rtol=1e-6, atol=4e-7 if name == "pool" else 0)
    with pytest.raises(InvalidInputError, match=words):
        executable.run(normal(*wrong))


def test_a_classifier_of_one_image_size_stays_in_regions() -> None:
    """The check stands beside the model: what is reshaped is not copied."""
    parsed = model(
        """agraph (float[n, 3, h, w] x, float[2, 3, 3, 3] k, float[72, 2] m) => (float[p, 2] y)
        <int64[2] s = {-1, 72}> { c = Conv(x, k) t = Reshape(c, s) y = Gemm(t, m) }"""
    )
    inputs = {"x": normal(3, 3, 8, 8), "k": normal(2, 3, 3, 3), "m": normal(72, 2)}
    executable = tvm_mxplan.compile(parsed, options=UNCACHED)
    assert {step.kind for region in executable.report.regions for step in region.steps}
    (y,) = executable.run(list(inputs.values()))
    np.testing.assert_allclose(y, onnxruntime_outputs(parsed, inputs)[0], rtol=1e-4, atol=1e-4)
    with pytest.raises(InvalidInputError, match=r"\(Reshape\): \[n, 2, h - 2, w - 2\] has other"):
        executable.run([normal(3, 3, 7, 7), *list(inputs.values())[1:]])


@pytest.mark.parametrize(
    "text",
    [
        "(float[n, s, 768] x) => (float[p, q, 12, 64] y) <int64[4] k = {0, 0, 12, 64}> { y = Reshape(x, k) }",
        "(float[n, s, 96] x) => (float[p, q, 12, 8] y) <int64[4] k = {0, -1, 12, 8}> { y = Reshape(x, k) }",
        "(float[n, 128, 64] x) => (float[p, 64] y) <int64[2] s2 = {-1, 64}> { y = Reshape(x, s2) }",
        "(float[n, 8, h, w] x) => (float[p, 8, q] y) <int64[3] s3 = {0, 0, -1}> { y = Reshape(x, s3) }",
        "(float[n, h] x) => (float[p, q] y) { y = Flatten(x) }",
        """(float[1, 1, h, w] x) => (float[1, 1, p, q] y) {
            y = MaxPool<kernel_shape = [3, 3], strides = [2, 2], pads = [1, 1, 1, 1]>(x)
        }""",
        "(float[1, 1, h, w] x) => (float[1, 1, p, q] y) <int64[8] s = {0,0,1,1,0,0,1,1}> { y = Pad(x, s) }",
        "(float[n, 6] x) => (float[p, 3] y, float[q, 3] z) { y, z = Split<axis = 1, num_outputs = 2>(x) }",
    ],
)  # fmt: skip
def test_what_every_call_meets_is_not_checked(text: str) -> None:
    names = [gvar.name_hint for gvar in import_model(model(f"agraph {text}")).functions]
    assert not [name for name in names if name.startswith("met")], names


def test_rows_of_no_elements() -> None:
    """The number of rows is not asked by a division by 0, which would end the process."""
    parsed = model(
        """agraph (float[n] x, float[k] z) => (float[p, q] y) <int64[1] m = {-1}> {
            d = Shape(z) s = Concat<axis = 0>(m, d) y = Reshape(x, s)
        }"""
    )
    executable = tvm_mxplan.compile(parsed, options=UNCACHED)
    assert executable.run([normal(6), normal(3)])[0].shape == (2, 3)
    for count, width in ((6, 4), (6, 0)):
        with pytest.raises(InvalidInputError, match=r"\(Reshape\): \[n\] has other"):
            executable.run([normal(count), normal(width)])


def test_parts_of_which_the_last_is_smaller() -> None:
    parsed = model(
        "agraph (float[a] x) => (float[p] y, float[q] z) { y, z = Split<axis = 0, num_outputs = 2>(x) }"
    )
    executable = tvm_mxplan.compile(parsed, options=UNCACHED)
    for count in (4, 5):
        x = normal(count)
        for ours, theirs in zip(executable.run(x), onnxruntime_outputs(parsed, {"x": x}), strict=True):
            np.testing.assert_array_equal(ours, theirs)


def test_keys_of_another_size_than_queries() -> None:
    parsed = model(
        """agraph (float[1, 1, s, d] q, float[1, 1, 3, 4] k) => (float[1, 1, t, 4] y) {
            y = Attention(q, k, k)
        }""",
        23,
    )
    executable = tvm_mxplan.compile(parsed, options=UNCACHED)
    assert executable.run([normal(1, 1, 2, 4), normal(1, 1, 3, 4)])[0].shape == (1, 1, 2, 4)
    with pytest.raises(InvalidInputError, match=r"\(Attention\)"):
        executable.run([normal(1, 1, 2, 6), normal(1, 1, 3, 4)])


@pytest.mark.parametrize("length", [-1, 4])
def test_a_length_beyond_the_axis(length: int) -> None:
    parsed = model(
        """agraph (float[2, n] x, int64[2] l) => (float[2, n] y) {
            y = ReverseSequence<batch_axis = 0, time_axis = 1>(x, l)
        }"""
    )
    executable = tvm_mxplan.compile(parsed, options=UNCACHED)
    x = normal(2, 3)
    (y,) = executable.run([x, np.array([3, 0])])
    np.testing.assert_array_equal(y, [x[0, ::-1], x[1]])
    with pytest.raises(
        InvalidInputError, match="a length is out of bounds for axis 1, expected one from 0 to n"
    ):
        executable.run([x, np.array([1, length])])


def test_reflections_wider_than_the_axis_go_to_and_fro() -> None:
    """As in ONNX's reference; onnxruntime refuses them."""
    parsed = model(
        """agraph (float[n] x) => (float[p] y) <int64[2] s = {3, 3}> { y = Pad<mode = "reflect">(x, s) }"""
    )
    executable = tvm_mxplan.compile(parsed, options=UNCACHED)
    for count in (1, 2, 7):
        x = normal(count)
        np.testing.assert_array_equal(executable.run(x)[0], np.pad(x, 3, "reflect"))


@pytest.mark.parametrize(
    "start, end, step",
    [(3, -2, 2), (4, 2, 2), (1, 3, -1), (-2, 0, -1), (3, -2, 1), (-9, -99, -1), (2**62, -(2**62), -2)],
)  # fmt: skip
@pytest.mark.parametrize("given", [False, True])
def test_slices_of_an_open_axis(start: int, end: int, step: int, given: bool) -> None:
    """Empty ones too; ONNX holds a start in front of the first element at the first one, unlike numpy."""
    stated = {name: np.array([number]) for name, number in zip("set", (start, end, step), strict=True)}
    heads = ", ".join(f"int64[1] {name}" for name in stated)
    constants = ", ".join(f"int64[1] {name} = {{{number[0]}}}" for name, number in stated.items())
    head = f"(float[n] x, {heads})" if given else "(float[n] x)"
    more = "" if given else f", {constants}"
    parsed = model(f"agraph {head} => (float[p] y) <int64[1] a = {{0}}{more}> {{ y = Slice(x, s, e, a, t) }}")
    executable = tvm_mxplan.compile(parsed, "llvm", options=UNCACHED)
    for count in range(8):
        inputs = {"x": np.arange(count, dtype="float32")} | (stated if given else {})
        (theirs,) = onnxruntime_outputs(parsed, inputs)
        np.testing.assert_array_equal(executable.run(list(inputs.values()))[0], theirs, f"of {count}")


@pytest.mark.parametrize("shape", [(2, 0), (0, 2), (0,)])
def test_no_index_at_all(shape: tuple[int, ...]) -> None:
    dims = ", ".join(map(str, shape))
    parsed = model(
        f"agraph (float[3, 4] x, int64[{dims}] i) => (float[{dims}, 4] y) {{ y = Gather<axis = 0>(x, i) }}"
    )
    (y,) = tvm_mxplan.compile(parsed, options=UNCACHED).run([normal(3, 4), np.zeros(shape, "int64")])
    assert y.shape == (*shape, 4)


def test_bounds_that_are_attributes_are_of_the_type_of_the_data() -> None:
    parsed = model("agraph (float16[3] x) => (float16[3] y) { y = Clip<min = -1.0, max = 0.1>(x) }", 10)
    x = np.array([-3, 0.5, 0.05], "float16")
    (y,) = tvm_mxplan.compile(parsed, options=UNCACHED).run(x)
    assert y.dtype == np.float16
    np.testing.assert_array_equal(y, np.clip(x, np.float16(-1), np.float16(0.1)))


def test_the_sign_of_what_is_no_number() -> None:
    parsed = model("agraph (float[3] x) => (float[3] y) { y = Sign(x) }")
    (y,) = tvm_mxplan.compile(parsed, options=UNCACHED).run(np.array([np.nan, -2, 0], "float32"))
    np.testing.assert_array_equal(y, [np.nan, -1, 0])


def test_scales_along_an_open_axis() -> None:
    parsed = model(
        "agraph (int8[n, c] x, float[4] s) => (float[n, c] y) { y = DequantizeLinear<axis = 1>(x, s) }"
    )
    executable = tvm_mxplan.compile(parsed, options=UNCACHED)
    x, scale = np.arange(8, dtype="int8").reshape(2, 4), normal(4)
    np.testing.assert_allclose(executable.run([x, scale])[0], x * scale)
    with pytest.raises(InvalidInputError, match=r"\(DequantizeLinear\): expected equal dimensions c and 4"):
        executable.run([x[:, :3], scale])


def test_transposed_weights_of_open_sizes() -> None:
    parsed = model(
        "agraph (float[1, 4, 5, 5] x, float[4, 2, k, l] w) => (float[1, 2, c, d] y) {y = ConvTranspose(x, w)}"
    )
    with pytest.raises(
        UnsupportedError, match=r"expected a window of known sizes; state k and l as a number"
    ):
        tvm_mxplan.compile(parsed, options=UNCACHED)


@pytest.mark.parametrize(
    "text",
    [
        """(float[2, 3, 5, 5] x, float[4, 3, 3, 3] k, float[4] b, float[2, 4, 3, 3] z)
        => (float[2, 4, 3, 3] y) {
            y = com.microsoft.FusedConv<activation = "Relu">(x, k, b, z)
        }""",
        """(float[2, 3, 5, 5] x, float[4, 3, 3, 3] k) => (float[2, 4, 5, 5] y) {
            y = com.microsoft.FusedConv<
                activation = "Clip", activation_params = [0.0, 0.7], pads = [1, 1, 1, 1]
            >(x, k)
        }""",
        """(float[5, 3] x, float[4, 3] w, float[4] c) => (float[5, 4] y) {
            y = com.microsoft.FusedGemm<activation = "LeakyRelu", activation_alpha = 0.2, transB = 1>(x, w, c)
        }""",
    ],
)
def test_products_with_activations_of_onnxruntime(text: str) -> None:
    parsed = model(f"agraph {text}", 17, ', "com.microsoft": 1')
    inputs = {
        value.name: normal(*(dim.dim_value for dim in value.type.tensor_type.shape.dim))
        for value in parsed.graph.input
    }
    executable = tvm_mxplan.compile(parsed, options=UNCACHED)
    assert executable.report.regions, executable.report.fallbacks
    (y,) = executable.run(list(inputs.values()))
    np.testing.assert_allclose(y, onnxruntime_outputs(parsed, inputs)[0], rtol=1e-4, atol=1e-5)


def test_an_operator_of_onnxruntime_that_nobody_knows() -> None:
    parsed = onnx.parser.parse_model(
        '<ir_version: 9, opset_import: ["": 17, "com.microsoft": 1]> agraph (float[2] x) => (float[2] y) '
        "{ y = com.microsoft.Nobody(x) }"
    )
    with pytest.raises(UnsupportedError, match="give the model as it was before onnxruntime optimised it"):
        tvm_mxplan.compile(parsed, options=UNCACHED)
