"""A small network with groups, a residual sum, a concatenation and odd channels: as ONNX, and in float64."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import onnx
from float64_steps import Tape
from onnx import TensorProto, helper, numpy_helper

SHAPE = (6, 3, 19, 17)
CLASSES = 7


def first_weights() -> dict[str, np.ndarray]:
    random = np.random.default_rng(3)

    def normal(*shape: int) -> np.ndarray:
        return (random.standard_normal(shape) / np.sqrt(np.prod(shape[1:]))).astype("float32")

    weights = {"conv1.w": normal(10, 3, 3, 3), "conv1.b": 0.1 * normal(10)}
    for name, channels in (("bn1", 10), ("bn2", 10)):
        weights[f"{name}.scale"] = random.uniform(0.5, 1.5, channels).astype("float32")
        weights[f"{name}.shift"] = 0.1 * normal(channels)
        weights[f"{name}.mean"] = 0.1 * normal(channels)
        weights[f"{name}.variance"] = random.uniform(0.5, 1.5, channels).astype("float32")
    weights["conv2.w"] = normal(10, 5, 3, 3)
    weights["conv3.w"] = normal(7, 20, 1, 1)
    weights["dense.w"] = normal(7, CLASSES)
    weights["dense.b"] = 0.1 * normal(CLASSES)
    return weights


def model() -> onnx.ModelProto:
    def norm(name: str, x: str, y: str) -> onnx.NodeProto:
        operands = [f"{name}.{part}" for part in ("scale", "shift", "mean", "variance")]
        return helper.make_node("BatchNormalization", [x, *operands], [y], name=name)

    pads = {"pads": [1, 1, 1, 1]}
    nodes = [
        helper.make_node("Conv", ["x", "conv1.w", "conv1.b"], ["a"], name="conv1", **pads),
        norm("bn1", "a", "b"),
        helper.make_node("Relu", ["b"], ["c"], name="relu1"),
        helper.make_node("MaxPool", ["c"], ["d"], kernel_shape=[2, 2], strides=[2, 2], name="pool"),
        helper.make_node("Conv", ["d", "conv2.w"], ["e"], group=2, name="conv2", **pads),
        norm("bn2", "e", "f"),
        helper.make_node("Add", ["d", "f"], ["g"], name="sum"),
        helper.make_node("Relu", ["g"], ["h"], name="relu2"),
        helper.make_node("Concat", ["h", "d"], ["i"], axis=1, name="both"),
        helper.make_node("Conv", ["i", "conv3.w"], ["j"], strides=[2, 2], name="conv3"),
        helper.make_node("GlobalAveragePool", ["j"], ["k"], name="mean"),
        helper.make_node("Flatten", ["k"], ["l"]),
        helper.make_node("Gemm", ["l", "dense.w", "dense.b"], ["y"], name="dense"),
    ]
    graph = helper.make_graph(
        nodes,
        "small",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, list(SHAPE))],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [SHAPE[0], CLASSES])],
        [numpy_helper.from_array(array, name) for name, array in first_weights().items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


def batch(seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(seed)
    return random.standard_normal(SHAPE).astype("float32"), random.integers(0, CLASSES, SHAPE[0])


def float64_gradients(
    weights: Mapping[str, np.ndarray], x: np.ndarray, labels: np.ndarray
) -> tuple[float, dict[str, np.ndarray], dict[str, np.ndarray]]:
    """Loss, gradients and new running statistics."""
    tape = Tape(weights)

    def norm(name: str, value):  # type: ignore[no-untyped-def]
        return tape.batch_norm(value, *(f"{name}.{part}" for part in ("scale", "shift", "mean", "variance")))

    first = tape.bias(tape.convolution(tape.input(x), "conv1.w", pad=1), "conv1.b")
    pooled = tape.max_pool(tape.relu(norm("bn1", first)), 2)
    second = norm("bn2", tape.convolution(pooled, "conv2.w", pad=1, groups=2))
    both = tape.concat(tape.relu(tape.add(pooled, second)), pooled)
    means = tape.mean_of_images(tape.convolution(both, "conv3.w", stride=2))
    loss, grads = tape.softmax_cross_entropy(tape.bias(tape.dense(means, "dense.w"), "dense.b"), labels)
    return loss, {name: grad for name, grad in grads.items() if name not in tape.statistics}, tape.statistics
