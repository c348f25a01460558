"""TVM's own kernels, for what regions leave to it: their threads, trust in indices, and infinities."""

from .check_indices import CheckIndices
from .reductions_from_infinity import ReductionsFromInfinity
from .serial_small_kernels import SerialSmallKernels

__all__ = ["CheckIndices", "ReductionsFromInfinity", "SerialSmallKernels"]
