"""Says whether a node can run with operands like its own at all, by ONNX's shape inference.

Asked where a node could not be imported: what no call can run is the model's mistake, or stands in a branch
that inputs like these never choose (``converters/flow``).
"""

from __future__ import annotations

import math

import numpy as np
import onnx

from ...errors import InvalidInputError
from .functions import type_of
from .names import first_line
from .node import Node
from .values import shape_of


class Contradiction(InvalidInputError):
    """A node whose operands its operator takes in no call."""


def contradiction(node: Node) -> str:
    """Describes how operands contradict the operator; empty where they do not, or where ONNX cannot say."""
    said = _counts(node)
    if said:
        return said
    try:
        schema = onnx.defs.get_schema(node.op_type, node.opset, node.domain)
    except onnx.defs.SchemaError:
        return ""
    if any(isinstance(value, list) for value in node.inputs):
        return ""
    proto = onnx.NodeProto()
    proto.CopyFrom(node.proto)
    proto.domain = node.domain
    del proto.input[:]
    types, known = dict[str, onnx.TypeProto](), dict[str, onnx.TensorProto]()
    for index, value in enumerate(node.inputs):
        name = "" if value is None else f"operand_{index}"
        proto.input.append(name)
        if value is not None:
            types[name] = onnx.TypeProto.FromString(type_of(value))
            if isinstance(value, np.ndarray) and value.size <= _SMALL:
                known[name] = onnx.numpy_helper.from_array(value)
    opsets = [onnx.helper.make_opsetid(node.domain, node.opset)]
    try:
        onnx.shape_inference.infer_node_outputs(schema, proto, types, known, opset_imports=opsets)
    except onnx.shape_inference.InferenceError as error:
        return first_line(error)
    except Exception:  # what it cannot be asked is no contradiction
        return ""
    return ""


def _counts(node: Node) -> str:
    """A Reshape to another number of elements, which ONNX's inference does not look at."""
    wanted = node.input(1)
    if (node.domain, node.op_type) != ("", "Reshape") or not isinstance(wanted, np.ndarray):
        return ""
    data = shape_of(node.input(0)) or [None]
    kept = not node.attribute("allowzero", 0)
    dims = [
        data[at] if dim == 0 and kept and at < len(data) else int(dim)
        for at, dim in enumerate(wanted.reshape(-1))
    ]
    if not all(isinstance(dim, int) for dim in [*data, *dims]):
        return ""
    have, want = math.prod(data), math.prod(dim for dim in dims if dim != -1)
    fits = have % want == 0 if -1 in dims and want else have == want
    return "" if fits else f"{data} has {have:,} elements, and {dims} has not"


_SMALL = 1024
"""Elements of operands whose values are told: shapes, axes and amounts."""
