"""What an ONNX model computes, as one digest, found without importing it.

Names inside do not count: values are numbered as nodes define them, initializers as nodes first use them.
Names of inputs and outputs do, since a compiled model has them, and so do operators, attributes, the order of
nodes, edges, shapes, types, opsets and the initializers' bytes.  Documentation does not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from ..core.fingerprint import Fingerprint, Plain

if TYPE_CHECKING:
    import onnx

_VALUES = ("f", "i", "s", "floats", "ints", "strings")
_TYPED_DATA = ("float_data", "int32_data", "string_data", "int64_data", "double_data", "uint64_data")


def onnx_fingerprint(
    model: onnx.ModelProto, digests: Sequence[bytes], shapes: Mapping[str, Sequence[int]] | None = None
) -> str:
    """The digest of a model; ``digests`` has that of each initializer's ``raw_data``."""
    fingerprint = Fingerprint()
    fingerprint.add("ir version", model.ir_version)
    fingerprint.add("opsets", sorted([opset.domain, opset.version] for opset in model.opset_import))
    fingerprint.add("functions", [_message(function) for function in model.functions])
    fingerprint.add("shapes", {name: list(map(int, shape)) for name, shape in (shapes or {}).items()})
    parameters = {
        tensor.name: [_header(tensor), digest]
        for tensor, digest in zip(model.graph.initializer, digests, strict=True)
    }
    outside = [value.name for value in model.graph.input if value.name not in parameters]
    fingerprint.add("names", [outside, [value.name for value in model.graph.output]])
    fingerprint.add("graph", _Graph(parameters, {}).describe(model.graph))
    return fingerprint.hexdigest()


class _Graph:
    """A graph in plain values; ``numbers`` has the values that an enclosing graph defines."""

    def __init__(self, parameters: Mapping[str, Plain], numbers: Mapping[str, int]) -> None:
        self._parameters = parameters
        self._numbers = dict(numbers)
        self._count = len(numbers)
        self._used: list[Plain] = []

    def describe(self, graph: onnx.GraphProto) -> Plain:
        inputs = [value for value in graph.input if value.name not in self._parameters]
        rows = [[self._define(value.name), _message(value.type)] for value in inputs]
        nodes = [self._node(node) for node in graph.node]
        outputs = [[self._number(value.name), _message(value.type)] for value in graph.output]
        sparse = [_message(tensor) for tensor in graph.sparse_initializer]
        return [rows, nodes, outputs, self._used, sparse]

    def _node(self, node: onnx.NodeProto) -> Plain:
        sources = [self._number(name) for name in node.input]
        attributes = {attribute.name: self._attribute(attribute) for attribute in node.attribute}
        results = [self._define(name) for name in node.output]
        return [node.domain, node.op_type, sources, results, attributes]

    def _attribute(self, attribute: onnx.AttributeProto) -> Plain:
        plain = [_plain(getattr(attribute, name)) for name in _VALUES]
        tensors = [_whole(tensor) for tensor in [attribute.t, *attribute.tensors]]
        others = [_message(attribute.sparse_tensor), attribute.ref_attr_name, int(attribute.type)]
        graphs = [graph for graph in [attribute.g, *attribute.graphs] if graph.ByteSize()]
        return [plain, tensors, others, [self._inner(graph) for graph in graphs]]

    def _inner(self, graph: onnx.GraphProto) -> Plain:
        parameters = {tensor.name: _whole(tensor) for tensor in graph.initializer}
        return _Graph({**self._parameters, **parameters}, self._numbers).describe(graph)

    def _define(self, name: str) -> int:
        """A new number; an empty name is an output left out."""
        if not name:
            return -1
        self._numbers[name] = self._count
        self._count += 1
        return self._numbers[name]

    def _number(self, name: str) -> int:
        """The number of a value that is read; a parameter gets one when it is first read."""
        if not name:
            return -1
        if name not in self._numbers:
            self._used.append(self._parameters.get(name, name))
            self._define(name)
        return self._numbers[name]


def _whole(tensor: onnx.TensorProto) -> list[Plain]:
    """Everything of a tensor but its name and its documentation."""
    return [_header(tensor), bytes(tensor.raw_data)]


def _header(tensor: onnx.TensorProto) -> bytes:
    """The same without its raw data."""
    rest = type(tensor)(data_type=tensor.data_type, dims=tensor.dims)
    for name in _TYPED_DATA:
        getattr(rest, name).extend(getattr(tensor, name))
    return _message(rest)


def _message(message: object) -> bytes:
    return message.SerializeToString(deterministic=True)  # type: ignore[attr-defined]


def _plain(value: object) -> Plain:
    if isinstance(value, int | float | bytes | str):
        return value
    return list(value)  # type: ignore[call-overload]
