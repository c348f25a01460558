"""Random small graphs: convolutional ones and ones of matrices, with odd channels and several outputs."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from onnx_node import Graph

Shape = tuple[int, ...]


class RandomGraph:
    """Grows a graph operator by operator; ``tensors`` holds names and shapes."""

    def __init__(self, seed: int, operators: list[Callable[[RandomGraph, str, Shape], None]]) -> None:
        self.graph = Graph(seed)
        self.random = self.graph.random
        self.operators = operators
        self.tensors: list[tuple[str, Shape]] = []

    def choice(self, *options: object) -> object:
        return options[int(self.random.integers(0, len(options)))]

    def add(self, name: str, shape: Shape) -> None:
        self.tensors.append((name, shape))

    def pick(self, accept: Callable[[Shape], bool] = lambda _: True) -> tuple[str, Shape]:
        """A tensor, preferably a late one."""
        fitting = [tensor for tensor in self.tensors if accept(tensor[1])]
        return fitting[max(0, len(fitting) - 1 - abs(int(self.random.normal(0, 2))))]

    def grow(self, count: int) -> tuple[Graph, list[str]]:
        """Append ``count`` operators; the graph, and what nothing reads as outputs with some extra one."""
        for _ in range(count):
            self.operators[int(self.random.integers(0, len(self.operators)))](self, *self.pick())
        read = {name for node in self.graph.nodes for name in node.input}
        made = [name for name, _ in self.tensors if name not in self.graph.inputs]
        inner = [name for name in made if name in read]
        outputs = [name for name in made if name not in read]
        outputs += [str(self.random.choice(inner))] if inner and self.random.random() < 0.5 else []
        return self.graph, outputs or [self.graph.op("Relu", self.tensors[0][0])]


# --- images ----------------------------------------------------------------------------------------------


def _conv(r: RandomGraph, x: str, s: Shape) -> None:
    outputs, kernel = int(r.choice(3, 16, 17, 32)), int(r.choice(1, 3))
    r.add(r.graph.conv(x, s[1], outputs, kernel), (s[0], outputs, *s[2:]))


def _depthwise(r: RandomGraph, x: str, s: Shape) -> None:
    r.add(r.graph.conv(x, s[1], s[1], groups=s[1]), s)


def _batch_norm(r: RandomGraph, x: str, s: Shape) -> None:
    r.add(r.graph.batch_norm(x, s[1]), s)


def _function(r: RandomGraph, x: str, s: Shape) -> None:
    r.add(r.graph.op(str(r.choice("Relu", "Sigmoid", "Tanh", "HardSwish", "LeakyRelu")), x), s)


def _two(r: RandomGraph, x: str, s: Shape) -> None:
    other, _ = r.pick(lambda shape: shape == s)
    r.add(r.graph.op(str(r.choice("Add", "Mul", "Max", "Sum")), x, other), s)


def _vector(r: RandomGraph, x: str, s: Shape) -> None:
    size = (s[1], *(1,) * (len(s) - 2)) if len(s) == 4 else (s[-1],)
    operands = [x, r.graph.constant(*size)][:: int(r.choice(1, -1))]
    r.add(r.graph.op(str(r.choice("Add", "Mul", "Sub")), *operands), s)


def _number(r: RandomGraph, x: str, s: Shape) -> None:
    r.add(r.graph.op(str(r.choice("Add", "Mul", "Div")), x, r.graph.scalar(0.7)), s)


def _gate(r: RandomGraph, x: str, s: Shape) -> None:
    gate = r.graph.conv(r.graph.op("GlobalAveragePool", x), s[1], s[1], kernel=1)
    r.add(r.graph.op("Mul", x, r.graph.op("Sigmoid", gate)), s)


def _concat_channels(r: RandomGraph, x: str, s: Shape) -> None:
    fitting = lambda shape: (shape[0], *shape[2:]) == (s[0], *s[2:])  # noqa: E731
    others = [r.pick(fitting) for _ in range(int(r.choice(1, 2)))]
    channels = s[1] + sum(shape[1] for _, shape in others)
    r.add(r.graph.op("Concat", x, *[name for name, _ in others], axis=1), (s[0], channels, *s[2:]))


def _pool(r: RandomGraph, x: str, s: Shape) -> None:
    r.add(r.graph.op(str(r.choice("MaxPool", "AveragePool")), x, kernel_shape=[3, 3], pads=[1] * 4), s)


def _pad(r: RandomGraph, x: str, s: Shape) -> None:
    value = r.graph.scalar(float(r.choice(0.0, 0.5)))
    padded = r.graph.op("Pad", x, r.graph.ints(0, 0, 1, 0, 0, 0, 0, 1), value)
    r.add(padded, (*s[:2], s[2] + 1, s[3] + 1))


def _shuffle(r: RandomGraph, x: str, s: Shape) -> None:
    if s[1] % 2 == 0:
        split = r.graph.op("Reshape", x, r.graph.ints(s[0], 2, s[1] // 2, *s[2:]))
        swapped = r.graph.op("Transpose", split, perm=[0, 2, 1, 3, 4])
        r.add(r.graph.op("Reshape", swapped, r.graph.ints(*s)), s)


def _split(r: RandomGraph, x: str, s: Shape) -> None:
    axis = int(r.random.integers(0, len(s)))
    if s[axis] > 1:
        first = int(r.choice(s[axis] // 2, r.random.integers(1, s[axis])))
        for name, part in zip(
            r.graph.ops("Split", 2, x, r.graph.ints(first, s[axis] - first), axis=axis),
            (first, s[axis] - first),
            strict=True,
        ):
            r.add(name, (*s[:axis], part, *s[axis + 1 :]))


def _slice(r: RandomGraph, x: str, s: Shape) -> None:
    starts = [int(r.random.integers(0, extent)) for extent in s]
    ends = [int(r.random.integers(low + 1, high + 1)) for low, high in zip(starts, s, strict=True)]
    bounds = [[low - size for low, size in zip(starts, s, strict=True)], ends, range(len(s)), [1] * len(s)]
    sliced = r.graph.op("Slice", x, *[r.graph.ints(*numbers) for numbers in bounds])
    r.add(sliced, tuple(high - low for low, high in zip(starts, ends, strict=True)))


def _softmax(r: RandomGraph, x: str, s: Shape) -> None:
    r.add(r.graph.op("Softmax", x, axis=int(r.random.integers(0, len(s)))), s)


def _function_of_tvm(r: RandomGraph, x: str, s: Shape) -> None:
    r.add(r.graph.op(str(r.choice("Sin", "Cos", "Erf", "Atan")), x), s)


def _two_of_tvm(r: RandomGraph, x: str, s: Shape) -> None:
    """No choice between numbers that rounding could turn around."""
    other, _ = r.pick(lambda shape: shape == s)
    r.add(r.graph.op("Sin", r.graph.op("Add", r.graph.op("Atan", x), r.graph.op("Erf", other))), s)


def image_graph(seed: int) -> tuple[Graph, list[str]]:
    operators = [
        _conv, _conv, _conv, _depthwise, _batch_norm, _function, _function, _two, _two, _vector, _number,
        _gate, _concat_channels, _concat_channels, _pool, _pad, _shuffle, _split, _split, _slice, _softmax,
    ]  # fmt: skip
    r = RandomGraph(seed, operators)
    batch, size = int(r.choice(1, 2)), int(r.choice(4, 5))
    for channels in (int(r.choice(3, 17)), 16):
        r.add(r.graph.input(batch, channels, size, size), (batch, channels, size, size))
    return r.grow(int(r.random.integers(5, 14)))


def _conv_of_any_width(r: RandomGraph, x: str, s: Shape) -> None:
    """Up to 130 channels, in as many groups as both sides divide into."""
    outputs, kernel = int(r.random.integers(1, 131)), int(r.choice(1, 3))
    divisors = [n for n in range(1, s[1] + 1) if s[1] % n == 0 and outputs % n == 0]
    groups = int(r.random.choice(divisors))
    r.add(r.graph.conv(x, s[1], outputs, kernel, groups), (s[0], outputs, *s[2:]))


def wide_graph(seed: int) -> tuple[Graph, list[str]]:
    """Branches of convolutions of 1 to 130 channels that meet in sums and concats."""
    operators = [
        _conv_of_any_width, _conv_of_any_width, _conv_of_any_width, _depthwise, _batch_norm, _function, _two,
        _two, _vector, _gate, _concat_channels, _concat_channels, _pool,
    ]  # fmt: skip
    r = RandomGraph(seed, operators)
    batch, channels, size = int(r.choice(1, 2)), int(r.random.integers(1, 131)), int(r.choice(4, 5))
    r.add(r.graph.input(batch, channels, size, size), (batch, channels, size, size))
    _conv_of_any_width(r, *r.pick())
    return r.grow(int(r.random.integers(6, 14)))


def crossing_graph(seed: int) -> tuple[Graph, list[str]]:
    """Images in several regions, with operators between them that the library does not have."""
    operators = [
        _conv, _conv, _conv, _function, _two, _vector, _gate, _concat_channels, _pool,
        _function_of_tvm, _function_of_tvm, _two_of_tvm,
    ]  # fmt: skip
    r = RandomGraph(seed, operators)
    batch, channels = int(r.choice(1, 2)), int(r.choice(3, 16, 17))
    r.add(r.graph.input(batch, channels, 5, 5), (batch, channels, 5, 5))
    return r.grow(int(r.random.integers(6, 16)))


# --- matrices --------------------------------------------------------------------------------------------


def _dense(r: RandomGraph, x: str, s: Shape) -> None:
    width = int(r.choice(12, 17, 24))
    r.add(r.graph.op("MatMul", x, r.graph.constant(s[-1], width)), (*s[:-1], width))


def _gram(r: RandomGraph, x: str, s: Shape) -> None:
    axes = [*range(len(s) - 2), len(s) - 1, len(s) - 2]
    r.add(r.graph.op("MatMul", x, r.graph.op("Transpose", x, perm=axes)), (*s[:-1], s[-2]))


def _transpose(r: RandomGraph, x: str, s: Shape) -> None:
    axes = r.random.permutation(len(s)).tolist()
    r.add(r.graph.op("Transpose", x, perm=axes), tuple(s[axis] for axis in axes))


def _heads(r: RandomGraph, x: str, s: Shape) -> None:
    if len(s) == 3 and s[2] % 3 == 0:
        split = r.graph.op("Reshape", x, r.graph.ints(s[0], s[1], 3, s[2] // 3))
        r.add(r.graph.op("Transpose", split, perm=[0, 2, 1, 3]), (s[0], 3, s[1], s[2] // 3))


def _layer_norm(r: RandomGraph, x: str, s: Shape) -> None:
    g = r.graph
    r.add(g.op("LayerNormalization", x, g.vector(s[-1]), g.constant(s[-1]), axis=-1, epsilon=0.1), s)


def _gelu(r: RandomGraph, x: str, s: Shape) -> None:
    g = r.graph
    gate = g.op("Add", g.op("Erf", g.op("Div", x, g.scalar(2**0.5))), g.scalar(1.0))
    r.add(g.op("Mul", g.op("Mul", x, gate), g.scalar(0.5)), s)


def _reduce(r: RandomGraph, x: str, s: Shape) -> None:
    axis = int(r.random.integers(0, len(s)))
    kind = str(r.choice("ReduceMean", "ReduceMax"))
    r.add(r.graph.op(kind, x, axes=[axis]), tuple(1 if dim == axis else size for dim, size in enumerate(s)))


def _concat(r: RandomGraph, x: str, s: Shape) -> None:
    axis = int(r.random.integers(0, len(s)))
    other, shape = r.pick(lambda t: len(t) == len(s) and t[:axis] + t[axis + 1 :] == s[:axis] + s[axis + 1 :])
    whole = (*s[:axis], s[axis] + shape[axis], *s[axis + 1 :])
    r.add(r.graph.op("Concat", x, other, axis=axis), whole)


def matrix_graph(seed: int) -> tuple[Graph, list[str]]:
    operators = [
        _dense, _dense, _gram, _transpose, _transpose, _heads, _layer_norm, _gelu, _function, _two, _vector,
        _vector, _number, _softmax, _reduce, _concat, _split, _slice,
    ]  # fmt: skip
    r = RandomGraph(seed, operators)
    batch, time = int(r.choice(1, 2)), int(r.choice(1, 5, 7))
    for width in (24, int(r.choice(12, 17))):
        r.add(r.graph.input(batch, time, width), (batch, time, width))
    return r.grow(int(r.random.integers(5, 14)))


def well_conditioned(expected: list[np.ndarray]) -> bool:
    """False where an output is what cancellation left, and no tolerance makes sense."""
    return all(np.isfinite(array).all() and float(np.abs(array).max()) > 1e-4 for array in expected)
