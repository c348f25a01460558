"""Tells objects of PyTorch from others without importing it: the user's object brings its classes along."""

from __future__ import annotations

from typing import Any


def is_program(model: Any) -> bool:
    """Whether an object is a ``torch.export.ExportedProgram``."""
    return _is_a(type(model), "ExportedProgram")


def is_module(model: Any) -> bool:
    """Whether an object is a ``torch.nn.Module``."""
    return _is_a(type(model), "Module")


def is_scripted(model: Any) -> bool:
    """Whether an object is TorchScript, which ``torch.export`` does not take."""
    return _is_a(type(model), "ScriptModule") or _is_a(type(model), "ScriptFunction")


def is_tensor(value: Any) -> bool:
    """Whether an object is a ``torch.Tensor``, a fake one included."""
    return _is_a(type(value), "Tensor")


def is_symbolic(value: Any) -> bool:
    """Whether an object is a number of PyTorch's that depends on sizes: SymInt, SymFloat or SymBool."""
    return any(_is_a(type(value), name) for name in ("SymInt", "SymFloat", "SymBool"))


def _is_a(kind: type, name: str) -> bool:
    return any(
        base.__name__ == name and base.__module__.partition(".")[0] == "torch" for base in kind.__mro__
    )
