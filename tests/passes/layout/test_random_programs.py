"""Random programs with slices: planned, run under watch, and compared with numpy, in every layout."""

from __future__ import annotations

import numpy as np
import pytest
import tvm_ffi
from random_programs import RandomProgram

from tvm_mxplan.byoc.onednn import library
from tvm_mxplan.byoc.onednn.backend import OneDNN
from tvm_mxplan.byoc.onednn.rewrites.fusion import fuse
from tvm_mxplan.core.allocation import validate
from tvm_mxplan.core.policies import Policy
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.passes.layout.infer_layouts import infer_layouts
from tvm_mxplan.passes.memory.plan_memory import plan_memory
from tvm_mxplan.report.arena import planned_arena
from tvm_mxplan.testing.reference import relative_l2

SEEDS = range(60)
POLICIES: tuple[Policy, ...] = ("plain", "blocked", "cost")


def planned(case: RandomProgram, policy: Policy) -> tuple[ir.Program, list[np.ndarray]]:
    program, constants, _ = fuse(case.program, case.builder.constants)
    return plan_memory(infer_layouts(program, OneDNN(), policy).program, OneDNN()).program, constants


def sliced(program: ir.Program) -> int:
    return sum(isinstance(step.attrs, ir.Slice) for step in program.steps)


@pytest.fixture
def watched():
    library.set_debug(True)
    yield
    library.set_debug(False)


@pytest.mark.parametrize("seed", SEEDS)
def test_numbers_and_memory(seed, watched):
    case = RandomProgram(seed)
    program, constants = planned(case, POLICIES[seed % len(POLICIES)])
    arena = planned_arena(program)
    assert validate(arena.problem, arena.plan) == []
    outputs = [np.full(array.shape, np.nan, "float32") for array in case.expected]
    module = library.create_module("region", program, [tvm_ffi.from_dlpack(array) for array in constants])
    module["region"](*[tvm_ffi.from_dlpack(array) for array in (*case.inputs, *outputs)])
    for actual, expected in zip(outputs, case.expected, strict=True):
        assert relative_l2(actual, expected) <= 1e-5


@pytest.mark.slow
def test_the_programs_hold_views_and_copies():
    """The test above rests on this."""
    cases = [(RandomProgram(seed), POLICIES[seed % len(POLICIES)]) for seed in SEEDS]
    before = sum(sliced(case.program) for case, _ in cases)
    copies = sum(sliced(planned(case, policy)[0]) for case, policy in cases)
    assert before > 100
    assert 20 < copies < before - 20
