"""Arithmetic on numbers that follow from sizes alone: positions, distances, and the buckets of these.

A bucket is an integer that a logarithm and a quotient decide; they lie on its border as often as not. Such
numbers are few, so each result is computed in float64 and rounded to float32, where libraries err by more.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from tvm import relax

from ..node import Emitter, Node, dtype_of, is_tensor
from .table import ROUNDED, TABLE, Converter, converts


@converts("log.default")
def _logarithm(emitter: Emitter, node: Node) -> relax.Expr:
    return emitter.emit(relax.op.log(emitter.cast(node["self"], node.result.dtype)))


def _rounded(converter: Converter) -> Converter:
    def convert(emitter: Emitter, node: Node) -> relax.Expr:
        if node.result.dtype != "float32":
            return converter(emitter, node)
        wide = {name: _widened(emitter, value) for name, value in node.operands.items()}
        found = converter(
            emitter, replace(node, operands=wide, stated=[replace(node.result, dtype="float64")])
        )
        return emitter.cast(found, "float32")

    return convert


def _widened(emitter: Emitter, value: Any) -> Any:
    """The operand with the value that it has in float32."""
    if isinstance(value, float):
        return float(np.float32(value))
    narrow = is_tensor(value) and dtype_of(value) == "float32"
    return emitter.cast(value, "float64") if narrow else value


for name in ("log.default", "div.Tensor", "mul.Tensor", "add.Tensor", "sub.Tensor"):
    ROUNDED[f"aten.{name}"] = _rounded(TABLE[f"aten.{name}"])
