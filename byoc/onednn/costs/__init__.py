"""What oneDNN's kernels cost, by what their names say and what a machine can do."""

from .names import implementation_named
from .steps import cost

__all__ = ["cost", "implementation_named"]
