"""Reads what the system says of its processors: what they are, and who had them."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from pathlib import Path

_STAT = Path("/proc/stat")
_STOLEN = 0.02
"""Of the time of all processors: what a hypervisor gives to other guests, from where on timing suffers."""


@functools.cache
def processor_fields() -> Mapping[str, str]:
    """The first processor's fields as Linux names them (``model name``, ``flags``, ...); {} elsewhere."""
    try:
        text = Path("/proc/cpuinfo").read_text()
    except OSError:
        return {}
    pairs = (line.partition(":") for line in text.split("\n\n", 1)[0].splitlines())
    return {name.strip(): value.strip() for name, _, value in pairs}


class StolenTime:
    """The share of the processors' time that a hypervisor has given to other guests since this was made.

    Where the system does not say, nothing counts as stolen.
    """

    def __init__(self) -> None:
        self._begin = _ticks()

    def share(self) -> float:
        """Of the time of all processors; in steps of their clock, usually 10 ms."""
        stolen, passed = (now - begin for now, begin in zip(_ticks(), self._begin, strict=True))
        return stolen / passed if passed > 0 else 0.0

    def disturbs(self) -> bool:
        """Whether it is so much that nothing timed meanwhile should count."""
        return self.share() > _STOLEN


def _ticks() -> tuple[int, int]:
    """Ticks that other guests had, and all ticks, of all processors since the system started."""
    try:
        ticks = [int(field) for field in _STAT.read_text().split("\n", 1)[0].split()[1:9]]
    except (OSError, ValueError):
        return 0, 0
    return (ticks[7], sum(ticks)) if len(ticks) == 8 else (0, 0)
