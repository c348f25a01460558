"""Names that a user knows: of operators, of modules, of inputs and outputs."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any


def operator_name(target: Any) -> str:
    """The name of what a node calls, with its namespace: ``aten.add.Tensor``, ``_operator.getitem``."""
    if hasattr(target, "_schema"):
        return str(target)
    return f"{getattr(target, '__module__', '')}.{getattr(target, '__name__', target)}"


def module_path(meta: Mapping[str, Any]) -> str:
    """The module that a node comes from, as ``state_dict`` names it: ``layer1.0.conv1``; '' for the model."""
    stack = meta.get("nn_module_stack")
    if not stack:
        return ""
    path = str(next(reversed(stack.values()))[0])
    path = re.sub(r"^L\['self'\]\.?|^L__self__\.?", "", path)  # as torch.compile writes it
    path = path.replace("_modules['", ".").replace("']", "")
    return re.sub(r"\.{2,}", ".", path).strip(".")


def places(spec: Any) -> list[Sequence[Any]]:
    """Lists the path to each leaf of one of PyTorch's pytrees, whose classes need not name their parts."""
    return list(_paths(spec, ()))


def _paths(spec: Any, path: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
    if spec.is_leaf():
        yield path
        return
    children = spec.children() if hasattr(spec, "children") else spec.children_specs  # of earlier PyTorch
    for key, child in zip(_keys(spec, len(children)), children, strict=True):
        yield from _paths(child, (*path, key))


def _keys(spec: Any, count: int) -> Sequence[Any]:
    """The parts of a node: by its class, by the keys of a mapping, or by numbers."""
    from torch.utils import _pytree

    kind = _pytree.SUPPORTED_NODES[spec.type]
    node = kind.unflatten_fn(list(range(count)), spec.context)
    if kind.flatten_with_keys_fn is not None:
        return [key for key, _ in kind.flatten_with_keys_fn(node)[0]]
    if isinstance(node, Mapping) and len(node) == count:
        return list(node)
    return range(count)


def result_names(paths: Sequence[Sequence[Any]]) -> list[str]:
    """Names for results by where they stand in what the model returns: keys, attributes and indices.

    A result that stands alone is ``output0``, those of a tuple ``output0``, ``output1``; those of a
    dictionary have its keys.
    """
    names = []
    for path in paths:
        parts = [_text(part) for part in path]
        text = "_".join(parts)
        names.append(text if text[:1].isalpha() else f"output{text or 0}")
    return unique(names)


def unique(names: Iterable[str]) -> list[str]:
    """The names, with a number behind those that came before."""
    found: dict[str, None] = {}
    for name in names:
        number, candidate = 2, name
        while candidate in found:
            number, candidate = number + 1, f"{name}_{number}"
        found[candidate] = None
    return list(found)


def _text(part: Any) -> str:
    """A key, an index or an attribute in a path of PyTorch's pytrees."""
    for field in ("key", "idx", "name"):
        if hasattr(part, field):
            part = getattr(part, field)
            break
    return re.sub(r"\W", "_", str(part))
