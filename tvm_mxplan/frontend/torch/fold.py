"""Nodes whose operands are all known, computed by PyTorch while a graph is imported.

Positions, masks and the like depend on sizes alone, and become constants with PyTorch's own numbers: the
bucket of a distance is an integer that a logarithm decides, and another logarithm decides otherwise.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from .kinds import is_symbolic, is_tensor

_LARGEST = 2**22
"""Elements of a result that has more than its operands together; a larger one is made when the model runs."""


_REAL_NUMBERS = "quantized_decomposed.dequantize"
"""The beginning of the names of conversions, which libraries look for behind weights of 8 bits."""


def _is_short(tensor: Any) -> bool:
    return str(tensor.dtype) in ("torch.int8", "torch.uint8")


def is_foldable(fx_node: Any, known: Mapping[Any, Any]) -> bool:
    """Whether all operands of a node are known, and its result is not large for what it is made of."""
    if not hasattr(fx_node.target, "_schema") and fx_node.target.__name__ != "getitem":
        return False
    if any(operand not in known for operand in fx_node.all_input_nodes):
        return False
    if str(fx_node.target).startswith(_REAL_NUMBERS) and _is_short(known[fx_node.args[0]]):
        return False
    stated = fx_node.meta.get("val")
    results = [
        value for value in (stated if isinstance(stated, list | tuple) else [stated]) if is_tensor(value)
    ]
    if not results or any(is_symbolic(extent) for value in results for extent in value.shape):
        return False
    read = [known[operand] for operand in fx_node.all_input_nodes]
    elements = sum(value.numel() for value in read if is_tensor(value))
    return sum(math.prod(value.shape) for value in results) <= max(_LARGEST, elements)


def folded(fx_node: Any, known: Mapping[Any, Any]) -> Any:
    """The node's result, as PyTorch computes it."""
    import torch

    def value_of(value: Any) -> Any:
        if isinstance(value, list | tuple):
            return [value_of(part) for part in value]
        return known[value] if type(value).__name__ == "Node" else value

    args = [value_of(value) for value in fx_node.args]
    kwargs = {name: value_of(value) for name, value in fx_node.kwargs.items()}
    with torch.no_grad():
        return fx_node.target(*args, **kwargs)
