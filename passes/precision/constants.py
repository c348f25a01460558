"""Constants of a program in a shorter type: whether it holds them, and what rounding them costs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import tvm

from tvm_mxplan.core.element_types import numpy_type
from tvm_mxplan.core.program import program as ir

from .apply_types import Constant
from .balanced_rounding import SHORT as BALANCED
from .balanced_rounding import Sums, balanced
from .rounding import rounding_of
from .step_types import FLOAT


class Constants:
    """A region's constants beside a shorter type; each is looked at once.

    Parameters
    ----------
    arrays : by the index that values of programs have.
    """

    def __init__(self, arrays: Sequence[np.ndarray], short: str) -> None:
        self._arrays = arrays
        self._short = short
        self._finite: dict[int, bool] = {}
        self._rounded: dict[int, float] = {}

    def are_finite(self, program: ir.Program, root: int) -> bool:
        """Whether a value keeps finite numbers in the shorter type; True for what is no constant, too."""
        value = program.values[root]
        if value.kind != "constant" or value.dtype != FLOAT:
            return True
        if value.index not in self._finite:
            array = self._arrays[value.index]
            largest = max(abs(float(array.max(initial=0.0))), abs(float(array.min(initial=0.0))))
            self._finite[value.index] = not is_beyond(largest, self._short)
        return self._finite[value.index]

    def rounded(self, program: ir.Program, root: int) -> float:
        """The square of a constant's relative error in the shorter type, by its nearest numbers."""
        index = program.values[root].index
        if index not in self._rounded:
            self._rounded[index] = rounding_of(self._arrays[index], self._short)
        return self._rounded[index]

    def stored(
        self, constant: Constant, tensors: Sequence[tvm.runtime.Tensor], sums: Sums | None = None
    ) -> np.ndarray | tvm.runtime.Tensor:
        """A constant in the type that it is wanted in; each number is rounded once.

        Parameters
        ----------
        sums : how it adds up, where that is known: its errors are balanced.
        """
        index, dtype = constant
        if str(tensors[index].dtype) == dtype:
            return tensors[index]
        if sums is not None and dtype == BALANCED:
            return balanced(self._arrays[index], sums)
        return self._arrays[index].astype(numpy_type(dtype))


def is_beyond(number: float, short: str) -> bool:
    """Whether a finite number is infinite in a shorter type."""
    return bool(np.isfinite(number)) and not np.isfinite(float(np.asarray(number, numpy_type(short))))
