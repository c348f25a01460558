"""Computes a digest of what an ONNX model computes, without importing the model, or onnx.

Names of values inside do not count: they are numbered as nodes define them, initializers as nodes first use
them.  Names of inputs and outputs do, since a compiled model has them, those of nodes (or of the first result
where a node has none), since its report and its options speak of them, and so do operators, attributes, the
order of nodes, edges, shapes, types, opsets and the initializers' bytes.  Documentation does not.  All else
counts as it is written: where another program writes the same in another way, that is another model.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..core.fingerprint import Fingerprint, Plain
from .stated_inputs import Shape, plain_shape
from .wire import Message

_MODEL_GRAPH, _IR_VERSION, _OPSETS, _FUNCTIONS = 7, 1, 8, 25
_NODES, _INITIALIZERS, _INPUTS, _OUTPUTS, _SPARSE = 1, 5, 11, 12, 15
_NODE_INPUTS, _NODE_OUTPUTS, _NODE_NAME, _ATTRIBUTES = 1, 2, 3, 5
_NODE_TEXTS = (_NODE_NAME, 6, 9)
_ATTRIBUTE_TENSOR, _ATTRIBUTE_GRAPH, _ATTRIBUTE_TENSORS, _ATTRIBUTE_GRAPHS, _ATTRIBUTE_TEXT = 5, 6, 10, 11, 13
_TENSOR_NAME, _RAW_DATA, _TENSOR_TEXT = 8, 9, 12
_VALUE_NAME, _VALUE_TYPE = 1, 2
_OPSET_DOMAIN, _OPSET_VERSION = 1, 2
"""Numbers of fields in onnx.proto; of a node, an attribute and a tensor, what are names and documentation."""


def onnx_fingerprint(
    skeleton: bytes, digests: Sequence[bytes], shapes: Mapping[str, Shape] | None = None
) -> str:
    """The digest of a model without its initializers' ``raw_data`` (``onnx_file``), whose are ``digests``.

    Raises
    ------
    ValueError : bytes that are no model.
    """
    model = Message(memoryview(skeleton))
    fingerprint = Fingerprint()
    fingerprint.add("ir version", model.number(_IR_VERSION))
    opsets = [Message(opset) for opset in model.all(_OPSETS)]
    versions = [(opset.text(_OPSET_DOMAIN), opset.number(_OPSET_VERSION)) for opset in opsets]
    fingerprint.add("opsets", sorted(versions))
    fingerprint.add("functions", [bytes(function) for function in model.all(_FUNCTIONS)])
    fingerprint.add("shapes", {name: plain_shape(shape) for name, shape in (shapes or {}).items()})
    graph = Message(model.merged(_MODEL_GRAPH))
    tensors = [Message(tensor) for tensor in graph.all(_INITIALIZERS)]
    parameters = {
        tensor.text(_TENSOR_NAME): [_tensor(tensor), digest]
        for tensor, digest in zip(tensors, digests, strict=True)
    }
    names = [[Message(value).text(_VALUE_NAME) for value in graph.all(end)] for end in (_INPUTS, _OUTPUTS)]
    outside = [name for name in names[0] if name not in parameters]
    fingerprint.add("names", [outside, names[1]])
    fingerprint.add("graph", _Graph(parameters, {}).describe(graph))
    return fingerprint.hexdigest()


class _Graph:
    """A graph in plain values; ``numbers`` has the values that an enclosing graph defines."""

    def __init__(self, parameters: Mapping[str, Plain], numbers: Mapping[str, int]) -> None:
        self._parameters = parameters
        self._numbers = dict(numbers)
        self._count = len(numbers)
        self._used: list[Plain] = []

    def describe(self, graph: Message) -> Plain:
        inputs = [Message(value) for value in graph.all(_INPUTS)]
        rows: list[Plain] = [
            [self._define(value.text(_VALUE_NAME)), bytes(value.merged(_VALUE_TYPE))]
            for value in inputs
            if value.text(_VALUE_NAME) not in self._parameters
        ]
        nodes = [self._node(Message(node)) for node in graph.all(_NODES)]
        outputs = [Message(value) for value in graph.all(_OUTPUTS)]
        ends: list[Plain] = [
            [self._number(value.text(_VALUE_NAME)), bytes(value.merged(_VALUE_TYPE))] for value in outputs
        ]
        return [rows, nodes, ends, self._used, [bytes(tensor) for tensor in graph.all(_SPARSE)]]

    def _node(self, node: Message) -> Plain:
        sources = [self._number(name) for name in node.texts(_NODE_INPUTS)]
        attributes = [self._attribute(Message(attribute)) for attribute in node.all(_ATTRIBUTES)]
        results = [self._define(name) for name in node.texts(_NODE_OUTPUTS)]
        rest = node.without(_NODE_INPUTS, _NODE_OUTPUTS, _ATTRIBUTES, *_NODE_TEXTS)
        made = next((name for name in node.texts(_NODE_OUTPUTS) if name), "")
        return [rest, sources, results, attributes, node.text(_NODE_NAME) or made]

    def _attribute(self, attribute: Message) -> Plain:
        one, several = (_ATTRIBUTE_TENSOR, _ATTRIBUTE_GRAPH), (_ATTRIBUTE_TENSORS, _ATTRIBUTE_GRAPHS)
        rest = attribute.without(*one, *several, _ATTRIBUTE_TEXT)
        tensors, graphs = (
            [Message(attribute.merged(single)), *map(Message, attribute.all(many))]
            for single, many in zip(one, several, strict=True)
        )
        return [rest, [_tensor(tensor) for tensor in tensors], [self._inner(graph) for graph in graphs]]

    def _inner(self, graph: Message) -> Plain:
        tensors = [Message(tensor) for tensor in graph.all(_INITIALIZERS)]
        parameters = {tensor.text(_TENSOR_NAME): [_tensor(tensor)] for tensor in tensors}
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


def _tensor(tensor: Message) -> bytes:
    """Everything of a tensor but its name and its documentation."""
    return tensor.without(_TENSOR_NAME, _TENSOR_TEXT)
