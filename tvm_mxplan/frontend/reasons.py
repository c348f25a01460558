"""Extracts TVM's reason from an error, in one line and without the operator written out."""

from __future__ import annotations

import re

_OPERATOR = re.compile(r"^In ir\.Op\(.*?support_level=\d+\),? ?")


def reason_of(error: BaseException) -> str:
    """The last line that an error has to say, or its type."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return _OPERATOR.sub("", lines[-1]).rstrip(".") if lines else type(error).__name__
