"""A batch that is known at run time only: the same steps are offloaded, for every batch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import numpy as np
import pytest
from onnx_node import Graph, computing, onnxruntime_outputs, tolerance

import tvm_mxplan
from tvm_mxplan.testing.reference import relative_l2


def squeeze_and_excite(g: Graph) -> tuple[str, dict[str, int]]:
    x = g.op("Relu", g.batch_norm(g.conv(g.input(3, 3, 7, 7), 3, 17), 17))
    gate = g.op("Sigmoid", g.conv(g.op("GlobalAveragePool", x), 17, 17, kernel=1))
    return g.op("Mul", x, gate), {"convolution": 1, "squeeze_excite": 1}


def attention(g: Graph) -> tuple[str, dict[str, int]]:
    x = g.input(3, 5, 24)
    split = g.op("Reshape", x, g.ints(0, 0, 3, 8))
    q, k = (g.op("Transpose", split, perm=axes) for axes in ([0, 2, 1, 3], [0, 2, 3, 1]))
    scores = g.op("Add", g.op("Div", g.op("MatMul", q, k), g.scalar(8**0.5)), g.input(3, 1, 1, 5))
    mixed = g.op("Transpose", g.op("MatMul", g.op("Softmax", scores, axis=-1), q), perm=[0, 2, 1, 3])
    y = g.op("Add", x, g.op("Reshape", mixed, g.ints(0, 0, 24)))
    y = g.op("LayerNormalization", y, g.vector(24), g.constant(24), axis=-1)
    y = g.op("Add", g.op("MatMul", y, g.constant(24, 17)), g.constant(17))
    return y, {"attention": 1, "matmul": 1, "binary": 1, "layer_normalization": 1}


def concat_with_a_piece_twice(g: Graph) -> tuple[str, dict[str, int]]:
    x = g.input(3, 3, 6, 6)
    a, b = g.conv(x, 3, 17), g.conv(x, 3, 16)
    y = g.batch_norm(g.op("Concat", a, b, a, axis=1), 50)
    return y, {"convolution": 2, "concat": 1, "binary": 1}


def transposed_layer_norm(g: Graph) -> tuple[str, dict[str, int]]:
    x = g.op("Transpose", g.input(3, 5, 24), perm=[0, 2, 1])
    return g.op("LayerNormalization", x, g.vector(5), axis=-1), {"layer_normalization": 1}


def first_operand_broadcast(g: Graph) -> tuple[str, dict[str, int]]:
    return g.op("Sub", g.input(3, 17, 5, 1), g.input(3, 17, 5, 7)), {"binary": 1}


BUILDERS = [
    squeeze_and_excite,
    attention,
    concat_with_a_piece_twice,
    transposed_layer_norm,
    first_operand_broadcast,
]


@pytest.mark.parametrize("build", BUILDERS)
def test_every_batch(build: Callable[[Graph], tuple[str, dict[str, int]]]):
    g = Graph()
    output, steps = build(g)
    model = g.model(output)
    del model.graph.value_info[:]
    for value in model.graph.input:
        value.type.tensor_type.shape.dim[0].dim_param = "batch"
    ex = tvm_mxplan.compile(model)
    assert Counter(step.kind for step in computing(ex.report)) == Counter(steps), str(ex.report)
    assert not ex.report.fallbacks
    for batch in (1, 3, 5):
        inputs = {name: np.concatenate([array, array])[:batch] for name, array in g.inputs.items()}
        (expected,) = onnxruntime_outputs(model, inputs, optimise=False)
        assert relative_l2(ex(*inputs.values())[0].numpy(), expected) <= tolerance(153)
