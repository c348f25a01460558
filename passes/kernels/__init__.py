"""TVM's own kernels, for what regions leave to it: which of them wake threads."""

from .serial_small_kernels import SerialSmallKernels

__all__ = ["SerialSmallKernels"]
