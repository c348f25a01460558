"""The choice among several implementations of one operator, before layouts and memory."""

from .choose_algorithms import ChooseAlgorithms
from .dispatch_operators import DispatchOperators
from .verify_kernels import VerifyKernels
from .weigh_candidates import WeighCandidates

__all__ = ["ChooseAlgorithms", "DispatchOperators", "VerifyKernels", "WeighCandidates"]
