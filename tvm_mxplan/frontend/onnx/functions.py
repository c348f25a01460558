"""Operators by other operators: functions that a model brings, and those by which ONNX defines its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx

from .node import Node
from .values import dtype_of, shape_of


@dataclass(frozen=True)
class Body:
    """The nodes that compute an operator, with attributes filled in, and the names of its ends."""

    nodes: Sequence[onnx.NodeProto]
    inputs: Sequence[str]
    outputs: Sequence[str]
    opsets: Mapping[str, int]


def body_of(node: Node, functions: Mapping[tuple[str, str], onnx.FunctionProto]) -> Body | None:
    """The operator by others; None where neither the model nor ONNX says so."""
    function = functions.get((node.domain, node.op_type))
    if function is None:
        function = _standard(node)
    if function is None:
        return None
    given = {attribute.name: attribute for attribute in node.proto.attribute}
    defaults = {attribute.name: attribute for attribute in function.attribute_proto}
    nodes = [_filled(inner, defaults | given) for inner in function.node]
    opsets = {opset.domain: opset.version for opset in function.opset_import}
    return Body(nodes, list(function.input), list(function.output), {"": node.opset} | opsets)


def _standard(node: Node) -> onnx.FunctionProto | None:
    try:  # onnx tells no type of what a schema has of functions
        schema: Any = onnx.defs.get_schema(node.op_type, node.opset, node.domain)
    except onnx.defs.SchemaError:
        return None
    function = onnx.FunctionProto()
    if schema.has_function:
        function.CopyFrom(schema.function_body)
    elif schema.has_context_dependent_function:
        types = [type_of(value) for value in node.inputs]
        text = schema.get_context_dependent_function(node.proto.SerializeToString(), types)
        if not text:
            return None
        function.ParseFromString(text)
    else:
        return None
    given = {attribute.name for attribute in node.proto.attribute}
    for name, attribute in schema.attributes.items():
        if name not in given and attribute.default_value.type != onnx.AttributeProto.UNDEFINED:
            function.attribute_proto.add().CopyFrom(attribute.default_value)
    return function


def type_of(value: object) -> bytes:
    """A value's type as ONNX writes it, for functions that depend on types."""
    if value is None:
        return onnx.TypeProto().SerializeToString()
    if isinstance(value, list):  # a sequence
        inner = onnx.TypeProto.FromString(type_of(value[0])) if value else onnx.TypeProto()
        return onnx.helper.make_sequence_type_proto(inner).SerializeToString()
    dims = shape_of(value)
    shape = None if dims is None else [dim if isinstance(dim, int) else None for dim in dims]
    element = onnx.helper.np_dtype_to_tensor_dtype(np.dtype(dtype_of(value)))
    return onnx.helper.make_tensor_type_proto(element, shape).SerializeToString()


def _filled(node: onnx.NodeProto, attributes: Mapping[str, onnx.AttributeProto]) -> onnx.NodeProto:
    """The node with references to the function's attributes replaced by what they hold, or left out."""
    filled = onnx.NodeProto()
    filled.CopyFrom(node)
    del filled.attribute[:]
    for attribute in node.attribute:
        if attribute.ref_attr_name:
            value = attributes.get(attribute.ref_attr_name)
            if value is None:
                continue
            filled.attribute.add().CopyFrom(value)
            filled.attribute[-1].name = attribute.name
            continue
        copy = filled.attribute.add()
        copy.CopyFrom(attribute)
        for graph in ([copy.g] if copy.HasField("g") else []) + list(copy.graphs):
            inner = [_filled(child, attributes) for child in graph.node]
            del graph.node[:]
            graph.node.extend(inner)
    return filled
