"""Layouts by hand: :func:`to_blocked` and :func:`to_plain`, for Relax expressions and tensors at run time.

y = op.to_blocked(x, "nChw16c")     zeros where channels are padded
op.to_blocked(y, "nChw16c")         y itself
op.to_plain(y)                      x itself; the padding is cropped
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from . import expressions, tensors
from .tensors import PhysicalTensor


def to_blocked(x: Any, layout: str) -> Any:
    """``x`` in another physical layout, its padding filled with zeros; ``x`` itself if it is so already.

    Parameters
    ----------
    x : a Relax expression of known type; or a numpy array, a TVM tensor, a :class:`PhysicalTensor`.
    layout : a name such as ``nChw16c`` or ``nhwc``, or a tag; it fits the rank of ``x``.

    Returns
    -------
    y : a Relax expression of the physical shape, made of operators that TVM legalizes; or a
        :class:`PhysicalTensor`, which remembers layout and shape.

    Raises
    ------
    InvalidInputError : an unknown layout, or one of another rank.
    """
    return (expressions if expressions.is_expression(x) else tensors).to_blocked(x, layout)


def to_plain(x: Any, layout: str | None = None, shape: Sequence[int] | None = None) -> Any:
    """``x`` in the standard layout, without padding; ``x`` itself where it is known to be so.

    Parameters
    ----------
    layout, shape : physical layout and logical shape.  What :func:`to_blocked` made needs neither: a
        :class:`PhysicalTensor` remembers them, and of a Relax expression they are read from its definition,
        which is seen where it is nested, or bound by the ``BlockBuilder`` at work.

    Raises
    ------
    InvalidInputError : nothing says what the layout is, or ``x`` does not fit it.
    """
    return (expressions if expressions.is_expression(x) else tensors).to_plain(x, layout, shape)


__all__ = ["PhysicalTensor", "to_blocked", "to_plain"]
