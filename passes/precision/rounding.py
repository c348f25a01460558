"""The cost of types of steps in accuracy: squares of the relative errors that their roundings make.

    a cast, or a result that is written, in a shorter type     one rounding of the value
    filters                                                    their own rounding, which is known exactly
    what moves or picks numbers that are short already         nothing

A number of p significant bits is off by up to half a unit in its last place, evenly spread: its relative
error has a mean square of at most (2^-p)^2 / 3, where all mantissas are near 1.  Roundings of different
numbers are independent of each other and have no preferred sign, so a sum of products of random signs has the
mean square of its terms, and squares of errors add up along a program.  On the way to
the results some layers amplify errors (small differences of large numbers, exponentials of large ones) and
others damp them: each rounding is counted as if all layers behind it together made it four times as large.
"""

from __future__ import annotations

import numpy as np

from tvm_mxplan.core.element_types import numpy_type
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.core.program.operands import operands_of

from .step_types import FLOAT, StepTypes, moves, operand_type

_SIGNIFICANT_BITS = {"bfloat16": 8, "float16": 11}
AMPLIFIED = 4.0
"""The factor by which an error is taken to be in the results than where it is made."""
_PIECE = 1 << 20
_PICKING = ("relu", "abs")
"""Functions that give back the number that they read, 0, or the other sign."""


def rounding(dtype: str) -> float:
    """The square of the error that rounding a value to a type adds to the results; 0 for float32."""
    bits = _SIGNIFICANT_BITS.get(dtype)
    return 0.0 if bits is None else AMPLIFIED**2 * 4.0**-bits / 3.0


def rounding_of(array: np.ndarray, dtype: str) -> float:
    """The square of the error that rounding an array of constants to a type adds to the results."""
    if _SIGNIFICANT_BITS.get(dtype) is None:
        return 0.0
    # In pieces: a copy in float64 of a large table of weights takes much memory.
    error = total = 0.0
    numbers = array.reshape(-1)
    for at in range(0, numbers.size, _PIECE):
        exact = np.nan_to_num(numbers[at : at + _PIECE].astype(np.float64), posinf=0.0, neginf=0.0)
        short = exact.astype(numpy_type(dtype)).astype(np.float64)
        error += float(np.square(short - exact).sum())
        total += float(np.square(exact).sum())
    return AMPLIFIED**2 * error / total if total > 0 else 0.0


def spent_by(step: ir.Step, types: StepTypes, filters: float) -> float:
    """The square of the relative error that ``step`` adds by writing short results, and by its filters.

    What it reads was rounded by whoever wrote or cast it.

    Parameters
    ----------
    filters : the squares of its filters' errors in the shorter type.
    """
    own = filters if types.read != FLOAT else 0.0
    if types.written == FLOAT or (types.read == types.written and _is_exact(step)):
        return own
    return own + rounding(types.written)


def filters_of(program: ir.Program, step: ir.Step, types: StepTypes) -> list[int]:
    """The constants that ``step`` reads in the shorter type."""
    roots = [(role, program.root(number)) for role, number in operands_of(step)]
    return [
        root
        for role, root in roots
        if program.values[root].kind == "constant" and operand_type(role, True, types) != FLOAT
    ]


def _is_exact(step: ir.Step) -> bool:
    """Whether each number of the result is a number that the step read."""
    if step.post_ops:
        return False
    attrs = step.attrs
    if isinstance(attrs, ir.Pooling):
        return attrs.algorithm == "max"
    if isinstance(attrs, ir.Eltwise):
        return attrs.algorithm in _PICKING and attrs.alpha == 0.0
    if isinstance(attrs, ir.Resampling):
        return attrs.algorithm == "nearest"
    return moves(step)
