"""Our own converters, where TVM's importer lacks an operator of PyTorch's or errs: a table by operator.

A converter takes an ``Emitter`` and a ``Node`` and returns a tensor, or a list of them.
"""

from __future__ import annotations

from .table import REFUSED, ROUNDED, TABLE, WITHOUT_RESULT, Converter


def of(operator: str) -> Converter | None:
    """The converter for an operator; None where TVM's does."""
    return TABLE.get(operator)


from . import arithmetic, attention, products, reductions, rounded, windows  # noqa: E402, F401 (they join the table)

__all__ = ["REFUSED", "ROUNDED", "TABLE", "WITHOUT_RESULT", "Converter", "of"]
