"""What a library says of a step: reference code is recognised wherever it stands."""

from __future__ import annotations

import pytest

from tvm_mxplan.core.description import StepInfo, is_reference


@pytest.mark.parametrize(
    ("implementation", "slow"),
    [
        ("jit:avx512_core", False),
        ("ref:any", True),
        ("jit:avx512_core+ref:any", True),
        ("ref:any+jit:avx512_core", True),
        ("jit:avx512_core+jit:uni", False),
        ("brgconv:ref", False),
        ("reference", False),
        ("", False),
    ],
)
def test_one_slow_primitive_makes_a_step_slow(implementation: str, slow: bool) -> None:
    assert is_reference(implementation) == StepInfo(implementation, 0, 0, "").is_reference == slow


def test_a_library_that_says_no_more_adds_no_error_and_has_no_alternative() -> None:
    info = StepInfo("jit", 64, 8, "")
    assert (info.relative_error, info.alternatives) == (0.0, ())
