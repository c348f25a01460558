"""The choice among several implementations of one operator, before layouts and memory."""

from .choose_algorithms import ChooseAlgorithms

__all__ = ["ChooseAlgorithms"]
