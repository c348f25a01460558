"""Memory allocation as plain data: a problem goes in, a plan comes out, a validator checks it.

``problem`` and ``plan`` are the data; ``solver`` is the portfolio; ``validate`` shares nothing with it.
"""

from .bounds import lower_bound
from .csvio import read_csv, write_csv
from .plan import Plan, Status
from .problem import Item, Problem, ProblemError, Rectangle
from .solver import solve
from .validate import validate

__all__ = [
    "Item",
    "Plan",
    "Problem",
    "ProblemError",
    "Rectangle",
    "Status",
    "lower_bound",
    "read_csv",
    "solve",
    "validate",
    "write_csv",
]
