"""TVM's own kernels, for what regions leave to it: threads, indices, infinities, sums, parameters."""

from .check_indices import CheckIndices
from .empty_reductions import EmptyReductions
from .fused_scalars import FusedScalarsInShapes
from .infinite_fills import InfiniteFills
from .reductions_from_infinity import ReductionsFromInfinity
from .schedule_kernels import ScheduleKernels
from .self_comparisons import SelfComparisons
from .serial_small_kernels import SerialSmallKernels
from .target_kernels import TargetKernels
from .wide_sums import WideSums

__all__ = [
    "CheckIndices",
    "EmptyReductions",
    "FusedScalarsInShapes",
    "InfiniteFills",
    "ReductionsFromInfinity",
    "ScheduleKernels",
    "SelfComparisons",
    "SerialSmallKernels",
    "TargetKernels",
    "WideSums",
]
