"""Reads the fields in which the system describes the processor."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from pathlib import Path


@functools.cache
def processor_fields() -> Mapping[str, str]:
    """The first processor's fields as Linux names them (``model name``, ``flags``, ...); {} elsewhere."""
    try:
        text = Path("/proc/cpuinfo").read_text()
    except OSError:
        return {}
    pairs = (line.partition(":") for line in text.split("\n\n", 1)[0].splitlines())
    return {name.strip(): value.strip() for name, _, value in pairs}
