"""Steps of training in numpy and float64, forward and backward written out by hand.

tape = Tape(weights)
y = tape.relu(tape.convolution(x, "conv.w"))
loss, grads = tape.softmax_cross_entropy(y, labels)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view


@dataclass(eq=False)
class Value:
    data: np.ndarray
    grad: np.ndarray = field(init=False)

    def __post_init__(self) -> None:
        self.grad = np.zeros_like(self.data)


class Tape:
    """Operators on values; each notes how gradients go back."""

    def __init__(self, weights: Mapping[str, np.ndarray]) -> None:
        self.weights = {name: Value(array.astype("float64")) for name, array in weights.items()}
        self.statistics: dict[str, np.ndarray] = {}
        self._back: list[Callable[[], None]] = []

    def input(self, array: np.ndarray) -> Value:
        return Value(array.astype("float64"))

    def _put(self, data: np.ndarray, back: Callable[[np.ndarray], None]) -> Value:
        made = Value(data)
        self._back.append(lambda: back(made.grad))
        return made

    def convolution(self, x: Value, name: str, stride: int = 1, pad: int = 0, groups: int = 1) -> Value:
        weights = self.weights[name]
        filters, inner, *kernel = weights.data.shape
        padded = np.pad(x.data, ((0, 0), (0, 0), (pad, pad), (pad, pad)))

        def windows(array: np.ndarray) -> np.ndarray:
            taken = sliding_window_view(array, kernel, axis=(2, 3))[:, :, ::stride, ::stride]
            return taken.reshape(len(array), groups, inner, *taken.shape[2:])

        by_group = weights.data.reshape(groups, filters // groups, inner, *kernel)
        result = np.einsum("ngchwrs,gkcrs->ngkhw", windows(padded), by_group)
        shape = (len(x.data), filters, *result.shape[3:])

        def back(grad: np.ndarray) -> None:
            grad = grad.reshape(result.shape)
            found = np.einsum("ngchwrs,ngkhw->gkcrs", windows(padded), grad)
            weights.grad += found.reshape(weights.data.shape)
            spread = np.zeros_like(padded)
            rows, columns = grad.shape[3:]
            for r in range(kernel[0]):
                for s in range(kernel[1]):
                    part = np.einsum("ngkhw,gkc->ngchw", grad, by_group[..., r, s])
                    place = (slice(r, r + rows * stride, stride), slice(s, s + columns * stride, stride))
                    spread[(..., *place)] += part.reshape(len(grad), -1, rows, columns)
            height, width = x.data.shape[2:]
            x.grad += spread[:, :, pad : pad + height, pad : pad + width]

        return self._put(result.reshape(shape), back)

    def bias(self, x: Value, name: str) -> Value:
        bias = self.weights[name]
        others = tuple(at for at in range(x.data.ndim) if at != 1)

        def back(grad: np.ndarray) -> None:
            x.grad += grad
            bias.grad += grad.sum(others)

        return self._put(x.data + bias.data.reshape(1, -1, *[1] * (x.data.ndim - 2)), back)

    def batch_norm(self, x: Value, scale: str, shift: str, mean: str, variance: str) -> Value:
        """ONNX's numbers: epsilon 1e-5, momentum 0.9 of what was."""
        gamma, beta, axes = self.weights[scale], self.weights[shift], (0, 2, 3)
        average, spread = x.data.mean(axes), x.data.var(axes)
        row = (1, -1, 1, 1)
        inverse = 1 / np.sqrt(spread + 1e-5).reshape(row)
        normal = (x.data - average.reshape(row)) * inverse
        for name, new in ((mean, average), (variance, spread)):
            self.statistics[name] = 0.9 * self.weights[name].data + 0.1 * new

        def back(grad: np.ndarray) -> None:
            beta.grad += grad.sum(axes)
            gamma.grad += (grad * normal).sum(axes)
            inner = grad * gamma.data.reshape(row)
            along = inner.mean(axes).reshape(row) + normal * (inner * normal).mean(axes).reshape(row)
            x.grad += (inner - along) * inverse

        return self._put(normal * gamma.data.reshape(row) + beta.data.reshape(row), back)

    def relu(self, x: Value) -> Value:
        def back(grad: np.ndarray) -> None:
            x.grad += grad * (x.data > 0)

        return self._put(np.maximum(x.data, 0), back)

    def max_pool(self, x: Value, size: int) -> Value:
        """Windows side by side; what is left over at the end is not read."""
        rows, columns = (extent // size for extent in x.data.shape[2:])
        cut = x.data[:, :, : rows * size, : columns * size]
        windows = cut.reshape(*cut.shape[:2], rows, size, columns, size)
        largest = windows.max((3, 5))

        def back(grad: np.ndarray) -> None:
            met = windows == largest[:, :, :, None, :, None]
            spread = (met * grad[:, :, :, None, :, None]).reshape(cut.shape)
            x.grad[:, :, : rows * size, : columns * size] += spread

        return self._put(largest, back)

    def add(self, x: Value, y: Value) -> Value:
        def back(grad: np.ndarray) -> None:
            x.grad += grad
            y.grad += grad

        return self._put(x.data + y.data, back)

    def concat(self, x: Value, y: Value) -> Value:
        first = x.data.shape[1]

        def back(grad: np.ndarray) -> None:
            x.grad += grad[:, :first]
            y.grad += grad[:, first:]

        return self._put(np.concatenate([x.data, y.data], 1), back)

    def mean_of_images(self, x: Value) -> Value:
        def back(grad: np.ndarray) -> None:
            x.grad += grad[:, :, None, None] / np.prod(x.data.shape[2:])

        return self._put(x.data.mean((2, 3)), back)

    def dense(self, x: Value, name: str) -> Value:
        weights = self.weights[name]

        def back(grad: np.ndarray) -> None:
            x.grad += grad @ weights.data.T
            weights.grad += x.data.T @ grad

        return self._put(x.data @ weights.data, back)

    def softmax_cross_entropy(self, x: Value, labels: np.ndarray) -> tuple[float, dict[str, np.ndarray]]:
        """The mean loss, and the gradients of all weights."""
        shifted = x.data - x.data.max(1, keepdims=True)
        logarithms = shifted - np.log(np.exp(shifted).sum(1, keepdims=True))
        rows = np.arange(len(labels))
        x.grad = (np.exp(logarithms) - np.eye(x.data.shape[1])[labels]) / len(labels)
        for back in reversed(self._back):
            back()
        grads = {name: value.grad for name, value in self.weights.items()}
        return float(-logarithms[rows, labels].mean()), grads
