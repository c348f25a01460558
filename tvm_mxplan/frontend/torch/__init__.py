"""PyTorch in front: exported programs and modules as Relax modules.

Nothing here imports torch before the user's own object has brought it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from .kinds import is_module, is_program, is_scripted

__all__ = ["Examples", "is_module", "is_program", "is_scripted", "is_torch"]


@dataclass(frozen=True)
class Examples:
    """The arguments from which ``torch.export`` learns a module's inputs."""

    args: Sequence[Any] = ()
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    dynamic_shapes: Any = None

    def __bool__(self) -> bool:
        return bool(self.args or self.kwargs or self.dynamic_shapes is not None)


def is_torch(model: Any) -> bool:
    """Whether an object is a model of PyTorch's."""
    return is_program(model) or is_module(model) or is_scripted(model)
