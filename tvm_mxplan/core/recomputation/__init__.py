"""Recomputation under a budget of memory: the values of a forward part that are made again for backward.

problem.py    operations in order, and what a choice takes in bytes and microseconds
chain.py      the cheapest choice where the forward part is a chain
greedy.py     a choice for any other, and a bound of what the cheapest one costs
choose.py     the two in one, and the check of what they give
"""

from .choose import Choice, choose
from .problem import Operation, Problem, Run, Value, simulated

__all__ = ["Choice", "Operation", "Problem", "Run", "Value", "choose", "simulated"]
