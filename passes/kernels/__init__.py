"""TVM's own kernels, for what regions leave to it: which wake threads, and what indices they trust."""

from .check_indices import CheckIndices
from .serial_small_kernels import SerialSmallKernels

__all__ = ["CheckIndices", "SerialSmallKernels"]
