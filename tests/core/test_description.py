"""What a library says of a step: reference code is recognised wherever it stands."""

from __future__ import annotations

import pytest

from tvm_mxplan.core.description import Refused, StepInfo, is_reference


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


def test_what_a_library_says_stands_under_its_name() -> None:
    """Backends give it in this order."""
    refused = (Refused("jit", "wrong"),)
    info = StepInfo("brgconv", 64, 8, "none", 1e-6, ("jit:uni",), refused, "conv 1x1")
    assert (info.implementation, info.scratchpad_bytes, info.weights_bytes, info.error) == (
        "brgconv",
        64,
        8,
        "none",
    )
    assert (info.relative_error, info.alternatives) == (1e-6, ("jit:uni",))
    assert (info.refused, info.descriptor) == (refused, "conv 1x1")
    assert not info.is_reference
    assert (StepInfo("jit", 0, 0, "").refused, StepInfo("jit", 0, 0, "").descriptor) == ((), "")
