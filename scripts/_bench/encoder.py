"""An encoder as BERT-base is one, in Relax: attention, layer norms, GELU over 128 tokens of 768 numbers."""

from __future__ import annotations

import numpy as np
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
