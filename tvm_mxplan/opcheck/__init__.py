"""opcheck: every step of every region a second time, in float64, from what it really read.

result = tvm_mxplan.opcheck.check(ex, x, folder="differences")
print(result)                       # or result.first, with both values, index, step, layouts and a file

What is compared is what a region's program asks for with what was written for it: the choice of
primitives, layouts, packed weights, offsets and in-place pairs.  Whether a program is the right one for its
operators is for a comparison of whole outputs to say.
"""

from __future__ import annotations

import os
from typing import Any

from .checker import Checker, checking
from .replay import Replay, replay
from .result import Difference, Finding, OpCheck


def check(ex: Any, /, *args: Any, folder: str | os.PathLike[str] | None = None, **kwargs: Any) -> OpCheck:
    """Call an executable once with every step checked.

    Parameters
    ----------
    ex : from :func:`tvm_mxplan.compile` or :func:`tvm_mxplan.load`; with symbolic shapes, at those of the
        arguments.
    args, kwargs : as for calling it.
    folder : where to write the first step that differs, for :func:`replay`; nothing is written without.
    """
    with checking(folder) as checker:
        ex(*args, **kwargs)
    return checker.result()


__all__ = ["Checker", "Difference", "Finding", "OpCheck", "Replay", "check", "checking", "replay"]
