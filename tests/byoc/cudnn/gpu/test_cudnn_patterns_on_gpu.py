"""Every pattern, and each of its engines, on the GPU that is here; held against float64, skipped without.

``test_cudnn_case_answers.py`` holds the comparison without one.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tvm
from case_answers import CASES, AnyCase, Question, logical, misses, question_of, stored

from tvm_mxplan.byoc.backend import DeviceChoice
from tvm_mxplan.byoc.cudnn import functions, library
from tvm_mxplan.byoc.cudnn.backend import Cudnn
from tvm_mxplan.byoc.cudnn.plans.measured import chosen
from tvm_mxplan.byoc.cudnn.plans.record import engine_plan
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.errors import UnsupportedError

pytestmark = pytest.mark.gpu

ASKED = [
    (case, dtype)
    for case in CASES
    for dtype in (*case.types, *(("bfloat16",) if "float16" in case.types else ()))
]


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The properties of the GPU that is here."""
    path = tmp_path_factory.mktemp("device") / "gpu.json"
    path.write_text(json.dumps(library.device_properties()))
    return path


def answers(question: Question, module: Any, runs: int) -> dict[int, np.ndarray]:
    """The results of a region of one step, by value, after some runs."""
    program, device = question.program, tvm.cuda()
    inputs = [
        tvm.runtime.tensor(stored(question.given[number], program.values[number].layout), device)
        for number in program.of_kind("input")
    ]
    outputs = []
    for number in program.of_kind("output"):
        value = program.values[number]
        shape = stored(np.empty(value.shape, bool), value.layout).shape  # type: ignore[arg-type]
        outputs.append(tvm.runtime.empty(shape, value.dtype, device))
    for _ in range(runs):
        module["case"](*inputs, *outputs)
        device.sync()
    return {
        number: logical(tensor.numpy(), program.values[number].layout)
        for number, tensor in zip(program.of_kind("output"), outputs, strict=True)
    }


def on(here: Path, replays: bool = False) -> Cudnn:
    backend = Cudnn().for_device(DeviceChoice(str(here), "", False, False, "none", replays)).backend
    assert isinstance(backend, Cudnn)
    return backend


def with_workspace(program: ir.Program, engine: str, workspace: int, prepared: bytes = b"") -> ir.Program:
    """A program of one step, decided."""
    (step,) = program.steps
    step = replace(step, implementation=engine, scratchpad_bytes=workspace, scratchpad_offset=0)
    return replace(program, steps=(replace(step, prepared=prepared),), arena_bytes=workspace)


@pytest.mark.parametrize("replays", [False, True], ids=["steps", "graph"])
@pytest.mark.parametrize("case, dtype", ASKED, ids=[f"{case.name} {dtype}" for case, dtype in ASKED])
def test_a_pattern_computes_what_float64_says(here: Path, case: AnyCase, dtype: str, replays: bool) -> None:
    backend, question = on(here, replays), question_of(case, dtype)
    (info,) = backend.describe(question.program).steps
    if info.error:
        pytest.skip(f"no engine: {info.error}")
    planned = with_workspace(question.program, info.implementation, info.scratchpad_bytes)
    module = backend.create_module("case", planned, [])
    before = library.failures()
    assert misses(question, answers(question, module, 3)) < 1.0
    assert library.failures() == before, "another plan ran, or none was kept"


@pytest.mark.parametrize("case, dtype", ASKED, ids=[f"{case.name} {dtype}" for case, dtype in ASKED])
def test_every_engine_computes_what_float64_says(here: Path, case: AnyCase, dtype: str) -> None:
    """Those that engines by times are chosen from."""
    plans, question = on(here).plans, question_of(case, dtype)
    program, step = question.program, question.step
    if functions.info(program, step) is not None:
        pytest.skip("a function of cuDNN's, which has no engines")
    answer = plans.candidates(plans.descriptor(program, step), program.values[step.dst].dtype)
    made = [one["name"] for one in answer.get("engines", ()) if "plan" in one]
    if not made:
        pytest.skip(f"no engine: {answer['error']}")
    wrong = {}
    for name in dict.fromkeys(made):
        plan = engine_plan(chosen(answer, name))
        planned = with_workspace(program, name, plan.workspace, plans.record_of([plan]))
        try:
            missed = misses(question, answers(question, library.create_module("case", planned), 1))
        except UnsupportedError:
            continue  # it does not run, and would not be chosen
        if not missed < 1.0:
            wrong[name] = missed
    assert not wrong
