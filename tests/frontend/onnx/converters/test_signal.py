"""DFT and STFT against onnxruntime, and in regions."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx_models import model, normal

import tvm_mxplan
from tvm_mxplan import UnsupportedError
from tvm_mxplan.testing.reference import onnxruntime_outputs

UNCACHED = {"cache": "disabled"}


def doubled(parsed: onnx.ModelProto) -> onnx.ModelProto:
    """The model in float64: in float32 onnxruntime errs by 5e-5 over lengths that are no power of two."""
    made = onnx.ModelProto.FromString(parsed.SerializeToString())
    for value in [*made.graph.input, *made.graph.output]:
        value.type.tensor_type.elem_type = onnx.TensorProto.DOUBLE
    for one in made.graph.initializer:
        if one.data_type == onnx.TensorProto.FLOAT:
            one.CopyFrom(
                onnx.numpy_helper.from_array(onnx.numpy_helper.to_array(one).astype("float64"), one.name)
            )
    return made


def check(parsed: onnx.ModelProto, x: np.ndarray, scale: float = 1.0) -> None:
    executable = tvm_mxplan.compile(parsed, options=UNCACHED)
    assert executable.report.regions, executable.report.fallbacks
    (expected,) = onnxruntime_outputs(doubled(parsed), {"x": x.astype("float64")})
    (actual,) = executable(x)
    assert actual.shape == expected.shape
    np.testing.assert_allclose(actual.numpy(), expected, rtol=1e-4, atol=1e-5 * scale)


@pytest.mark.parametrize(
    ("shape", "axis", "attributes"),
    [
        ((2, 17, 1), 1, "inverse = 0"),
        ((2, 17, 2), -2, "onesided = 0"),
        ((2, 17, 2), 1, "inverse = 1"),
        ((3, 5, 12, 1), 1, "onesided = 1"),
        ((3, 5, 12, 1), 2, "onesided = 1"),
        ((3, 7, 4, 2), 1, "inverse = 0"),
    ],
)
def test_dft(shape, axis, attributes):
    named = ", ".join(["b", *map(str, shape[1:])])
    text = f"agraph (float[{named}] x) => (float[b, k, l, m] y) <int64 axis = {{{axis}}}>"
    parsed = model(f"{text} {{ y = DFT<{attributes}>(x, , axis) }}", opset=20)
    parsed.graph.output[0].type.tensor_type.ClearField("shape")
    check(parsed, normal(*shape))


@pytest.mark.parametrize("length", [9, 17, 24])
def test_dft_of_another_length_and_older_opset(length):
    text = f"agraph (float[2, 17, 1] x) => (float[2, k, 2] y) <int64 length = {{{length}}}>"
    check(model(f"{text} {{ y = DFT<onesided = 1>(x, length) }}", opset=17), normal(2, 17, 1))


@pytest.mark.parametrize(
    ("frame", "step", "shape"), [(16, 4, (2, 67)), (15, 7, (3, 67, 1)), (12, 12, (1, 60, 1))]
)
def test_stft_with_a_named_length(frame, step, shape):
    named = ", ".join(["b", "t", *map(str, shape[2:])])
    parsed = model(
        f"""agraph (float[{named}] x, float[{frame}] window) => (float[b, f, k, 2] y)
            <int64 step = {{{step}}}> {{ y = STFT(x, step, window) }}"""
    )
    parsed.graph.input.pop()
    parsed.graph.initializer.append(
        onnx.numpy_helper.from_array(np.hanning(frame).astype("float32"), "window")
    )
    check(parsed, normal(*shape), scale=frame)


def test_stft_with_a_window_of_the_call():
    text = """agraph (float[2, 40, 1] x, float[10] window) => (float[2, f, 10, 2] y) <int64 step = {3}>
        { y = STFT<onesided = 0>(x, step, window) }"""
    parsed, inputs = model(text), {"x": normal(2, 40, 1), "window": normal(10)}
    wide = {name: array.astype("float64") for name, array in inputs.items()}
    (expected,) = onnxruntime_outputs(doubled(parsed), wide)
    (actual,) = tvm_mxplan.compile(parsed, options=UNCACHED)(**inputs)
    np.testing.assert_allclose(actual.numpy(), expected, rtol=1e-4, atol=2e-5)


def test_what_is_refused_says_so():
    text = "agraph (float[1, 20000, 2] x) => (float[1, 20000, 2] y) { y = DFT(x) }"
    with pytest.raises(UnsupportedError, match=r"node 'y' \(DFT\): over 20,000 elements; expected fewer"):
        tvm_mxplan.compile(model(text, opset=17), options=UNCACHED)
