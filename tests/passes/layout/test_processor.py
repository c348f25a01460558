"""What AVX2 reaches of a processor's peak, by what the processor says of itself."""

from __future__ import annotations

import pytest

from tvm_mxplan.passes.layout.processor import narrow_share, narrow_share_of

ZEN_3 = {"vendor_id": "AuthenticAMD", "cpu family": "25", "flags": "fma avx2"}
ZEN_4 = {"vendor_id": "AuthenticAMD", "cpu family": "25", "flags": "fma avx2 avx512f avx512vl"}
ZEN_5 = {"vendor_id": "AuthenticAMD", "cpu family": "26", "flags": "fma avx2 avx512f avx512vl"}
XEON = {"vendor_id": "GenuineIntel", "cpu family": "6", "flags": "fma avx2 avx512f avx512vl"}


@pytest.mark.parametrize(
    "processor, share", [(ZEN_3, 1.0), (ZEN_4, 0.93), (ZEN_5, 0.5), (XEON, 0.5), ({}, 1.0)]
)
def test_share(processor: dict[str, str], share: float) -> None:
    assert narrow_share_of(processor) == share


def test_of_this_machine() -> None:
    assert narrow_share() in (0.5, 0.93, 1.0)
    assert narrow_share() is narrow_share()
