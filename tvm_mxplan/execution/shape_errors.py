"""Translates TVM's errors about a shape that does not fit into a line that names the tensor.

Check failed: input_shape[i] == heap_data[reg] (3 vs. 2) : ErrorContext(match_cast, ty=R.Tensor((n, n), ...
a tensor inside of the model, of type R.Tensor((n, n), dtype="float32"): expected 2 in dimension 1, got 3
"""

from __future__ import annotations

import re

from ..errors import InvalidInputError

_SHAPE = re.compile(
    r"\((?P<got>-?\d+) vs\. (?P<expected>-?\d+)\)\s*:\s*ErrorContext\((?P<where>.*)\)"
    r"\s*match_cast error,\s*shape\[(?P<axis>\d+)\]",
    re.DOTALL,
)
_RANK = re.compile(
    r"ErrorContext\((?P<where>.*)\)\s*expect (?:Tensor|Shape) with ndim (?P<expected>\d+) "
    r"but get (?P<got>\d+)",
    re.DOTALL,
)
_PARAMETER = re.compile(r"param=(?P<name>[^,]+), annotation=(?P<type>.*)", re.DOTALL)
_TYPE = re.compile(r"ty=(?P<type>.*)", re.DOTALL)


def told(error: Exception) -> InvalidInputError | None:
    """The error of a shape as one of the call; None for any other error."""
    text = str(error)
    shape, rank = _SHAPE.search(text), _RANK.search(text)
    if shape:
        said = f"expected {shape['expected']} in dimension {shape['axis']}, got {shape['got']}"
    elif rank:
        said = f"expected {rank['expected']} dimensions, got {rank['got']}"
    else:
        return None
    where = (shape or rank)["where"]  # type: ignore[index]
    return InvalidInputError(f"{_tensor(where)}: {said}; mend the shapes of the inputs")


def _tensor(where: str) -> str:
    parameter = _PARAMETER.search(where)
    if parameter:
        return f"input {parameter['name']}, of type {' '.join(parameter['type'].split())}"
    kind = _TYPE.search(where)
    return "a tensor inside of the model" + (f", of type {' '.join(kind['type'].split())}" if kind else "")
