"""The reason of an error while a model is imported, in one line; and whose mistake it is."""

from __future__ import annotations

import re
import traceback

from ..errors import last_line

_OPERATOR = re.compile(r"^In ir\.Op\(.*?support_level=\d+\),? ?")
_OURS = __name__.partition(".")[0]
_OTHERS = ("tvm", "tvm_ffi", "onnx", "torch", "numpy")


def reason_of(error: BaseException) -> str:
    """The last line that an error has to say, or its type."""
    return _OPERATOR.sub("", last_line(error)).rstrip(".")


def is_own_mistake(error: BaseException) -> bool:
    """Whether an error comes out of a converter of ours.

    TVM's converters, its inference, ONNX and PyTorch refuse by errors of all kinds what they do not take: so
    what counts is not the type but who raised it, the last in the traceback that is theirs or ours.
    """
    for frame, _ in reversed(list(traceback.walk_tb(error.__traceback__))):
        module = frame.f_globals.get("__name__")
        package = str(module).partition(".")[0]
        if module is None or package in _OTHERS:  # None: C++
            return False
        if package == _OURS:
            return True
    return False
