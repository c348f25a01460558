"""A library's description of a step: reference code is recognised wherever it stands."""

from __future__ import annotations

from tvm_mxplan.core.description import NOTHING_KNOWN, Implementation, Refused, StepInfo


def test_another_implementation_leaves_the_rest_of_a_step_as_it_is() -> None:
    info = StepInfo("fast:wide", 64, 8, "", 1e-6, family="fast", instruction_set="wide")
    slow = info.running(Implementation("slow", "slow", "", True))
    assert (slow.implementation, slow.family, slow.instruction_set) == ("slow", "slow", "")
    assert slow.is_reference and not info.is_reference
    assert (slow.scratchpad_bytes, slow.weights_bytes, slow.relative_error) == (64, 8, 1e-6)


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


def test_what_is_not_known_is_nothing() -> None:
    assert (
        StepInfo(
            implementation="",
            scratchpad_bytes=0,
            weights_bytes=0,
            error="",
            relative_error=0.0,
            alternatives=(),
            refused=(),
            descriptor="",
            family="",
            instruction_set="",
            is_reference=False,
        )
        == NOTHING_KNOWN
    )
    assert Implementation("jit") == Implementation("jit", "", "", False)
