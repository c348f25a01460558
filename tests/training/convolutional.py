"""Networks of 3x3 convolutions for tests of training, batches for them, and steps with SGD."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from tvm_mxplan import training

CLASSES = 5
OPTIONS = {"machine": "default", "cache": "disabled", "verify": "off"}


def convolutional(
    src: Sequence[int], widths: Sequence[int], *, groups: int = 1, norms: bool = False
) -> onnx.ModelProto:
    """Convolutions with a ReLU behind each, a pool where a width is 0, then averages and a dense layer.

    Parameters
    ----------
    groups : of the last convolution but one.
    norms : batch norms stand in front of the ReLUs.
    """
    random = np.random.default_rng(3)
    nodes, weights, value, channels = [], [], "x", src[1]

    def weight(name: str, array: np.ndarray) -> str:
        weights.append(numpy_helper.from_array(array.astype("float32"), name))
        return name

    for at, width in enumerate(widths):
        if not width:
            nodes.append(
                helper.make_node("MaxPool", [value], [f"p{at}"], kernel_shape=[2] * 2, strides=[2] * 2)
            )
            value = f"p{at}"
            continue
        parts = groups if at == len(widths) - 2 else 1
        shape = (width, channels // parts, 3, 3)
        kernel = weight(f"w{at}", random.standard_normal(shape) / np.sqrt(np.prod(shape[1:])))
        nodes.append(helper.make_node("Conv", [value, kernel], [f"c{at}"], group=parts, pads=[1] * 4))
        value, channels = f"c{at}", width
        if norms:
            ones, zeros = np.ones(width), np.zeros(width)
            rows = {"scale": ones, "shift": zeros, "mean": zeros, "variance": ones}
            norm = [weight(f"{name}{at}", row) for name, row in rows.items()]
            nodes.append(helper.make_node("BatchNormalization", [value, *norm], [f"b{at}"]))
            value = f"b{at}"
        nodes.append(helper.make_node("Relu", [value], [f"x{at}"]))
        value = f"x{at}"
    dense = weight("dense", random.standard_normal((channels, CLASSES)) / np.sqrt(channels))
    nodes.append(helper.make_node("GlobalAveragePool", [value], ["pooled"]))
    nodes.append(helper.make_node("Flatten", ["pooled"], ["flat"]))
    nodes.append(helper.make_node("Gemm", ["flat", dense], ["y"]))
    graph = helper.make_graph(
        nodes,
        "convolutional",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, list(src))],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [src[0], CLASSES])],
        weights,
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


def compiled(network: onnx.ModelProto, **options: object) -> training.TrainingStep:
    sgd = training.SGD(0.05, momentum=0.9, weight_decay=1e-3)
    return training.compile(network, "softmax_cross_entropy", sgd, options={**OPTIONS, **options})


def batch(src: Sequence[int], seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Images and labels."""
    random = np.random.default_rng(seed)
    return random.standard_normal(src).astype("float32"), random.integers(0, CLASSES, src[0])
