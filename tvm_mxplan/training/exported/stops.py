"""Gradients that a program stops: by ``detach()``, or because it runs under ``torch.no_grad()``.

    y = detach(x)                                   y = stop_gradient(x)
    y = wrap_with_set_grad_enabled(False, f, x)  -> y = f(stop_gradient(x))

PyTorch's decompositions make of both what passes gradients.  An operator of our own outlasts them, which the
importer knows.  Its result is another tensor, so programs that write to one of the two are refused where
the other would show it.
"""

from __future__ import annotations

from collections.abc import Iterator, Set
from functools import cache
from typing import Any

from ...errors import UnsupportedError
from ...frontend.torch.names import module_path, operator_name

_DETACHES = ("aten.detach.default", "aten.detach_.default")
_REGION = "wrap_with_set_grad_enabled"


def with_stops(graph_module: Any, buffers: Set[Any]) -> None:
    """Puts the operator into a graph and those inside of it.

    Parameters
    ----------
    buffers : placeholders that have no gradients anyway.

    Raises
    ------
    UnsupportedError : a write to a tensor that shares memory with one whose gradient is stopped.
    """
    graph = graph_module.graph
    for node in list(graph.nodes):
        if node.op != "call_function":
            continue
        operands = list(node.args)
        inner = [at for at, one in enumerate(operands) if _submodule(graph_module, one) is not None]
        if inner:
            body = _submodule(graph_module, operands[inner[0]])
            passed = operands[inner[0] + 1 :]
            own = [one for one in body.graph.nodes if one.op == "placeholder"]
            pairs = list(zip(own, passed, strict=False))
            if str(node.target).endswith(_REGION) and operands[0] is False:
                stopped = {mine for mine, one in pairs if one not in buffers and _has_gradient(one)}
                _check_writes(body.graph, stopped)
                passed = [one if mine not in stopped else _stopped(graph, node, one) for mine, one in pairs]
                node.args = (*operands[: inner[0] + 1], *passed)
            with_stops(body, {mine for mine, one in pairs if one in buffers})
    detaches = [node for node in graph.nodes if _name(node) in _DETACHES]
    _check_writes(graph, set(detaches))
    order = {node: at for at, node in enumerate(graph.nodes)}
    for node in detaches:
        if _name(node) == _DETACHES[1]:
            before = order[node]
            node.args[0].replace_all_uses_with(node, lambda user, at=before: order[user] > at)
        node.target = stop_gradient()
    graph_module.recompile()


@cache
def stop_gradient() -> Any:
    """The operator, which PyTorch knows from the first call on: ``tvm_mxplan::stop_gradient``."""
    import torch

    library = torch.library.Library("tvm_mxplan", "FRAGMENT")
    library.define("stop_gradient(Tensor x) -> Tensor")
    library.impl("stop_gradient", lambda x: x.clone(), "CompositeExplicitAutograd")
    _LIBRARIES.append(library)
    return torch.ops.tvm_mxplan.stop_gradient.default


_LIBRARIES: list[Any] = []
"""An operator is forgotten with its library."""


def _stopped(graph: Any, before: Any, operand: Any) -> Any:
    with graph.inserting_before(before):
        made = graph.call_function(stop_gradient(), (operand,))
    made.meta = dict(operand.meta)
    return made


def _submodule(graph_module: Any, operand: Any) -> Any:
    """The graph that an operand of a higher-order operator names; None for other operands."""
    if getattr(operand, "op", None) != "get_attr":
        return None
    found = graph_module
    for part in operand.target.split("."):
        found = getattr(found, part)
    return found if hasattr(found, "graph") else None


def _has_gradient(node: Any) -> bool:
    value = getattr(node, "meta", {}).get("val")
    dtype = getattr(value, "dtype", None)
    return dtype is not None and (dtype.is_floating_point or dtype.is_complex)


def _name(node: Any) -> str:
    return operator_name(node.target) if node.op == "call_function" else ""


def _check_writes(graph: Any, roots: Set[Any]) -> None:
    """UnsupportedError for a write after which a tensor and its stopped one differ.

    Parameters
    ----------
    roots : nodes that become tensors of their own; an operand of a detach shares its memory today.
    """
    order = {node: at for at, node in enumerate(graph.nodes)}
    base = {node: _base(node, roots) for node in graph.nodes}
    for node in graph.nodes:
        for written in _written(node):
            root = base[written]
            shared = [one for one in roots if _shares(one, root, base)]
            late = any(
                order[user] > order[node] > order[one]
                for one in shared
                for user in (user for alias in graph.nodes if base[alias] is one for user in alias.users)
            )
            if root in roots or late:
                raise UnsupportedError(
                    f"exported program: {_name(node)} in {module_path(node.meta) or 'the model'} writes to a "
                    "tensor whose gradient detach() or torch.no_grad() stops; write y = f(x) instead of "
                    "changing x in place, and make embeddings without max_norm"
                )


def _shares(root: Any, other: Any, base: dict[Any, Any]) -> bool:
    return _name(root) in _DETACHES and base[root.args[0]] is other


def _base(node: Any, roots: Set[Any]) -> Any:
    """The node whose memory a node's result is, views followed to where they begin."""
    while node not in roots and _returns_alias(node):
        node = node.args[0]
    return node


def _returns_alias(node: Any) -> bool:
    if node.op != "call_function" or not node.args or not hasattr(node.args[0], "op"):
        return False
    schema = getattr(node.target, "_schema", None)
    if schema is None:
        return _name(node) == "_operator.getitem"
    return bool(schema.returns) and schema.returns[0].alias_info is not None


def _written(node: Any) -> Iterator[Any]:
    """Operands to which a node writes."""
    schema = getattr(node.target, "_schema", None) if node.op == "call_function" else None
    if schema is None or _name(node) in _DETACHES:
        return
    names = [argument.name for argument in schema.arguments]
    given = {**dict(zip(names, node.args, strict=False)), **node.kwargs}
    for argument in schema.arguments:
        written = argument.alias_info is not None and argument.alias_info.is_write
        operand = given.get(argument.name)
        if written and hasattr(operand, "op"):
            yield operand
