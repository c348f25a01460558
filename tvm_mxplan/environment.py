"""The one place that reads environment variables; README lists them."""

from __future__ import annotations

import os


def disabled() -> bool:
    """``TVM_MXPLAN_DISABLE=1``: compile as stock TVM does, with no region of ours."""
    return os.environ.get("TVM_MXPLAN_DISABLE", "0") not in ("", "0")
