"""The sizes of caches, as the system states them."""

from __future__ import annotations

import re
from pathlib import Path

_FOLDER = Path("/sys/devices/system/cpu/cpu0/cache")
_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
_USUAL = {1: (32 << 10, 1), 2: (1 << 20, 1)}
"""Bytes by level, and how many processors share them, where the system says nothing."""


def cache_sizes(threads: int, folder: Path = _FOLDER) -> tuple[int, ...]:
    """Bytes of data that each level of caches has for so many threads together, the nearest first.

    Parameters
    ----------
    folder : of the first processor's caches; all processors are taken to have the same.
    """
    stated = _stated(folder) or _USUAL
    sizes: list[int] = []
    for _, (nbytes, shared) in sorted(stated.items()):
        size = nbytes * -(-threads // shared)
        if not sizes or size > sizes[-1]:
            sizes.append(size)
    return tuple(sizes)


def _stated(folder: Path) -> dict[int, tuple[int, int]]:
    """By level its bytes, and how many processors share them."""
    found: dict[int, tuple[int, int]] = {}
    for index in sorted(folder.glob("index*")):
        try:
            kind, level, size, shared = (
                (index / name).read_text().strip() for name in ("type", "level", "size", "shared_cpu_list")
            )
            number = re.fullmatch(r"(\d+)([KMG]?)", size)
            if kind != "Instruction" and number:
                found[int(level)] = (int(number[1]) * _UNITS[number[2]], max(_count(shared), 1))
        except (OSError, ValueError):
            continue
    return found


def _count(processors: str) -> int:
    """Counts the processors that a list such as ``0-3,8`` names."""
    ends = [part.split("-") for part in processors.split(",") if part]
    return sum(int(part[-1]) - int(part[0]) + 1 for part in ends)
