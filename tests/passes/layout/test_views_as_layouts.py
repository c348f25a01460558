"""Transpositions and reshapes around layer norms, pixel by pixel products and convolutions are layouts.

Blocks as networks of today have them, exported: each asserts how many copies are left, and the numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

import tvm_mxplan

CHANNELS, HEIGHT, WIDTH = 24, 9, 7


class Model:
    """An ONNX graph with random weights, made node by node."""

    def __init__(self) -> None:
        self.random = np.random.default_rng(3)
        self.nodes: list[onnx.NodeProto] = []
        self.weights: list[onnx.TensorProto] = []

    def add(self, operator: str, *inputs: str, **attributes: object) -> str:
        name = f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(operator, inputs, [name], **attributes))
        return name

    def constant(self, array: np.ndarray) -> str:
        self.weights.append(numpy_helper.from_array(array, f"w{len(self.weights)}"))
        return self.weights[-1].name

    def weight(self, *shape: int) -> str:
        scale = np.sqrt(2.0 / max(1, int(np.prod(shape[1:]))))
        return self.constant((self.random.standard_normal(shape) * scale).astype("float32"))

    def shape(self, *extents: int) -> str:
        return self.constant(np.array(extents, "int64"))

    def convolution(self, x: str, outputs: int, inputs: int, extent: int, **attributes: object) -> str:
        weights, bias = self.weight(outputs, inputs, extent, extent), self.weight(outputs)
        pads = [extent // 2] * 4
        return self.add("Conv", x, weights, bias, **{"pads": pads, **attributes})

    def norm(self, x: str) -> str:
        return self.add("LayerNormalization", x, self.weight(CHANNELS), self.weight(CHANNELS), axis=-1)

    def finish(self, result: str) -> bytes:
        image = (1, 3, 4 * HEIGHT, 4 * WIDTH)
        x = helper.make_tensor_value_info("x", TensorProto.FLOAT, image)
        y = helper.make_tensor_value_info(result, TensorProto.FLOAT, (1, CHANNELS))
        graph = helper.make_graph(self.nodes, "blocks", [x], [y], self.weights)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
        onnx.checker.check_model(model)
        return model.SerializeToString()


def convnext(m: Model, x: str) -> str:
    """Depthwise, then a layer norm and two products with channels last, and back."""
    y = m.convolution(x, CHANNELS, 1, 7, group=CHANNELS)
    y = m.norm(m.add("Transpose", y, perm=[0, 2, 3, 1]))
    y = m.add("Relu", m.add("MatMul", y, m.weight(CHANNELS, 3 * CHANNELS)))
    y = m.add("MatMul", y, m.weight(3 * CHANNELS, CHANNELS))
    return m.add("Add", x, m.add("Transpose", y, perm=[0, 3, 1, 2]))


def tokens(m: Model, x: str) -> str:
    """Pixels as tokens for a layer norm and a product, and an image again for a convolution."""
    y = m.add("Reshape", x, m.shape(1, CHANNELS, -1))
    y = m.norm(m.add("Transpose", y, perm=[0, 2, 1]))
    y = m.add("MatMul", y, m.weight(CHANNELS, CHANNELS))
    y = m.add("Transpose", y, perm=[0, 2, 1])
    y = m.add("Reshape", y, m.shape(1, CHANNELS, HEIGHT, WIDTH))
    return m.add("Add", x, m.convolution(y, CHANNELS, CHANNELS, 3))


def last_norm(m: Model, x: str) -> str:
    """A layer norm over channels between convolutions alone."""
    y = m.norm(m.add("Transpose", x, perm=[0, 2, 3, 1]))
    return m.convolution(m.add("Transpose", y, perm=[0, 3, 1, 2]), CHANNELS, CHANNELS, 3)


def built(blocks: Sequence[Callable[[Model, str], str]]) -> bytes:
    m = Model()
    x = m.convolution("x", CHANNELS, 3, 4, strides=[4, 4], pads=[0] * 4)
    for block in blocks:
        x = block(m, x)
    return m.finish(m.add("ReduceMean", x, axes=[2, 3], keepdims=0))


@pytest.mark.parametrize(
    ("blocks", "norms"),
    [([convnext] * 3, 3), ([tokens] * 2, 2), ([last_norm, convnext, tokens], 3)],
    ids=["convnext", "tokens", "all"],
)
def test_no_copy_is_left_but_one_before_the_blocks(
    blocks: list[Callable[[Model, str], str]], norms: int
) -> None:
    model = built(blocks)
    x = np.random.default_rng(1).standard_normal((1, 3, 4 * HEIGHT, 4 * WIDTH)).astype("float32")
    executable = tvm_mxplan.compile(onnx.load_from_string(model))
    (region,) = executable.report.regions
    kinds = [step.kind for step in region.steps]
    assert kinds.count("layer_normalization") == norms
    assert not executable.report.kept
    assert kinds.count("reorder") <= 1, "of the image that comes in, or of what the first convolution makes"
    assert "reorder" not in kinds[kinds.index("layer_normalization") :]
    session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    np.testing.assert_allclose(
        executable(x=x)[0].numpy(), session.run(None, {"x": x})[0], rtol=2e-4, atol=2e-5
    )
