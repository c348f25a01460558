"""The choice among several implementations of one operator, before layouts and memory."""

from .choose_algorithms import ChooseAlgorithms
from .dispatch_operators import DispatchOperators

__all__ = ["ChooseAlgorithms", "DispatchOperators"]
