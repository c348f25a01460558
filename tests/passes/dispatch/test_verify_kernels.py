"""``VerifyKernels``: plans again what is refused, within bounds, and gives back what stays wrong."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest
import tvm

from tvm_mxplan.byoc.backend import Backend
from tvm_mxplan.byoc.onednn.backend import OneDNN
from tvm_mxplan.core.decisions.journal import Journal
from tvm_mxplan.core.decisions.verification import Refusal
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.frontend.onnx import import_model
from tvm_mxplan.options import Options
from tvm_mxplan.passes.dispatch.verify_kernels import TURNS, VerifyKernels
from tvm_mxplan.passes.region.attached import program_of, regions
from tvm_mxplan.pipeline import compilation
from tvm_mxplan.testing import zoo

BACKEND, TARGET = OneDNN(), tvm.target.Target("llvm")
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
    imported = import_model(zoo.load(zoo.TINY), None, "")
    return compilation([BACKEND], Options(), TARGET).run(imported, last="programs")


def verified(mod: tvm.IRModule, verifier: Finding, journal: Journal) -> tvm.IRModule:
    def plan(mod: tvm.IRModule) -> tvm.IRModule:
        return compilation([BACKEND], Options(), TARGET).run(mod, "algorithms", "memory")

    return VerifyKernels([BACKEND], verifier, plan, journal)(mod)


def programs(mod: tvm.IRModule) -> list[ir.Program]:
    return [program_of(function) for _, function in regions(mod, BACKEND.name)]


def test_a_plan_that_is_right_is_taken(undecided: tvm.IRModule) -> None:
    verifier, journal = Finding(0), Journal()
    planned = verified(undecided, verifier, journal)
    assert verifier.known == 1
    assert verifier.asked == [programs(planned)]
    (program,) = programs(planned)
    assert program.arena_bytes > 0 and all(
        step.implementation for step in program.steps if step.scratchpad_bytes
    )
    assert journal == Journal()


def test_each_turn_plans_what_came_in(undecided: tvm.IRModule) -> None:
    verifier = Finding(2)
    planned = verified(undecided, verifier, Journal())
    assert len(verifier.asked) == 3
    assert verifier.asked[0] == verifier.asked[1] == programs(planned)  # nothing was really refused


@pytest.mark.slow
def test_what_stays_wrong_goes_back_to_tvm_with_the_reason(undecided: tvm.IRModule) -> None:
    verifier, journal = Finding(TURNS + 5), Journal()
    planned = verified(undecided, verifier, journal)
    assert len(verifier.asked) == TURNS == 16, "as docs/checking/verification.md says"
    assert programs(planned) == []
    assert journal.refused["conv2d_0"] == (
        f"conv2d_0: brg refused for convolution: 3 elements differ; still wrong after {TURNS} plans"
    )
