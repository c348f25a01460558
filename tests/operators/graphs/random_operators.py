"""Single ONNX operators with random, odd attributes: what a random graph of usual layers never has.

Negative axes, axes that go away, operands of any rank, uneven padding, automatic padding, dilation, output
padding, groups, orders of axes, factors of Gemm, extents of 1.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from onnx_node import Graph

Pick = np.random.Generator


def _between(random: Pick, low: int, high: int, count: int = 1) -> list[int]:
    return [int(number) for number in random.integers(low, high + 1, count)]


def _one(random: Pick, *choices: object) -> object:
    return choices[int(random.integers(len(choices)))]


def _function(g: Graph, y: str) -> str:
    """Up to two functions behind an operator."""
    for _ in range(int(g.random.integers(3))):
        if g.random.random() < 0.5:
            y = g.op(str(_one(g.random, "Relu", "Tanh", "Sigmoid", "Abs", "Neg", "Softplus")), y)
        else:
            operands = [y, g.scalar(float(g.random.uniform(0.5, 2)))]
            swapped = g.random.random() < 0.4
            kind = _one(g.random, "Add", "Mul", "Sub", "Max", "Min")
            y = g.op(str(kind), *(operands[::-1] if swapped else operands))
    return y


def convolution(g: Graph) -> str:
    rank, groups = _one(g.random, 1, 2, 2, 3), int(g.random.integers(1, 4))
    inputs, outputs = (groups * n for n in _between(g.random, 1, 4, 2))
    kernel, dilation = _between(g.random, 1, 4, rank), _between(g.random, 1, 3, rank)
    size = [
        (k - 1) * d + 1 + n for k, d, n in zip(kernel, dilation, _between(g.random, 0, 6, rank), strict=True)
    ]
    attrs = {"strides": _between(g.random, 1, 3, rank), "group": groups, "dilations": dilation}
    if g.random.random() < 0.7:
        attrs["pads"] = _between(g.random, 0, 3, 2 * rank)
    else:
        attrs["auto_pad"], attrs["dilations"] = _one(g.random, "SAME_UPPER", "SAME_LOWER"), [1] * rank
    weights = g.constant(outputs, inputs // groups, *kernel)
    return _function(g, g.op("Conv", g.input(2, inputs, *size), weights, g.constant(outputs), **attrs))


def deconvolution(g: Graph) -> str:
    rank, groups = _one(g.random, 1, 2, 2), int(g.random.integers(1, 3))
    inputs, outputs = groups * int(g.random.integers(1, 5)), int(g.random.integers(1, 6))
    kernel, strides = _between(g.random, 2, 4, rank), _between(g.random, 1, 3, rank)
    attrs = {
        "strides": strides,
        "group": groups,
        "pads": _between(g.random, 0, 1, rank) * 2,
        "output_padding": [int(g.random.integers(stride)) for stride in strides],
    }
    x = g.input(2, inputs, *_between(g.random, 2, 6, rank))
    return _function(g, g.op("ConvTranspose", x, g.constant(inputs, outputs, *kernel), **attrs))


def pooling(g: Graph) -> str:
    rank = _one(g.random, 1, 2, 2, 3)
    kernel = _between(g.random, 1, 4, rank)
    attrs = {"kernel_shape": kernel, "strides": _between(g.random, 1, 4, rank)}
    attrs["pads"] = [int(g.random.integers(size)) for size in kernel * 2]
    average = g.random.random() < 0.5
    if average:
        attrs["count_include_pad"] = int(g.random.integers(2))
    x = g.input(
        2,
        int(g.random.integers(1, 6)),
        *[k + n for k, n in zip(kernel, _between(g.random, 0, 7, rank), strict=True)],
    )
    return _function(g, g.op("AveragePool" if average else "MaxPool", x, **attrs))


def reduction(g: Graph) -> str:
    shape = _between(g.random, 1, 5, int(g.random.integers(2, 5)))
    first = int(g.random.integers(1, len(shape)))
    axes = [axis - int(g.random.integers(2)) * len(shape) for axis in range(first, len(shape))]
    kind = _one(g.random, "Mean", "Max", "Min", "Prod", "L1", "L2", "SumSquare")
    return g.op(f"Reduce{kind}", g.input(*shape), axes=axes, keepdims=int(g.random.integers(2)))


def softmax(g: Graph) -> str:
    shape = _between(g.random, 1, 6, int(g.random.integers(1, 5)))
    axis = int(g.random.integers(-len(shape), len(shape)))
    return g.op(str(_one(g.random, "Softmax", "LogSoftmax")), g.input(*shape), axis=axis)


def binary(g: Graph) -> str:
    shape = _between(g.random, 1, 5, int(g.random.integers(1, 5)))
    part = [size if g.random.random() < 0.6 else 1 for size in shape][int(g.random.integers(len(shape))) :]
    part = [1] * int(g.random.integers(3)) + part if g.random.random() < 0.2 else part
    other = g.constant(*part) if g.random.random() < 0.5 else g.input(*part)
    operands = [g.input(*shape), other]
    kind = _one(g.random, "Add", "Sub", "Mul", "Max", "Min")
    return _function(g, g.op(str(kind), *(operands[::-1] if g.random.random() < 0.4 else operands)))


def matrix_product(g: Graph) -> str:
    rows, depth, columns = (5, 5, 5) if g.random.random() < 0.5 else _between(g.random, 1, 6, 3)
    batch = _between(g.random, 1, 3, int(g.random.integers(3)))
    operands = []
    for shape in ([*batch, rows, depth], [*batch, depth, columns]):
        order = g.random.permutation(len(shape)).tolist()
        stored = [shape[order.index(axis)] for axis in range(len(shape))]
        source = g.constant(*stored) if operands and g.random.random() < 0.5 else g.input(*stored)
        operands.append(g.op("Transpose", source, perm=order))
    return _function(g, g.op("MatMul", *operands))


def dense(g: Graph) -> str:
    rows, depth, columns = _between(g.random, 1, 6, 3)
    across, turned = int(g.random.integers(2)), int(g.random.integers(2))
    weights = (columns, depth) if turned else (depth, columns)
    bias = _one(g.random, (columns,), (1,), (rows, columns), (1, columns), (rows, 1))
    factors = {"alpha": float(g.random.uniform(-2, 2)), "beta": float(g.random.uniform(-2, 2))}
    x = g.input(*((depth, rows) if across else (rows, depth)))
    y = g.op("Gemm", x, g.constant(*weights), g.constant(*bias), transA=across, transB=turned, **factors)
    return _function(g, y)


def normalization(g: Graph) -> str:
    channels, size = int(g.random.integers(1, 6)), _between(g.random, 1, 3, int(g.random.integers(1, 4)))
    x = g.input(2, channels, *size)
    if g.random.random() < 0.5:
        return _function(g, g.batch_norm(x, channels))
    return g.op("InstanceNormalization", x, g.constant(channels), g.constant(channels), epsilon=0.1)


OPERATORS: list[Callable[[Graph], str]] = [
    convolution, deconvolution, pooling, reduction, softmax, binary, matrix_product, dense, normalization,
]  # fmt: skip
