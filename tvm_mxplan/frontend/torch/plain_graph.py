"""A graph as AOTAutograd leaves it: weights are inputs, sizes may be, results may be numbers."""

from __future__ import annotations

import enum
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import tvm
from tvm import relax, tirx

from ..onnx.dimensions.dims import Dim
from ..origins import OriginBuilder
from .dimensions import Bound, named_bounds
from .graph import GraphImporter
from .kinds import is_symbolic, is_tensor
from .program import bounds_as_attributes, parameter_of, result_tensor, under_conditions
from .tensors import Weights


class Result(enum.Enum):
    """Kinds of results."""

    TENSOR = enum.auto()
    NUMBER = enum.auto()
    NOTHING = enum.auto()


@dataclass(frozen=True)
class Graph:
    """A graph in Relax.

    Attributes
    ----------
    taken : indices of the inputs that the function takes.
    plan : the kind of each result; the function gives those that are something.
    """

    mod: tvm.IRModule
    taken: tuple[int, ...]
    plan: tuple[Result, ...]


def free_numbers(graph_module: Any, args: Sequence[Any]) -> dict[str, int]:
    """Symbols of integers among the inputs that are no extent of a tensor there, and what they are now.

    A graph is compiled for each value of these; those that are extents come with the tensors.
    """
    placeholders = _placeholders(graph_module)
    if not any(type(node.meta.get("val")).__name__ == "SymInt" for node in placeholders):
        return {}
    known = {symbol for _, _, symbol in _places(placeholders)}
    found: dict[str, int] = {}
    for node, value in zip(placeholders, args, strict=True):
        stated = node.meta.get("val")
        symbol = str(stated.node.expr) if type(stated).__name__ == "SymInt" else ""
        if symbol.isidentifier() and symbol not in known:
            found[symbol] = int(value)
    return found


def import_graph(
    graph_module: Any, args: Sequence[Any], static: Collection[int], numbers: Mapping[str, int]
) -> Graph:
    """The graph in Relax, the inputs that are ``static`` as constants that share PyTorch's memory.

    Parameters
    ----------
    numbers : what symbols are that no tensor's shape tells.
    """
    placeholders = _placeholders(graph_module)
    bounds = _bounds(placeholders)
    variables: dict[str, Dim] = {
        symbol: tirx.Var(bound.name, "int64") for symbol, bound in bounds.items() if symbol not in numbers
    }
    builder = OriginBuilder()
    importer = GraphImporter(builder, {**variables, **numbers}, Weights(shared=True), "graph")
    parameters: list[relax.Var] = []
    taken: list[int] = []
    for index, (node, value) in enumerate(zip(placeholders, args, strict=True)):
        if index in static:
            importer.known[node] = value
        elif is_tensor(value):
            taken.append(index)
            parameters.append(parameter_of(node, importer))
            importer.values[node] = parameters[-1]
        else:
            importer.values[node] = (
                importer.size(node.meta["val"]) if is_symbolic(node.meta["val"]) else value
            )
    named = {symbol: bound for symbol, bound in bounds.items() if symbol in variables}
    with builder.function("main", parameters, attrs=bounds_as_attributes(named)):
        with builder.dataflow():
            results = importer.run(graph_module)
            plan = tuple(map(_kind, results))
            tensors = [result_tensor(importer, value) for value in results if value is not None]
            result = builder.emit_output(tensors[0] if len(tensors) == 1 else relax.Tuple(tensors))
        builder.emit_func_output(result)
    mod = under_conditions(builder.get(), importer.conditions(graph_module))
    return Graph(mod, tuple(taken), plan)


def _kind(value: Any) -> Result:
    if value is None:
        return Result.NOTHING
    tensor = isinstance(value, relax.Expr) and isinstance(value.ty, relax.TensorType)
    return Result.TENSOR if tensor else Result.NUMBER


def _placeholders(graph_module: Any) -> list[Any]:
    return [node for node in graph_module.graph.nodes if node.op == "placeholder"]


def _places(placeholders: Sequence[Any]) -> list[tuple[str, int, str]]:
    """Input, axis and symbol of axes whose extent is a symbol alone."""
    return [
        (node.name, axis, str(size.node.expr))
        for node in placeholders
        if is_tensor(node.meta.get("val"))
        for axis, size in enumerate(node.meta["val"].shape)
        if not isinstance(size, int) and size.node.expr.is_Symbol
    ]


def _bounds(placeholders: Sequence[Any]) -> dict[str, Bound]:
    """The named dimensions of the inputs, within the bounds that PyTorch has found for them."""
    limits: dict[str, tuple[int, int | None]] = {}
    for node in placeholders:
        stated = node.meta.get("val")
        for size in stated.shape if is_tensor(stated) else [stated]:
            if type(size).__name__ != "SymInt":
                continue
            ranges = size.node.shape_env.var_to_range
            for symbol in size.node.expr.free_symbols:
                values = ranges[symbol]
                upper = int(values.upper) if getattr(values.upper, "is_Integer", False) else None
                limits[str(symbol)] = (max(int(values.lower), 0), upper)
    return named_bounds(_places(placeholders), limits, {})
