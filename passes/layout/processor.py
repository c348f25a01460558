"""What the processor says of itself that costs depend on."""

from __future__ import annotations

import functools
from collections.abc import Mapping

from tvm_mxplan.core.processor import processor_fields

_IN_HALVES = {("AuthenticAMD", "25")}
"""Vendor and family of processors that execute AVX-512 as pairs of AVX2 operations: Zen 4."""


@functools.cache
def narrow_share() -> float:
    """What AVX2 reaches of the peak of this machine, as :func:`narrow_share_of` has it."""
    return narrow_share_of(processor_fields())


def narrow_share_of(processor: Mapping[str, str]) -> float:
    """What AVX2 reaches of the peak of a processor.

    Parameters
    ----------
    processor : fields of ``/proc/cpuinfo``.

    Returns
    -------
    share : 1 without AVX-512, 0.93 where AVX-512 runs in halves (measured: two instructions in place of one
        cost that much), else a half.
    """
    if "avx512f" not in processor.get("flags", "").split():
        return 1.0
    halves = (processor.get("vendor_id", ""), processor.get("cpu family", "")) in _IN_HALVES
    return 0.93 if halves else 0.5
