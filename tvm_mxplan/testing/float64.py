"""A whole ONNX model worked out in float64, to hold float32 engines against.

Weights and inputs are the model's float32 values, widened; every operator then computes in float64, a
convolution as one matrix product for each position of its kernel.  It has the operators of the zoo, in two
dimensions; another is an error that names it.  VGG-19 takes most of a minute.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import onnx

Attributes = Mapping[str, Any]


def float64_outputs(model: onnx.ModelProto, inputs: Mapping[str, np.ndarray]) -> list[np.ndarray]:
    """The outputs of ``model`` in float64."""
    from onnx import helper, numpy_helper

    graph = model.graph
    opset = {"opset": model.opset_import[0].version}
    values = {tensor.name: _widened(numpy_helper.to_array(tensor)) for tensor in graph.initializer}
    values.update({name: _widened(value) for name, value in inputs.items()})
    last_use = {name: number for number, node in enumerate(graph.node) for name in node.input}
    kept = {value.name for value in graph.output}
    for number, node in enumerate(graph.node):
        if node.op_type not in _OPERATORS:
            raise NotImplementedError(f"{node.op_type} ({node.name}) has no float64 form")
        attributes = {attribute.name: helper.get_attribute_value(attribute) for attribute in node.attribute}
        operands = [values[name] for name in node.input]
        values[node.output[0]] = _OPERATORS[node.op_type]({**opset, **attributes}, *operands)
        for name in node.input:  # activations of VGG-19 are large in float64
            if last_use[name] == number and name not in kept:
                values.pop(name, None)
    return [values[value.name] for value in graph.output]


def _widened(array: np.ndarray) -> np.ndarray:
    return array.astype(np.float64) if array.dtype == np.float32 else array


def _convolution(
    attributes: Attributes, x: np.ndarray, weights: np.ndarray, bias: np.ndarray | None = None
) -> np.ndarray:
    groups = attributes.get("group", 1)
    batch, outputs, inside = len(x), weights.shape[0], weights.shape[1]
    by_group = weights.reshape(groups, outputs // groups, inside, *weights.shape[2:])
    result: Any = 0.0
    for (row, column), view in _windows(attributes, x, weights.shape[2:], 0.0):
        columns = np.ascontiguousarray(view).reshape(batch, groups, inside, -1)
        result = result + _product(by_group[..., row, column], columns)
    result = result.reshape(batch, outputs, *view.shape[2:])
    return result if bias is None else result + bias[:, None, None]


def _product(weights: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """``matmul`` over the last two dimensions; a product by hand where only one channel is inside."""
    return weights * columns if weights.shape[-1] == 1 else np.matmul(weights, columns)


def _windows(
    attributes: Attributes, x: np.ndarray, kernel: Sequence[int], fill: float
) -> Iterator[tuple[tuple[int, int], np.ndarray]]:
    """Each position of the kernel, and what of the padded ``x`` it meets, one element for each result."""
    strides, dilations = attributes.get("strides", (1, 1)), attributes.get("dilations", (1, 1))
    pads = attributes.get("pads", (0, 0, 0, 0))
    spans = [(size - 1) * step + 1 for size, step in zip(kernel, dilations, strict=True)]
    counts, widths = [], [(0, 0), (0, 0)]
    for axis, (span, stride) in enumerate(zip(spans, strides, strict=True)):
        before, after, length = pads[axis], pads[axis + 2], x.shape[axis + 2]
        room = length + before + after - span
        count = (-(-room // stride) if attributes.get("ceil_mode", 0) else room // stride) + 1
        if attributes.get("ceil_mode", 0) and (count - 1) * stride >= length + before:
            count -= 1  # a window that starts past the end
        counts.append(count)
        widths.append((before, max(after, (count - 1) * stride + span - length - before)))
    padded = np.pad(x, widths, constant_values=fill)
    for row in range(kernel[0]):
        for column in range(kernel[1]):
            top, left = row * dilations[0], column * dilations[1]
            rows = slice(top, top + (counts[0] - 1) * strides[0] + 1, strides[0])
            columns = slice(left, left + (counts[1] - 1) * strides[1] + 1, strides[1])
            yield (row, column), padded[:, :, rows, columns]


def _max_pool(attributes: Attributes, x: np.ndarray) -> np.ndarray:
    views = [view for _, view in _windows(attributes, x, attributes["kernel_shape"], -np.inf)]
    return np.maximum.reduce(views)


def _average_pool(attributes: Attributes, x: np.ndarray) -> np.ndarray:
    kernel, counted = attributes["kernel_shape"], attributes.get("count_include_pad", 0)
    if counted and attributes.get("ceil_mode", 0):
        raise NotImplementedError("AveragePool that counts padding, in ceil mode")
    total = np.add.reduce([view for _, view in _windows(attributes, x, kernel, 0.0)])
    if counted:
        return np.asarray(total / np.prod(kernel))
    ones = np.ones_like(x[:1, :1])
    return np.asarray(total / np.add.reduce([view for _, view in _windows(attributes, ones, kernel, 0.0)]))


def _batch_norm(attributes: Attributes, x: np.ndarray, *parameters: np.ndarray) -> np.ndarray:
    scale, offset, mean, variance = (value[:, None, None] for value in parameters)
    return scale * (x - mean) / np.sqrt(variance + attributes.get("epsilon", 1e-5)) + offset


def _lrn(attributes: Attributes, x: np.ndarray) -> np.ndarray:
    size, channels = attributes["size"], x.shape[1]
    padded = np.pad(x * x, [(0, 0), ((size - 1) // 2, size // 2), (0, 0), (0, 0)])
    squares = sum(padded[:, first : first + channels] for first in range(size))
    scale = attributes.get("bias", 1.0) + attributes.get("alpha", 1e-4) / size * squares
    return x / scale ** attributes.get("beta", 0.75)


def _gemm(attributes: Attributes, a: np.ndarray, b: np.ndarray, c: np.ndarray | float = 0.0) -> np.ndarray:
    a, b = (m.T if attributes.get(f"trans{side}", 0) else m for side, m in (("A", a), ("B", b)))
    return attributes.get("alpha", 1.0) * (a @ b) + attributes.get("beta", 1.0) * c


def _softmax(attributes: Attributes, x: np.ndarray) -> np.ndarray:
    """Before opset 13 over all dimensions from ``axis`` on."""
    since_13 = attributes["opset"] >= 13
    axis = attributes.get("axis", -1 if since_13 else 1)
    over = axis if since_13 else tuple(range(axis % x.ndim, x.ndim))
    powers = np.exp(x - x.max(axis=over, keepdims=True))
    return powers / powers.sum(axis=over, keepdims=True)


def _reshape(_: Attributes, x: np.ndarray, shape: np.ndarray) -> np.ndarray:
    return x.reshape([x.shape[axis] if size == 0 else size for axis, size in enumerate(shape.tolist())])


def _flatten(attributes: Attributes, x: np.ndarray) -> np.ndarray:
    return x.reshape(int(np.prod(x.shape[: attributes.get("axis", 1)])), -1)


def _unsqueeze(attributes: Attributes, x: np.ndarray, axes: Sequence[int] = ()) -> np.ndarray:
    return np.expand_dims(x, tuple(attributes.get("axes", axes)))


_OPERATORS: dict[str, Callable[..., np.ndarray]] = {
    "Add": lambda _, a, b: a + b,
    "AveragePool": _average_pool,
    "BatchNormalization": _batch_norm,
    "Clip": lambda _, x, low, high: np.clip(x, low, high),
    "Concat": lambda attributes, *pieces: np.concatenate(pieces, attributes["axis"]),
    "Conv": _convolution,
    "Dropout": lambda _, x, *ratio: x,
    "Flatten": _flatten,
    "Gemm": _gemm,
    "GlobalAveragePool": lambda _, x: x.mean((2, 3), keepdims=True),
    "LRN": _lrn,
    "MaxPool": _max_pool,
    "Mul": lambda _, a, b: a * b,
    "Relu": lambda _, x: np.maximum(x, 0.0),
    "Reshape": _reshape,
    "Softmax": _softmax,
    "Sum": lambda _, *terms: sum(terms[1:], terms[0]),
    "Transpose": lambda attributes, x: x.transpose(attributes["perm"]),
    "Unsqueeze": _unsqueeze,
}
