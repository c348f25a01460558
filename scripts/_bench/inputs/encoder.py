"""An encoder as BERT-base is one, in Relax: attention, layer norms, GELU over 128 tokens of 768 numbers."""

from __future__ import annotations

import numpy as np
import onnx
import onnx.numpy_helper
import tvm
from tvm import relax
from tvm.relax import op

NAME = "encoder"
TOKENS, WIDTH, HEADS, INNER, LAYERS = 128, 768, 12, 3072, 12


def encoder(batch: int = 1, layers: int = LAYERS) -> tvm.IRModule:
    """Module with a function ``main`` of one tensor; weights are random."""
    random = np.random.default_rng(0)
    builder = relax.BlockBuilder()

    def weights(*shape: int) -> relax.Constant:
        return relax.const(random.standard_normal(shape, np.float32) / np.float32(np.sqrt(shape[0])))

    def dense(x: relax.Expr, width: int) -> relax.Expr:
        inputs = int(x.ty.shape[-1])
        return builder.emit(op.add(builder.emit(op.matmul(x, weights(inputs, width))), weights(width)))

    def norm(x: relax.Expr) -> relax.Expr:
        return builder.emit(op.nn.layer_norm(x, weights(WIDTH), weights(WIDTH), [-1], 1e-5))

    def heads(x: relax.Expr) -> relax.Expr:
        split = builder.emit(op.reshape(x, (batch, TOKENS, HEADS, WIDTH // HEADS)))
        return builder.emit(op.permute_dims(split, [0, 2, 1, 3]))

    def attention(x: relax.Expr) -> relax.Expr:
        query, key, value = (heads(dense(x, WIDTH)) for _ in range(3))
        scores = builder.emit(op.matmul(query, builder.emit(op.permute_dims(key, [0, 1, 3, 2]))))
        scores = builder.emit(op.divide(scores, relax.const(np.float32(np.sqrt(WIDTH // HEADS)))))
        mixed = builder.emit(op.matmul(builder.emit(op.nn.softmax(scores, -1)), value))
        mixed = builder.emit(op.permute_dims(mixed, [0, 2, 1, 3]))
        return dense(builder.emit(op.reshape(mixed, (batch, TOKENS, WIDTH))), WIDTH)

    x = relax.Var("x", relax.TensorType((batch, TOKENS, WIDTH), "float32"))
    with builder.function("main", [x]):
        with builder.dataflow():
            state: relax.Expr = x
            for _ in range(layers):
                state = norm(builder.emit(op.add(state, attention(state))))
                inner = builder.emit(op.nn.gelu(dense(state, INNER)))
                state = norm(builder.emit(op.add(state, dense(inner, WIDTH))))
            result = builder.emit_output(state)
        builder.emit_func_output(result)
    return builder.get()


def encoder_model(batch: int = 1, layers: int = LAYERS) -> onnx.ModelProto:
    """The same kind of network in ONNX, in the operators that older exporters write it in."""
    return _OnnxEncoder(batch).model(layers)


class _OnnxEncoder:
    def __init__(self, batch: int) -> None:
        self._batch = batch
        self._random = np.random.default_rng(0)
        self._nodes: list[onnx.NodeProto] = []
        self._initializers: list[onnx.TensorProto] = []

    def model(self, layers: int) -> onnx.ModelProto:
        shape = (self._batch, TOKENS, WIDTH)
        state = "x"
        for _ in range(layers):
            state = self._norm(self._op("Add", state, self._attention(state)))
            inner = self._gelu(self._dense(state, WIDTH, INNER))
            state = self._norm(self._op("Add", state, self._dense(inner, INNER, WIDTH)))
        self._nodes[-1].output[0] = "y"
        ports = [onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, shape) for name in "xy"]
        graph = onnx.helper.make_graph(self._nodes, NAME, ports[:1], ports[1:], self._initializers)
        return onnx.helper.make_model(graph, ir_version=9, opset_imports=[onnx.helper.make_opsetid("", 17)])

    def _op(self, kind: str, *operands: str, **attributes: object) -> str:
        name = f"{kind.lower()}{len(self._nodes)}"
        self._nodes.append(onnx.helper.make_node(kind, operands, [name], name=name, **attributes))
        return name

    def _constant(self, array: np.ndarray) -> str:
        name = f"constant{len(self._initializers)}"
        self._initializers.append(onnx.numpy_helper.from_array(array, name))
        return name

    def _number(self, value: float) -> str:
        return self._constant(np.array(value, np.float32))

    def _weights(self, *shape: int) -> str:
        drawn = self._random.standard_normal(shape, np.float32) / np.float32(np.sqrt(shape[0]))
        return self._constant(drawn)

    def _dense(self, x: str, inputs: int, width: int) -> str:
        return self._op("Add", self._op("MatMul", x, self._weights(inputs, width)), self._weights(width))

    def _norm(self, x: str) -> str:
        mean = self._op("ReduceMean", x, axes=[-1])
        centred = self._op("Sub", x, mean)
        variance = self._op("ReduceMean", self._op("Pow", centred, self._number(2)), axes=[-1])
        deviation = self._op("Sqrt", self._op("Add", variance, self._number(1e-5)))
        scaled = self._op("Mul", self._op("Div", centred, deviation), self._weights(WIDTH))
        return self._op("Add", scaled, self._weights(WIDTH))

    def _gelu(self, x: str) -> str:
        error = self._op("Erf", self._op("Div", x, self._number(float(np.sqrt(2)))))
        product = self._op("Mul", x, self._op("Add", error, self._number(1)))
        return self._op("Mul", product, self._number(0.5))

    def _heads(self, x: str, order: list[int]) -> str:
        split = self._constant(np.array([self._batch, TOKENS, HEADS, WIDTH // HEADS]))
        return self._op("Transpose", self._op("Reshape", x, split), perm=order)

    def _attention(self, x: str) -> str:
        orders = ([0, 2, 1, 3], [0, 2, 3, 1], [0, 2, 1, 3])
        query, key, value = (self._heads(self._dense(x, WIDTH, WIDTH), order) for order in orders)
        scale = self._number(float(np.sqrt(WIDTH // HEADS)))
        scores = self._op("Div", self._op("MatMul", query, key), scale)
        mixed = self._op("MatMul", self._op("Softmax", scores, axis=-1), value)
        joined = self._constant(np.array([self._batch, TOKENS, WIDTH]))
        together = self._op("Reshape", self._op("Transpose", mixed, perm=[0, 2, 1, 3]), joined)
        return self._dense(together, WIDTH, WIDTH)
