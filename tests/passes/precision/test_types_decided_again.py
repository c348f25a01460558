"""Types are decided again where a kernel in bfloat16 is wrong; on a library that stands in for one."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
import tvm

from tvm_mxplan.byoc.backend import Backend
from tvm_mxplan.core.decisions.verification import Refusal
from tvm_mxplan.core.description import Description
from tvm_mxplan.core.machine import default_rates
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.frontend.onnx import import_model
from tvm_mxplan.options import Options
from tvm_mxplan.passes.region.attached import program_of, regions
from tvm_mxplan.pipeline import Given, compilation
from tvm_mxplan.testing import zoo

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "scripts"))
from _bench.rounded import StandIn

SHORT = "bfloat16"


class Library(StandIn):
    """Has kinds of steps that it does not run in bfloat16, since they were found to be wrong."""

    def __init__(self) -> None:
        self.refused: set[str] = set()

    def describe(self, program: ir.Program) -> Description:
        found = super().describe(program)
        steps = tuple(
            replace(info, error="its kernel is wrong") if self._refuses(program, step) else info
            for info, step in zip(found.steps, program.steps, strict=True)
        )
        return replace(found, steps=steps)

    def _refuses(self, program: ir.Program, step: ir.Step) -> bool:
        types = {program.values[operand.value].dtype for operand in step.operands}
        return step.kind in self.refused and SHORT in types


class Verifier:
    """Finds that some kinds of steps are wrong in bfloat16, one at a time."""

    def __init__(self, *wrong: str) -> None:
        self.left = list(wrong)
        self.seen: list[set[str]] = []

    def refuse_known(self, backend: Backend) -> None:
        pass

    def wrong(self, backend: Library, programs: Sequence[ir.Program]) -> Mapping[str, Refusal]:
        (program,) = programs
        self.seen.append(in_short(program))
        if not self.left:
            return {}
        kind = self.left.pop(0)
        assert kind in self.seen[-1], "what is refused ran"
        backend.refused.add(kind)
        return {program.name: Refusal(kind, kind, "text", "code", "3 elements differ")}


def in_short(program: ir.Program) -> set[str]:
    """Kinds of steps that read bfloat16, casts left out."""
    return {
        step.kind
        for step in program.steps
        if program.values[step.operand("src")].dtype == SHORT and step.kind != "reorder"
    }


@pytest.mark.slow
@pytest.mark.parametrize("precision", ["bf16", "auto"])
def test_a_step_whose_kernels_are_refused_is_in_float32_and_the_others_are_not(precision: str) -> None:
    library, verifier = Library(), Verifier("pooling", "convolution")
    options = Options(precision=precision, max_relative_error=0.5)
    given = Given(machine=default_rates(), verifier=verifier)  # type: ignore[arg-type]
    made = compilation([library], options, tvm.target.Target("llvm"), given)
    mod = made.run(import_model(zoo.load(zoo.TINY), None, ""), last="memory")
    (program,) = (program_of(function) for _, function in regions(mod, library.name))
    assert len(verifier.seen) == 3 and verifier.seen[0] >= {"convolution", "pooling"}
    assert "pooling" not in verifier.seen[1] | verifier.seen[2] and "convolution" in verifier.seen[1]
    assert "convolution" not in verifier.seen[2]
    assert in_short(program) == verifier.seen[-1]
    convolutions = [step for step in program.steps if step.kind == "convolution"]
    assert convolutions and program.arena_bytes > 0
    decision = made.recorder.journal.precisions[program.name]
    assert decision.kept["conv2d_0"] == "its kernel is wrong"
    assert decision.counts.get(SHORT, 0) < len(program.steps) - len(convolutions)
