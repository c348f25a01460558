"""Operators of a step that run again in its backward part, so that its arena fits a budget.

budget.py      compiles a step within the option ``memory_budget``
recompute.py   a step as the problem of the solver in ``core/recomputation``, and as it chose
"""
