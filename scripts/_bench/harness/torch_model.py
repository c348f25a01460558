"""An ONNX model of the zoo's operators as a PyTorch module with the same weights.

`torch.compile` unrolls the loop over the nodes, so what it sees is straight-line code on parameters, which
freezing then folds and packs. An operator that is missing here is an error that names it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import onnx
import torch
from onnx import helper, numpy_helper
from torch.nn import functional

Tensor = torch.Tensor
Attributes = Mapping[str, Any]


class OnnxModule(torch.nn.Module):
    """``module(*inputs)`` in the order of the graph's inputs gives the list of its outputs."""

    def __init__(self, model: onnx.ModelProto) -> None:
        super().__init__()
        graph = model.graph
        self._names: dict[str, str] = {}
        self._constants: dict[str, Any] = {}
        for number, tensor in enumerate(graph.initializer):
            array = numpy_helper.to_array(tensor)
            if array.dtype == np.float32 and array.ndim:
                self._names[tensor.name] = f"weight{number}"
                parameter = torch.nn.Parameter(torch.from_numpy(array.copy()), requires_grad=False)
                self.register_parameter(f"weight{number}", parameter)
            else:
                self._constants[tensor.name] = array.tolist()
        opset = model.opset_import[0].version
        self._nodes = [_node(node, opset) for node in graph.node]
        self._inputs = [value.name for value in graph.input if value.name not in self._names]
        self._outputs = [value.name for value in graph.output]

    def forward(self, *inputs: Tensor) -> list[Tensor]:
        values: dict[str, Any] = {name: getattr(self, weight) for name, weight in self._names.items()}
        values.update(self._constants)
        values.update(zip(self._inputs, inputs, strict=True))
        for operator, attributes, sources, result in self._nodes:
            values[result] = operator(attributes, *[values[source] for source in sources])
        return [values[name] for name in self._outputs]


def _node(node: onnx.NodeProto, opset: int) -> tuple[Callable[..., Tensor], Attributes, list[str], str]:
    if node.op_type not in _OPERATORS:
        raise NotImplementedError(f"{node.op_type} has no form in PyTorch here")
    attributes = {attribute.name: helper.get_attribute_value(attribute) for attribute in node.attribute}
    return _OPERATORS[node.op_type], {"opset": opset, **attributes}, list(node.input), node.output[0]


def _convolution(attributes: Attributes, x: Tensor, weights: Tensor, bias: Tensor | None = None) -> Tensor:
    x, padding = _padded(attributes, x, 0.0)
    strides, dilation = attributes.get("strides", (1, 1)), attributes.get("dilations", (1, 1))
    return functional.conv2d(x, weights, bias, strides, padding, dilation, attributes.get("group", 1))


def _max_pool(attributes: Attributes, x: Tensor) -> Tensor:
    x, padding = _padded(attributes, x, float("-inf"))
    strides, ceil_mode = attributes.get("strides", (1, 1)), bool(attributes.get("ceil_mode", 0))
    return functional.max_pool2d(x, attributes["kernel_shape"], strides, padding, ceil_mode=ceil_mode)


def _average_pool(attributes: Attributes, x: Tensor) -> Tensor:
    counted = bool(attributes.get("count_include_pad", 0))
    inside, padding = _padded(attributes, x, 0.0)

    def pool(image: Tensor) -> Tensor:
        strides, ceil_mode = attributes.get("strides", (1, 1)), bool(attributes.get("ceil_mode", 0))
        return functional.avg_pool2d(image, attributes["kernel_shape"], strides, padding, ceil_mode, counted)

    if inside is x or counted:
        return pool(inside)
    share_inside, _ = _padded(attributes, torch.ones_like(x[:1, :1]), 0.0)
    return pool(inside) / pool(share_inside)


def _padded(attributes: Attributes, x: Tensor, value: float) -> tuple[Tensor, Sequence[int]]:
    """``x`` and what the operator itself pads: uneven pads are laid around ``x`` first."""
    top, left, bottom, right = attributes.get("pads", (0, 0, 0, 0))
    if (top, left) == (bottom, right):
        return x, (top, left)
    return functional.pad(x, (left, right, top, bottom), value=value), (0, 0)


def _batch_norm(attributes: Attributes, x: Tensor, *parameters: Tensor) -> Tensor:
    scale, offset, mean, variance = parameters
    return functional.batch_norm(x, mean, variance, scale, offset, eps=attributes.get("epsilon", 1e-5))


def _lrn(attributes: Attributes, x: Tensor) -> Tensor:
    alpha, beta = attributes.get("alpha", 1e-4), attributes.get("beta", 0.75)
    return functional.local_response_norm(x, attributes["size"], alpha, beta, attributes.get("bias", 1.0))


def _gemm(attributes: Attributes, a: Tensor, b: Tensor, c: Tensor | None = None) -> Tensor:
    a = a.t() if attributes.get("transA", 0) else a
    weights = b if attributes.get("transB", 0) else b.t()
    if attributes.get("alpha", 1.0) != 1.0 or attributes.get("beta", 1.0) != 1.0:
        raise NotImplementedError("Gemm with factors")
    return functional.linear(a, weights, c)


def _softmax(attributes: Attributes, x: Tensor) -> Tensor:
    if attributes["opset"] >= 13:
        return x.softmax(attributes.get("axis", -1))
    return x.flatten(attributes.get("axis", 1)).softmax(-1).reshape(x.shape)


def _reshape(_: Attributes, x: Tensor, shape: Sequence[int]) -> Tensor:
    return x.reshape([x.shape[axis] if size == 0 else size for axis, size in enumerate(shape)])


def _unsqueeze(attributes: Attributes, x: Tensor, axes: Sequence[int] = ()) -> Tensor:
    for axis in sorted(attributes.get("axes", axes)):
        x = x.unsqueeze(axis)
    return x


_OPERATORS: dict[str, Callable[..., Tensor]] = {
    "Add": lambda _, a, b: a + b,
    "AveragePool": _average_pool,
    "BatchNormalization": _batch_norm,
    "Clip": lambda _, x, low, high: torch.clamp(x, low, high),
    "Concat": lambda attributes, *pieces: torch.cat(pieces, attributes["axis"]),
    "Conv": _convolution,
    "Dropout": lambda _, x, *ratio: x,
    "Identity": lambda _, x: x,
    "Flatten": lambda attributes, x: x.flatten(attributes.get("axis", 1)),
    "Gemm": _gemm,
    "GlobalAveragePool": lambda _, x: x.mean((2, 3), keepdim=True),
    "LRN": _lrn,
    "MaxPool": _max_pool,
    "Mul": lambda _, a, b: a * b,
    "Relu": lambda _, x: functional.relu(x),
    "Reshape": _reshape,
    "Softmax": _softmax,
    "Sum": lambda _, first, *others: sum(others, first),
    "Transpose": lambda attributes, x: x.permute(attributes["perm"]),
    "Unsqueeze": _unsqueeze,
}
