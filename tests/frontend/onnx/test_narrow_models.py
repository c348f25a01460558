"""ONNX models in 16 bits: one rounding off, offloaded, in bfloat16 where they state it."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import tvm_mxplan
from tvm_mxplan.byoc.onednn.backend import OneDNN

needs_bf16 = pytest.mark.skipif(
    bool(OneDNN().lacks("bfloat16")), reason="oneDNN multiplies no bfloat16 on this machine"
)
TYPES = {
    TensorProto.FLOAT16: (np.dtype(np.float16), 2.0**-11),
    TensorProto.BFLOAT16: (np.dtype(ml_dtypes.bfloat16), 2.0**-8),
}
OPTIONS = {"cache": "disabled", "machine": "default"}


def network(dtype: int, weights: dict[str, np.ndarray]) -> onnx.ModelProto:
    """A convolution, a product and a softmax in a type, and another product in float32 between casts."""
    nodes = [
        helper.make_node("Conv", ["x", "w", "b"], ["c"], "conv", pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["c"], ["r"]),
        helper.make_node("GlobalAveragePool", ["r"], ["g"]),
        helper.make_node("Flatten", ["g"], ["f"]),
        helper.make_node("Cast", ["f"], ["wide"], to=TensorProto.FLOAT),
        helper.make_node("MatMul", ["wide", "k"], ["p"], "wide_product"),
        helper.make_node("Cast", ["p"], ["q"], to=dtype),
        helper.make_node("MatMul", ["q", "m"], ["z"], "product"),
        helper.make_node("Softmax", ["z"], ["y"], axis=-1),
    ]
    stored = [tensor(name, array) for name, array in weights.items()]
    ports = [
        helper.make_tensor_value_info(name, dtype, shape)
        for name, shape in (("x", [2, 17, 11, 9]), ("z", [2, 11]), ("y", [2, 11]))
    ]
    graph = helper.make_graph(nodes, "narrow", ports[:1], ports[1:], stored)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 22)], ir_version=10)


def tensor(name: str, array: np.ndarray) -> onnx.TensorProto:
    dtype = helper.np_dtype_to_tensor_dtype(array.dtype)
    return helper.make_tensor(name, dtype, array.shape, array.tobytes(), raw=True)


def drawn(kind: np.dtype) -> tuple[dict[str, np.ndarray], np.ndarray]:
    rng = np.random.default_rng(7)

    def normal(*shape: int) -> np.ndarray:
        return rng.standard_normal(shape).astype(kind)

    weights = {
        "w": normal(35, 17, 3, 3),
        "b": normal(35),
        "k": rng.standard_normal((35, 35)).astype("float32"),
        "m": normal(35, 11),
    }
    return weights, normal(2, 17, 11, 9)


def in_float64(weights: dict[str, np.ndarray], x: np.ndarray) -> list[np.ndarray]:
    w, b, k, m = (weights[name].astype("float64") for name in ("w", "b", "k", "m"))
    padded = np.pad(x.astype("float64"), ((0, 0), (0, 0), (1, 1), (1, 1)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), (2, 3))
    features = np.maximum(np.einsum("nchwij,ocij->nohw", windows, w) + b[:, None, None], 0).mean((2, 3))
    z = features @ k @ m
    exponentials = np.exp(z - z.max(1, keepdims=True))
    return [z, exponentials / exponentials.sum(1, keepdims=True)]


def error_of(found: np.ndarray, expected: np.ndarray) -> float:
    return float(np.linalg.norm(found.astype("float64") - expected) / np.linalg.norm(expected))


@pytest.mark.parametrize("dtype", TYPES)
def test_results_are_rounded_once(dtype):
    kind, unit = TYPES[dtype]
    weights, x = drawn(kind)
    executable = tvm_mxplan.compile(network(dtype, weights), options={**OPTIONS, "precision": "f32"})
    assert sum(len(region.steps) for region in executable.report.regions) >= 5
    assert not {"relax.matmul", "relax.nn.conv2d"} & {kept.kind for kept in executable.report.kept}
    (logits, _) = (result.numpy() for result in executable(x))
    assert logits.dtype == kind
    assert 0 < error_of(logits, in_float64(weights, x)[0]) < unit


@needs_bf16
def test_what_the_model_states_in_bfloat16_is_computed_in_it():
    kind, _ = TYPES[TensorProto.BFLOAT16]
    weights, x = drawn(kind)
    executable = tvm_mxplan.compile(network(TensorProto.BFLOAT16, weights), options=OPTIONS)
    types = {step.name: step.types for region in executable.report.regions for step in region.steps}
    assert types["conv2d_0"][0] == "bf16"
    assert types["matmul_0"] == (), "the product that the model states in float32"
    logits = executable(x)[0].numpy()
    assert error_of(logits, in_float64(weights, x)[0]) < 2e-2


@needs_bf16
def test_float16_is_computed_in_bfloat16_on_request_alone():
    weights, x = drawn(TYPES[TensorProto.FLOAT16][0])
    model = network(TensorProto.FLOAT16, weights)
    for precision, short in (("model", False), ("bf16", True)):
        executable = tvm_mxplan.compile(model, options={**OPTIONS, "precision": precision})
        steps = [step for region in executable.report.regions for step in region.steps]
        assert any("bf16" in step.types for step in steps) == short
        assert executable(x)[0].numpy().dtype == np.float16


@pytest.mark.parametrize("dtype", TYPES)
def test_long_sums_are_added_up_in_float32(dtype):
    kind, unit = TYPES[dtype]
    rng = np.random.default_rng(3)
    x, m = (rng.random(shape).astype(kind) for shape in ((3, 4608), (4608, 5)))
    nodes = [helper.make_node("MatMul", ["x", "m"], ["y"]), helper.make_node("ReduceSum", ["x"], ["s"])]
    info = helper.make_tensor_value_info
    ports = [info("x", dtype, [3, 4608]), info("y", dtype, [3, 5]), info("s", dtype, [1, 1])]
    graph = helper.make_graph(nodes, "sums", ports[:1], ports[1:], [tensor("m", m)])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 22)], ir_version=10)
    for options in (OPTIONS, {**OPTIONS, "layers": "matmul_0=off"}):
        product, total = (result.numpy() for result in tvm_mxplan.compile(model, options=options)(x))
        assert error_of(product, x.astype("float64") @ m.astype("float64")) < unit
        assert error_of(total, x.astype("float64").sum(keepdims=True)) < unit
