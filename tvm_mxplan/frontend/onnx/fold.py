"""Evaluates nodes whose operands are all known, with ONNX's own reference implementation."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import numpy as np
import onnx
from onnx.reference import ReferenceEvaluator

from .converters.blocked import has_few_bits
from .node import Node

_RANDOM = {
    "RandomNormal",
    "RandomNormalLike",
    "RandomUniform",
    "RandomUniformLike",
    "Bernoulli",
    "Multinomial",
    "Dropout",
}
"""Operators whose results are not a function of their operands, Dropout in training."""


def folded(node: Node) -> list[np.ndarray | None] | None:
    """The results of a node on known operands; None where they are not known or cannot be evaluated."""
    if node.op_type in _RANDOM or not all(
        value is None or isinstance(value, np.ndarray) for value in node.inputs
    ):
        return None
    if _is_weights_of_integers(node) or has_few_bits(node):
        return None
    if any(attribute.HasField("g") or attribute.graphs for attribute in node.proto.attribute):
        return None
    proto = onnx.NodeProto()
    proto.CopyFrom(node.proto)
    del proto.input[:]
    operands: dict[str, np.ndarray] = {}
    for index, value in enumerate(node.inputs):
        proto.input.append("" if value is None else f"operand_{index}")
        if isinstance(value, np.ndarray):
            operands[f"operand_{index}"] = value
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            results = _evaluate(proto, node.domain, node.opset, operands)
    except Exception:  # whatever the reference cannot do, a converter may
        return None
    arrays = [None if not name else result for name, result in zip(node.outputs, results, strict=False)]
    return arrays if all(_usable(array) for array in arrays) else None


def _is_weights_of_integers(node: Node) -> bool:
    """True for matrices and filters of 8 bits that become real numbers: libraries may compute with these."""
    data = node.inputs[0] if node.inputs else None
    return (
        node.op_type == "DequantizeLinear"
        and isinstance(data, np.ndarray)
        and data.dtype in (np.int8, np.uint8)
        and data.ndim >= 2
        and not node.attributes.get("block_size", 0)
    )


def _evaluate(
    proto: onnx.NodeProto, domain: str, opset: int, operands: dict[str, np.ndarray]
) -> Sequence[np.ndarray | None]:
    names = [name for name in proto.output if name]
    inputs = [
        onnx.helper.make_tensor_value_info(
            name, onnx.helper.np_dtype_to_tensor_dtype(value.dtype), value.shape
        )
        for name, value in operands.items()
    ]
    outputs = [onnx.helper.make_empty_tensor_value_info(name) for name in names]
    graph = onnx.helper.make_graph([proto], "node", inputs, outputs)
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid(domain, opset)])
    found = dict(zip(names, ReferenceEvaluator(model).run(None, operands), strict=True))
    return [found.get(name) for name in proto.output]


def _usable(array: object) -> bool:
    return array is None or (isinstance(array, np.ndarray | np.generic) and array.dtype.kind not in "OSU")
