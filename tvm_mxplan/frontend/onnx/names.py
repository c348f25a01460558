"""Names of the things of an ONNX model for messages, in one line whatever names the model has."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import onnx

_LONGEST = 100


def shown(name: str) -> str:
    """A name in quotes, printable, and cut where it is too long for a line."""
    text = repr(name if len(name) <= _LONGEST else name[:_LONGEST])
    return text if len(name) <= _LONGEST else f"{text} ... ({len(name):,} characters)"


def describe(node: onnx.NodeProto, at: int) -> str:
    """A node by its name, or by its place among the nodes of its graph and what it makes."""
    operator = f"{node.domain}.{node.op_type}" if node.domain else node.op_type
    operator = shown(operator)[1:-1] if len(operator) <= _LONGEST else shown(operator)
    if node.name:
        return f"node {shown(node.name)} ({operator})"
    made = f", which makes {shown(node.output[0])}" if node.output else ""
    return f"node #{at} ({operator}{made})"


def standard(domain: str) -> str:
    """The domain under one name: ONNX's own has two."""
    return "" if domain == "ai.onnx" else domain


def with_standard_domain(node: onnx.NodeProto) -> onnx.NodeProto:
    """A copy of the node under the shorter name of ONNX's own domain, the only one that onnx's tools know."""
    copy = type(node)()
    copy.CopyFrom(node)
    copy.domain = standard(node.domain)
    return copy


def first_line(error: BaseException) -> str:
    """The first line that an error has to say, or its type."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0] if lines else type(error).__name__
