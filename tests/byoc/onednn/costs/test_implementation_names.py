"""Names of oneDNN's implementations: reference code is recognised wherever it stands."""

from __future__ import annotations

import pytest

from tvm_mxplan.byoc.onednn.costs import implementation_named


@pytest.mark.parametrize(
    ("implementation", "slow"),
    [
        ("jit:avx512_core", False),
        ("ref:any", True),
        ("jit:avx512_core+ref:any", True),
        ("ref:any+jit:avx512_core", True),
        ("jit:avx512_core+jit:uni", False),
        ("ref_fused_convolution:any:ref:any:jit_dw:avx2", True),
        ("ref_fused_convolution:any:jit_1x1:avx2:ref:any", True),
        ("ref_fused_convolution:any:brgconv_1x1:avx2:jit_dw:avx2", False),
        ("brgconv:ref", False),
        ("reference", False),
        ("", False),
    ],
)
def test_one_slow_primitive_makes_a_step_slow(implementation: str, slow: bool) -> None:
    assert implementation_named(implementation).is_reference == slow


@pytest.mark.parametrize(
    ("name", "family", "instruction_set"),
    [
        ("brgconv_1x1:avx512_core", "brgconv_1x1", "avx512"),
        ("jit_dw:avx2", "jit_dw", "avx2"),
        ("jit:sse41", "jit", "sse41"),
        ("brg:avx512_core_bf16", "brg", "avx512"),
        ("jit:uni", "jit", ""),
        ("x64:gemm:jit", "gemm", ""),
        ("gemm:jit", "gemm", ""),
        ("brgemm:avx512_core", "brgemm", "avx512"),
        ("simple:any", "simple", ""),
        ("jit:avx512_core+jit:avx2", "jit", "avx512"),
        ("jit:uni+brgconv_1x1:avx512_core", "brgconv_1x1", "avx512"),  # behind a conversion of weights
        ("jit:blk+conv:any+jit:avx512_core", "conv", ""),
        ("simple:any+jit_1x1:avx512_core+jit:uni", "jit_1x1", "avx512"),
        ("jit:blk+simple:any", "jit", ""),
        ("jit_direct_copy:uni+jit:avx512_core", "jit", "avx512"),
        ("ref_fused_convolution:any:brgconv_1x1:avx2:jit_dw:avx2", "brgconv_1x1", "avx2"),
        ("", "", ""),
    ],
)
def test_family_and_instruction_set(name: str, family: str, instruction_set: str) -> None:
    found = implementation_named(name)
    assert (found.name, found.family, found.instruction_set) == (name, family, instruction_set)
