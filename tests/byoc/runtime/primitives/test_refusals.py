"""Implementations that a step must not run: errata, and what a process registers."""

from __future__ import annotations

from dataclasses import replace

import pytest
from program_builder import Builder, random
from single_steps import RELU, info, run
from single_steps import no_refusals as no_refusals

from tvm_mxplan.byoc.onednn import library
from tvm_mxplan.byoc.onednn.backend import OneDNN
from tvm_mxplan.core.description import Refused
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.passes.region.annotate import annotate


def small_convolution(preferred: str = "", algorithm: ir.ConvolutionAlgorithm = "direct") -> Builder:
    b = Builder()
    attrs = ir.Convolution((1, 1), (1, 1, 1, 1), (1, 1), 1, algorithm, preferred)
    src, dst = b.input((1, 35, 9, 11), "acdb"), b.output((1, 17, 9, 11), "acdb")
    b.step(attrs, [RELU], src=src, weights=b.constant(random(17, 35, 3, 3)), dst=dst)
    return b


def test_the_next_best_implementation_runs_and_the_report_has_both() -> None:
    first = info(small_convolution())
    assert not first.refused
    assert first.descriptor.startswith("convolution ")
    refused: list[Refused] = []
    taken = [first.implementation]
    for _ in range(3):
        refused.append(Refused(taken[-1], f"wrong {len(refused)}"))
        library.refuse(first.descriptor, *refused[-1])
        now = info(small_convolution())
        assert now.refused == tuple(refused)
        assert now.implementation not in taken and not set(taken) & set(now.alternatives)
        assert run(small_convolution()) == now.implementation
        taken.append(now.implementation)
    library.forget_refusals()
    assert info(small_convolution()) == first


def test_a_step_without_anything_left_is_refused_with_the_reasons() -> None:
    told = info(small_convolution())
    while not told.error:
        library.refuse(told.descriptor, told.implementation, "wrong on Sundays")
        told = info(small_convolution())
    assert "every implementation" in told.error and "wrong on Sundays" in told.error
    with pytest.raises(Exception, match="wrong on Sundays"):
        run(small_convolution())


@pytest.mark.parametrize("own", [False, True])
def test_what_a_plan_refuses_no_process_runs(own: bool) -> None:
    """Without a word to the process: the program carries it, into exported libraries too."""
    b = small_convolution(algorithm="winograd_f2" if own else "direct")
    first = info(b)
    b.steps[0] = replace(b.steps[0], refused=(first.implementation,))
    told = info(b)
    assert told.refused == (Refused(first.implementation, "found to be wrong when the plan was made"),)
    assert library.refusals() == []
    assert run(b) not in (first.implementation, "")
    if not own:
        assert annotate(b.build(), OneDNN()).steps[0].refused == (first.implementation,)


def test_other_steps_keep_what_is_refused_for_one() -> None:
    first = info(small_convolution())
    library.refuse(first.descriptor, first.implementation, "wrong here")
    b = small_convolution()
    b.values[1] = ir.Value("o", (1, 17, 9, 11), "float32", "output", "abcd", 0)
    assert info(b).descriptor != first.descriptor and not info(b).refused


def test_what_a_step_prefers_may_be_refused_too() -> None:
    first = info(small_convolution())
    name = first.alternatives[0]
    library.refuse(first.descriptor, name, "wrong alternative")
    told = info(small_convolution(name))
    assert f"{name} is refused for it, wrong alternative" in told.error
    assert told.refused == (Refused(name, "wrong alternative"),)
    assert run(small_convolution(name)) == first.implementation


def test_own_kernels_are_refused_under_their_names() -> None:
    winograd = small_convolution(algorithm="winograd_f4")
    first = info(winograd)
    assert (first.implementation, first.error) == ("winograd_f4", "")
    library.refuse(first.descriptor, "winograd_f4", "wrong tiles")
    assert "winograd_f4 is refused for it, wrong tiles" in info(winograd).error
    assert run(winograd) == info(small_convolution()).implementation

    def row() -> Builder:
        b = Builder()
        src, dst = b.input((1, 67)), b.output((1, 19))
        b.step(ir.InnerProduct(), src=src, weights=b.constant(random(19, 67)), dst=dst)
        return b

    assert info(row()).implementation == "row_product"
    library.refuse(info(row()).descriptor, "row_product", "wrong rows")
    assert info(row()).refused == (Refused("row_product", "wrong rows"),)
    assert info(row()).implementation != "row_product"
    row().run(random(1, 67))


def test_a_step_of_several_stages_is_refused_as_a_whole() -> None:
    b = Builder()
    src, dst = b.input((1, 3, 5)), b.output((1, 3, 9))
    b.step(ir.Pad((0, 0, 2), 1.0), src=src, dst=dst)
    told = info(b)
    assert "+" in told.implementation
    library.refuse(told.descriptor, told.implementation, "wrong borders")
    assert "wrong borders" in info(b).error


def test_a_refusal_needs_a_reason() -> None:
    with pytest.raises(ValueError, match="a reason"):
        library.refuse("convolution", "jit", "")
    assert not library.refusals()
