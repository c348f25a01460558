"""Recomputation under a budget of memory: operations of a forward part that run again for backward.

problem.py    operations in order, and what a run takes in bytes and microseconds
chain.py      the cheapest choice where the forward part is a chain and each operation runs again once
eviction.py   a choice for any other: values go where room is needed, and are made again where they are read
bound.py      what no choice can do without
choose.py     the best of them, and the check of what they give
"""

from .choose import Choice, choose
from .problem import Operation, Problem, Run, Value, run_of, simulated

__all__ = ["Choice", "Operation", "Problem", "Run", "Value", "choose", "run_of", "simulated"]
