"""Instruction sets, and the types that they compute in."""

from __future__ import annotations

import pytest

from tvm_mxplan.byoc.onednn.element_types import missing_type


@pytest.mark.parametrize(
    "isa", ["avx512_core_bf16", "avx512_core_fp16", "avx512_core_amx", "avx10_1_512_amx"]
)
def test_sets_with_bfloat16(isa: str) -> None:
    assert missing_type("bfloat16", f"cpu_isa_{isa}") == ""


@pytest.mark.parametrize("isa", ["sse41", "avx", "avx2", "avx2_vnni", "avx512_core", "avx512_core_vnni"])
def test_sets_without(isa: str) -> None:
    told = missing_type("bfloat16", f"cpu_isa_{isa}")
    assert told == f"oneDNN generates code for {isa}, bfloat16 wants avx512_core_bf16 or above"
    assert missing_type("float32", f"cpu_isa_{isa}") == ""


def test_other_types_are_not_used() -> None:
    assert missing_type("int8", "cpu_isa_avx512_core_amx") == (
        "oneDNN is used for float32 and bfloat16, not for int8"
    )
