"""Objects that look like PyTorch's where the front end looks at them, so that its logic is tested without."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


def from_torch(name: str, *bases: type) -> type:
    """A class that says that it is PyTorch's."""
    return type(name, bases or (object,), {"__module__": "torch.somewhere"})


@dataclass(frozen=True)
class Integer:
    """SymPy's number."""

    value: int
    is_Integer: bool = True

    def __int__(self) -> int:
        return self.value


@dataclass(frozen=True)
class Symbol:
    """SymPy's symbol."""

    name: str
    is_Symbol: bool = True

    def __str__(self) -> str:
        return self.name


def expression(kind: str, *args: Any) -> Any:
    """SymPy's expression of a kind."""
    return type(kind, (), {"args": args})()


class Shaped:
    """A tensor's shape."""

    def __init__(self, *shape: int) -> None:
        self.shape = shape


class Dim:
    """torch.export.Dim."""

    def __init__(self, name: str) -> None:
        self.__name__ = name


@dataclass(frozen=True)
class Schema:
    """An operator's schema."""

    arguments: tuple[Any, ...] = ()


class Operator:
    """An overload of ATen's."""

    _schema = Schema()

    def __init__(self, name: str) -> None:
        self._name = name
        self.__name__ = name.partition(".")[2]

    def __str__(self) -> str:
        return self._name


def stack(*paths: str) -> Mapping[str, Any]:
    """A node's notes of the modules that it was called in."""
    return {"nn_module_stack": {f"L__self__{path}": (path, "some.Module") for path in paths}}
