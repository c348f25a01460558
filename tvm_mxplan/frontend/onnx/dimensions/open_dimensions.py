"""Dimensions of a model's inputs: numbers, and names for those that stay open.

[1, 3, 224, 224]            numbers
["batch", "past + seq"]     names, and arithmetic over names that stand by themselves somewhere
[-1, "?", nothing]          no name: one is made of the input's name and the axis, none equal to another
"""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Mapping, Sequence

import onnx
from tvm import tirx

from ....errors import InvalidInputError
from ...stated_inputs import Shape
from .dims import Bounds, Dim, expression, simplified, variables

_OPERATORS = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: tirx.floordiv,
    ast.Div: tirx.floordiv,
}


def open_dimensions(graph: onnx.GraphProto, stated: Mapping[str, Shape]) -> dict[str, Sequence[Dim] | None]:
    """The dimensions of each input that is no parameter; None for an input without a shape."""
    parameters = {tensor.name for tensor in graph.initializer}
    texts = {
        value.name: stated[value.name] if value.name in stated else _texts(value)
        for value in graph.input
        if value.name not in parameters
    }
    names = _Names()
    every = [dim for dims in texts.values() for dim in dims or () if isinstance(dim, str)]
    plain = {dim for dim in every if re.fullmatch(r"[^\W\d]\w*", dim)}
    return {
        name: None
        if dims is None
        else [dim if isinstance(dim, int) else names.of(dim, plain) for dim in dims]
        for name, dims in texts.items()
    }


def check_bounds(bounds: Bounds, found: Mapping[str, Sequence[Dim] | None], source: str) -> None:
    """Say which bounds are of no dimension.

    Raises
    ------
    InvalidInputError : bounds of a name that no input has.
    """
    names = {variable.name for dims in found.values() for dim in dims or () for variable in variables(dim)}
    for name in bounds:
        if name not in names:
            known = ", ".join(sorted(names)) or "none, all are numbers"
            raise InvalidInputError(f"{source}: no open dimension {name!r}; the open dimensions are: {known}")


def dims_of(value: onnx.ValueInfoProto) -> Sequence[onnx.TensorShapeProto.Dimension] | None:
    """The dimensions that a model states for an input; None where it states no shape."""
    kind = value.type
    tensor = kind.optional_type.elem_type.tensor_type if kind.HasField("optional_type") else kind.tensor_type
    return tensor.shape.dim if tensor.HasField("shape") else None


def _texts(value: onnx.ValueInfoProto) -> list[int | str] | None:
    """Numbers, and what dimensions are called."""
    dims = dims_of(value)
    if dims is None:
        return None
    return [
        int(dim.dim_value)
        if dim.HasField("dim_value") and dim.dim_value >= 0
        else dim.dim_param
        if re.search(r"\w", dim.dim_param)
        else f"{value.name}_{axis}"
        for axis, dim in enumerate(dims)
    ]


class _Names:
    """A variable for each name; names that would be written alike get a number behind."""

    def __init__(self) -> None:
        self._variables: dict[str, tirx.Var] = {}

    def of(self, text: str, plain: set[str]) -> Dim:
        """The dimension of that name, or arithmetic over names that inputs have by themselves."""
        try:
            return simplified(self._evaluated(ast.parse(text, mode="eval").body, plain))
        except (SyntaxError, ValueError, KeyError):
            return self._named(text)

    def _named(self, text: str) -> tirx.Var:
        if text not in self._variables:
            name = re.sub(r"\W", "_", text)
            name = f"_{name}" if name[:1].isdigit() else name
            taken = {variable.name for variable in self._variables.values()}
            while name in taken:
                name += "_"
            self._variables[text] = tirx.Var(name, "int64")
        return self._variables[text]

    def _evaluated(self, node: ast.AST, plain: set[str]) -> tirx.Expr:
        if isinstance(node, ast.Name) and node.id in plain:
            return self._named(node.id)
        if isinstance(node, ast.Constant) and isinstance(node.value, int):
            return expression(node.value)
        if isinstance(node, ast.BinOp):
            sides = (self._evaluated(side, plain) for side in (node.left, node.right))
            return _OPERATORS[type(node.op)](*sides)
        raise ValueError("no arithmetic over dimensions")
