"""The operators that a model may have: those of our converters, of TVM's, and of ONNX's own functions."""

from __future__ import annotations

from typing import Any

import onnx

from . import stock
from .converters.table import TABLE
from .stock import CONTRIBUTED

__all__ = ["CONTRIBUTED", "as_standard", "knows"]

_LATER = {("com.microsoft", "QuantizeLinear"): 21, ("com.microsoft", "DequantizeLinear"): 21}
"""Standard operators under another domain, which models of older opsets read, and the opset that has them.

onnxruntime's quantiser writes these for integers of 4 and 16 bits.
"""


def as_standard(node: onnx.NodeProto, opset: int) -> tuple[onnx.NodeProto, int]:
    """The node, of the version ``opset`` of its domain, as the standard operator that it is, if it is one."""
    later = _LATER.get((node.domain, node.op_type))
    if later is None:
        return node, opset
    found = onnx.NodeProto()
    found.CopyFrom(node)
    found.domain = ""
    return found, later


def knows(domain: str, op_type: str, opset: int) -> bool:
    """Whether an operator can be imported; ``domain`` is empty for the standard one."""
    if (domain, op_type) in TABLE or (domain, op_type) in _LATER or stock.is_known(domain, op_type):
        return True
    return _is_function(domain, op_type, opset)


def _is_function(domain: str, op_type: str, opset: int) -> bool:
    try:  # onnx tells no type of what a schema has of functions
        schema: Any = onnx.defs.get_schema(op_type, opset, domain)
    except onnx.defs.SchemaError:
        return False
    return bool(schema.has_function or schema.has_context_dependent_function)
