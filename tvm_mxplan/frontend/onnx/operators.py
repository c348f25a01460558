"""The operators that a model may have: those of our converters, of TVM's, and of ONNX's own functions."""

from __future__ import annotations

import onnx

from . import stock
from .converters.table import TABLE
from .stock import CONTRIBUTED

__all__ = ["CONTRIBUTED", "knows"]


def knows(domain: str, op_type: str, opset: int) -> bool:
    """Whether an operator can be imported; ``domain`` is empty for the standard one."""
    if (domain, op_type) in TABLE or stock.is_known(domain, op_type):
        return True
    return _is_function(domain, op_type, opset)


def _is_function(domain: str, op_type: str, opset: int) -> bool:
    try:
        schema = onnx.defs.get_schema(op_type, opset, domain)
    except onnx.defs.SchemaError:
        return False
    return bool(schema.has_function or schema.has_context_dependent_function)
