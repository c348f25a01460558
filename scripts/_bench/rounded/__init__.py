"""Programs in shorter types on processors that compute in none: rounded numbers, kernels of float32."""

from .library import StandIn
from .program import RoundedProgram

__all__ = ["RoundedProgram", "StandIn"]
