"""Our own converters, where TVM's importer lacks an operator of PyTorch's or errs: a table by operator.

A converter takes an ``Emitter`` and a ``Node`` and returns a tensor, or a list of them.
"""

from __future__ import annotations

from .table import COMPLEX, REFUSED, ROUNDED, TABLE, TRAINING, WITHOUT_RESULT, Converter


def of(operator: str) -> Converter | None:
    """The converter for an operator; None where TVM's does."""
    return TABLE.get(operator)


from . import (  # noqa: E402 (they join the table)
    activations,  # noqa: F401
    arithmetic,  # noqa: F401
    attention,  # noqa: F401
    joins,  # noqa: F401
    movement,  # noqa: F401
    norms,  # noqa: F401
    products,  # noqa: F401
    puts,  # noqa: F401
    quantized,  # noqa: F401
    recurrent,  # noqa: F401
    reductions,  # noqa: F401
    rounded,  # noqa: F401
    training,  # noqa: F401
    windows,  # noqa: F401
)
from .complex_numbers import fourier, pairs, written  # noqa: E402, F401
from .images import pools, regions, resizing  # noqa: E402, F401
from .numbers import bits, divisors, fills, functions, parts, special, variances  # noqa: E402, F401
from .selection import bags, indexing, ordering, picking  # noqa: E402, F401

__all__ = ["COMPLEX", "REFUSED", "ROUNDED", "TABLE", "TRAINING", "WITHOUT_RESULT", "Converter", "of"]
