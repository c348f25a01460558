"""Networks at sizes that are numbers or names: image networks of the zoo, and an encoder of token ids."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tvm_mxplan.testing import zoo

if TYPE_CHECKING:
    import onnx

Size = int | str
ENCODER = "text_encoder"
VOCABULARY, POSITIONS, WIDTH, HEADS, INNER, LAYERS = 1000, 512, 256, 4, 1024, 4


def names_of(network: str) -> tuple[str, ...]:
    """The dimensions that a network leaves open."""
    return ("batch", "tokens") if network == ENCODER else ("batch", "height", "width")


def network_at(network: str, sizes: Sequence[Size]) -> onnx.ModelProto:
    """The network with these sizes, in the order of ``names_of``; the weights are the same for all."""
    if network == ENCODER:
        return _Encoder().model(*sizes)
    batch, *image = sizes
    model = zoo.load(network, batch)
    del model.graph.value_info[:]
    for dim, extent in zip(model.graph.input[0].type.tensor_type.shape.dim[2:], image, strict=True):
        dim.Clear()
        if isinstance(extent, str):
            dim.dim_param = extent
        else:
            dim.dim_value = extent
    return model


def inputs_at(network: str, sizes: Sequence[int]) -> dict[str, np.ndarray]:
    """Random inputs by name; of a text's samples, each is as long as it likes."""
    if network != ENCODER:
        name, shape = zoo.load_skeleton(network).input
        return {name: zoo.random_images((sizes[0], shape[0], *sizes[1:]), 1)}
    random = np.random.default_rng(1)
    batch, tokens = sizes
    lengths = random.integers(1, tokens + 1, (batch, 1))
    mask = (np.arange(tokens)[None] < lengths).astype(np.int64)
    return {"ids": random.integers(0, VOCABULARY, (batch, tokens)), "mask": mask}


class _Encoder:
    """Embeddings, attention with a mask, layer norms and GELU, as exporters write them."""

    def __init__(self) -> None:
        self._random = np.random.default_rng(0)
        self._nodes: list[onnx.NodeProto] = []
        self._weights: list[onnx.TensorProto] = []

    def model(self, batch: Size, tokens: Size) -> onnx.ModelProto:
        from onnx import TensorProto, helper

        ids, mask = (
            helper.make_tensor_value_info(n, TensorProto.INT64, [batch, tokens]) for n in ("ids", "mask")
        )
        state = self._norm(self._node("Add", self._embedded("ids"), self._positions("ids")))
        bias = self._bias("mask")
        for _ in range(LAYERS):
            state = self._norm(self._node("Add", state, self._attention(state, bias)))
            inner = self._gelu(self._dense(state, WIDTH, INNER))
            state = self._norm(self._node("Add", state, self._dense(inner, INNER, WIDTH)))
        self._nodes.append(helper.make_node("Identity", [state], ["y"]))
        result = helper.make_tensor_value_info("y", TensorProto.FLOAT, [batch, tokens, WIDTH])
        graph = helper.make_graph(self._nodes, "encoder", [ids, mask], [result], self._weights)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)

    def _node(self, kind: str, *inputs: str, **attributes: Any) -> str:
        from onnx import helper

        name = f"{kind.lower()}_{len(self._nodes)}"
        self._nodes.append(helper.make_node(kind, list(inputs), [name], **attributes))
        return name

    def _constant(self, value: Any, dtype: str) -> str:
        from onnx import numpy_helper

        name = f"constant_{len(self._weights)}"
        self._weights.append(numpy_helper.from_array(np.asarray(value, dtype), name))
        return name

    def _matrix(self, *shape: int, scale: float = 1.0, mean: float = 0.0) -> str:
        return self._constant(mean + scale * self._random.standard_normal(shape), "float32")

    def _embedded(self, ids: str) -> str:
        return self._node("Gather", self._matrix(VOCABULARY, WIDTH), ids)

    def _positions(self, ids: str) -> str:
        one, zero = self._constant([1], "int64"), self._constant([0], "int64")
        tokens = self._node("Gather", self._node("Shape", ids), one, axis=0)
        return self._node("Slice", self._matrix(POSITIONS, WIDTH), zero, tokens, zero)

    def _bias(self, mask: str) -> str:
        wide = self._node("Unsqueeze", mask, self._constant([1, 2], "int64"))
        hidden = self._node("Sub", self._constant(1, "float32"), self._node("Cast", wide, to=1))
        return self._node("Mul", hidden, self._constant(-1e4, "float32"))

    def _norm(self, x: str) -> str:
        scale, shift = self._matrix(WIDTH, scale=0.1, mean=1.0), self._matrix(WIDTH, scale=0.1)
        return self._node("LayerNormalization", x, scale, shift, axis=-1, epsilon=1e-5)

    def _dense(self, x: str, depth: int, width: int) -> str:
        product = self._node("MatMul", x, self._matrix(depth, width, scale=depth**-0.5))
        return self._node("Add", product, self._matrix(width, scale=0.1))

    def _gelu(self, x: str) -> str:
        erf = self._node("Erf", self._node("Div", x, self._constant(2**0.5, "float32")))
        raised = self._node("Add", erf, self._constant(1, "float32"))
        return self._node("Mul", self._node("Mul", x, raised), self._constant(0.5, "float32"))

    def _heads(self, x: str, order: list[int]) -> str:
        split = self._node("Reshape", x, self._constant([0, 0, HEADS, WIDTH // HEADS], "int64"))
        return self._node("Transpose", split, perm=order)

    def _attention(self, x: str, bias: str) -> str:
        orders = ([0, 2, 1, 3], [0, 2, 3, 1], [0, 2, 1, 3])
        query, key, value = (self._heads(self._dense(x, WIDTH, WIDTH), order) for order in orders)
        scale = self._constant((WIDTH // HEADS) ** 0.5, "float32")
        scores = self._node("Add", self._node("Div", self._node("MatMul", query, key), scale), bias)
        mixed = self._node("MatMul", self._node("Softmax", scores, axis=-1), value)
        joined = self._node("Transpose", mixed, perm=[0, 2, 1, 3])
        flat = self._node("Reshape", joined, self._constant([0, 0, WIDTH], "int64"))
        return self._dense(flat, WIDTH, WIDTH)
