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


@pytest.mark.parametrize("isa", ["avx2_vnni", "avx512_core_vnni", "avx512_core_bf16", "avx512_core_amx"])
def test_sets_with_integers(isa: str) -> None:
    assert missing_type("int8", f"cpu_isa_{isa}") == ""


@pytest.mark.parametrize("isa", ["sse41", "avx", "avx2", "avx512_core"])
def test_sets_whose_sums_of_integers_saturate(isa: str) -> None:
    told, _, ours = missing_type("int8", f"cpu_isa_{isa}").partition("; ")
    assert told == f"oneDNN generates code for {isa}, int8 wants avx512_core_vnni or above"
    assert bool(ours) == (isa == "avx2")


def test_other_types_are_not_used() -> None:
    assert missing_type("float16", "cpu_isa_avx512_core_amx") == (
        "oneDNN is used for float32, bfloat16 and int8, not for float16"
    )
