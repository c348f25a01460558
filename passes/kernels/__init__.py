"""TVM's own kernels, for what regions leave to it: threads, indices, infinities, sums, parameters."""

from .check_indices import CheckIndices
from .fused_scalars import FusedScalarsInShapes
from .reductions_from_infinity import ReductionsFromInfinity
from .schedule_kernels import ScheduleKernels
from .serial_small_kernels import SerialSmallKernels
from .target_kernels import TargetKernels
from .wide_sums import WideSums

__all__ = [
    "CheckIndices",
    "FusedScalarsInShapes",
    "ReductionsFromInfinity",
    "ScheduleKernels",
    "SerialSmallKernels",
    "TargetKernels",
    "WideSums",
]
