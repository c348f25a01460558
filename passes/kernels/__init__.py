"""TVM's own kernels, for what regions leave to it: threads, infinities, orders, sums, parameters."""

from .empty_reductions import EmptyReductions
from .exact_comparisons import ExactComparisons
from .exact_functions import ExactFunctions
from .fused_scalars import FusedScalarsInShapes
from .infinite_fills import InfiniteFills
from .numbers_in_order import NumbersInOrder
from .own_results import OwnResults
from .reductions_from_infinity import ReductionsFromInfinity
from .schedule_kernels import ScheduleKernels
from .serial_small_kernels import SerialSmallKernels
from .target_kernels import TargetKernels
from .trusted_indices import TrustedIndices
from .wide_sums import WideSums

__all__ = [
    "EmptyReductions",
    "ExactComparisons",
    "ExactFunctions",
    "FusedScalarsInShapes",
    "InfiniteFills",
    "NumbersInOrder",
    "OwnResults",
    "ReductionsFromInfinity",
    "ScheduleKernels",
    "SerialSmallKernels",
    "TargetKernels",
    "TrustedIndices",
    "WideSums",
]
