"""Every pattern on the GPU that is here, against float64; skipped where there is none.

``test_cudnn_case_answers.py`` holds the comparison without one.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import tvm
from case_answers import CASES, AnyCase, logical, misses, question_of, stored

from tvm_mxplan.byoc.backend import DeviceChoice
from tvm_mxplan.byoc.cudnn import library
from tvm_mxplan.byoc.cudnn.backend import Cudnn

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


@pytest.mark.parametrize("replays", [False, True], ids=["steps", "graph"])
@pytest.mark.parametrize("case, dtype", ASKED, ids=[f"{case.name} {dtype}" for case, dtype in ASKED])
def test_a_pattern_computes_what_float64_says(here: Path, case: AnyCase, dtype: str, replays: bool) -> None:
    choice = DeviceChoice(str(here), "", False, False, "none", replays)
    backend = Cudnn().for_device(choice).backend
    question = question_of(case, dtype)
    program, step = question.program, question.step
    (info,) = backend.describe(program).steps
    if info.error:
        pytest.skip(f"no engine: {info.error}")
    planned = replace(step, scratchpad_bytes=info.scratchpad_bytes, scratchpad_offset=0)
    planned = replace(planned, implementation=info.implementation)
    module = backend.create_module(
        "case", replace(program, steps=(planned,), arena_bytes=info.scratchpad_bytes), []
    )
    device = tvm.cuda()
    inputs = [
        tvm.runtime.tensor(stored(question.given[number], program.values[number].layout), device)
        for number in program.of_kind("input")
    ]
    outputs = []
    for number in program.of_kind("output"):
        value = program.values[number]
        shape = stored(np.empty(value.shape, bool), value.layout).shape  # type: ignore[arg-type]
        outputs.append(tvm.runtime.empty(shape, value.dtype, device))
    before = library.failures()
    for _ in range(3):
        module["case"](*inputs, *outputs)
        device.sync()
    found = {
        number: logical(tensor.numpy(), program.values[number].layout)
        for number, tensor in zip(program.of_kind("output"), outputs, strict=True)
    }
    assert misses(question, found) < 1.0
    assert library.failures() == before, "another plan ran, or none was kept"
