"""Costs of oneDNN's kernels, from the properties in their names and the rates of a machine."""

from .names import implementation_named
from .steps import cost

__all__ = ["cost", "implementation_named"]
