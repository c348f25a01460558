"""The readers of results: what nodes behind a node do with what it gives."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import onnx


def cast_to_float(nodes: Sequence[onnx.NodeProto], results: Sequence[str]) -> set[str]:
    """Finds the tensors whose readers are all casts to float32; ``results`` are what a graph gives away."""
    cast: set[str] = set()
    other: set[str] = set(results)
    for node in nodes:
        found = cast if _is_cast(node) else other
        found.update(node.input)
        other.update(_read_inside(node))
    return cast - other


def _is_cast(node: onnx.NodeProto) -> bool:
    if node.op_type != "Cast" or node.domain not in ("", "ai.onnx"):
        return False
    return any(one.name == "to" and one.i == onnx.TensorProto.FLOAT for one in node.attribute)


def _read_inside(node: onnx.NodeProto) -> Iterator[str]:
    """Names that graphs inside of a node read, from there or from outside."""
    for attribute in node.attribute:
        for graph in (attribute.g, *attribute.graphs):
            yield from (output.name for output in graph.output)
            for inner in graph.node:
                yield from inner.input
                yield from _read_inside(inner)
