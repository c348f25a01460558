"""``VerifyKernels``: plans again what is refused, within bounds, and gives back what stays wrong."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest
import tvm

from tvm_mxplan.byoc.backend import Backend
from tvm_mxplan.byoc.onednn.backend import OneDNN
from tvm_mxplan.core import program as ir
from tvm_mxplan.core.choices import Choices
from tvm_mxplan.core.verification import Refusal
from tvm_mxplan.frontend.onnx import import_model
from tvm_mxplan.options import Options
from tvm_mxplan.passes.dispatch.implementations import preference_of
from tvm_mxplan.passes.dispatch.verify_kernels import TURNS, VerifyKernels
from tvm_mxplan.passes.layout.costs import BY_MODEL
from tvm_mxplan.passes.region import BuildPrograms, NameOperators
from tvm_mxplan.passes.region.attached import program_of, regions
from tvm_mxplan.pipeline import canonicalize_passes, deciding_passes, dispatch_passes, planning_passes
from tvm_mxplan.recorder import Recorder
from tvm_mxplan.testing import zoo

BACKEND = OneDNN()
REFUSAL = Refusal("conv2d_0", "convolution", "text", "brg", "3 elements differ")


class Finding:
    """Finds something wrong with the first region, as often as it is told."""

    def __init__(self, times: int) -> None:
        self.times = times
        self.asked: list[list[ir.Program]] = []
        self.known = 0

    def refuse_known(self, backend: Backend) -> None:
        assert backend is BACKEND and not self.asked
        self.known += 1

    def wrong(self, backend: Backend, programs: Sequence[ir.Program]) -> Mapping[str, Refusal]:
        assert backend is BACKEND
        self.asked.append(list(programs))
        return {programs[0].name: REFUSAL} if len(self.asked) <= self.times else {}


@pytest.fixture(scope="module")
def undecided() -> tvm.IRModule:
    preference = preference_of([BACKEND])
    passes = [*canonicalize_passes(), NameOperators(), *dispatch_passes(preference, Recorder())]
    return tvm.transform.Sequential([*passes, BuildPrograms(BACKEND)])(
        import_model(zoo.load(zoo.TINY), None, "")
    )


def verified(mod: tvm.IRModule, verifier: Finding, rejections: dict[str, str]) -> tvm.IRModule:
    def plan() -> list[tvm.transform.Pass]:
        options, recorder = Options(), Recorder()
        deciding = deciding_passes(
            BACKEND, options, (options.rule, options.policy), (BY_MODEL, BY_MODEL), recorder, Choices()
        )
        return [*deciding, *planning_passes(BACKEND, options, recorder)]

    return VerifyKernels(BACKEND, verifier, plan, rejections)(mod)


def programs(mod: tvm.IRModule) -> list[ir.Program]:
    return [program_of(function) for _, function in regions(mod, BACKEND.name)]


def test_a_plan_that_is_right_is_taken(undecided: tvm.IRModule) -> None:
    verifier, rejections = Finding(0), {}
    planned = verified(undecided, verifier, rejections)
    assert verifier.known == 1
    assert verifier.asked == [programs(planned)]
    (program,) = programs(planned)
    assert program.arena_bytes > 0 and all(
        step.implementation for step in program.steps if step.scratchpad_bytes
    )
    assert rejections == {}


def test_each_turn_plans_what_came_in(undecided: tvm.IRModule) -> None:
    verifier = Finding(2)
    planned = verified(undecided, verifier, {})
    assert len(verifier.asked) == 3
    assert verifier.asked[0] == verifier.asked[1] == programs(planned)  # nothing was really refused


def test_what_stays_wrong_goes_back_to_tvm_with_the_reason(undecided: tvm.IRModule) -> None:
    verifier, rejections = Finding(TURNS + 5), {}
    planned = verified(undecided, verifier, rejections)
    assert len(verifier.asked) == TURNS
    assert programs(planned) == []
    assert rejections["conv2d_0"] == (
        f"conv2d_0: brg refused for convolution: 3 elements differ; still wrong after {TURNS} plans"
    )
