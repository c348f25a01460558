"""Engines by times: measured once, kept with the device's facts, read again; who runs without a GPU is told.

cuDNN's planner and the times are played; tests/cpp/programs/cudnn_graphs.cc holds the loop that takes them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest
from cudnn_stand_in import DEVICES, StandIn, small_network

import tvm_mxplan
from tvm_mxplan.byoc.cudnn import library
from tvm_mxplan.byoc.cudnn.asked import AskedProcess, ProcessEndedError
from tvm_mxplan.byoc.cudnn.engine import CudnnEngine
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.errors import InvalidInputError, UnsupportedError
from tvm_mxplan.report.inspection import decoded_programs

TARGET = "cudnn, cuda"
NAMES = ("eng7_k1=2", "eng0", "eng31_k2=4")


class Clock:
    """Times plans by the names of their engines, which stand in the plans."""

    def __init__(self, **microseconds: float) -> None:
        self.microseconds = microseconds
        self.calls: list[Mapping[int, int]] = []
        self.deadly, self.survived = "", True
        """An engine that takes the GPU from those behind it, or the process from all."""

    def __call__(
        self, record: bytes, sizes: Mapping[int, int], warm_up: int, runs: int, rounds: int
    ) -> list[tuple[list[float], str]]:
        self.calls.append(sizes)
        assert warm_up > 0 and runs > 0
        found: list[tuple[list[float], str]] = []
        lost = False
        for name in NAMES:
            if name.encode() not in record:
                continue
            time = self.microseconds.get(name.partition("_")[0], 10.0)
            lost = lost or name == self.deadly
            if lost and not self.survived:
                raise ProcessEndedError("cuDNN's stopwatch ended (signal 11) while it was asked")
            failed = lost or time <= 0
            found.append(([], "cudnnBackendExecute: it fails") if failed else ([time] * rounds, ""))
        return found


@pytest.fixture
def clock(planner: StandIn, monkeypatch: pytest.MonkeyPatch) -> Clock:
    planner.names = NAMES
    made = Clock(eng7=30.0, eng0=20.0, eng31=5.0)
    monkeypatch.setattr(library, "time_plans", made)
    monkeypatch.setattr(CudnnEngine, "absent", lambda _: "")
    return made


def engines(ex: tvm_mxplan.Executable) -> set[str]:
    """Those of all steps that have plans."""
    steps = [step for program in decoded_programs(ex.module) for step in program.steps if step.prepared]
    assert len(steps) > 3
    for step in steps:
        assert library.check_plan(step.prepared) == step.implementation
    return {step.implementation for step in steps}


def compiled(tmp_path: Path, device: str = "h200", **options: object) -> tvm_mxplan.Executable:
    given = {"cache": "disabled", "device_properties": DEVICES / f"{device}.json", **options}
    return tvm_mxplan.compile(small_network(), TARGET, options=given)


def test_heuristics_choose_without_times(clock: Clock, tmp_path: Path) -> None:
    assert engines(compiled(tmp_path)) == {"eng7_k1=2"} and not clock.calls


def test_the_fastest_engine_is_taken(clock: Clock, planner: StandIn, tmp_path: Path) -> None:
    ex = compiled(tmp_path, tune="measure")
    assert engines(ex) == {"eng31_k2=4"}
    graphs = {
        json.dumps(one["nodes"]) + json.dumps(one["tensors"])
        for one in planner.requests
        if "candidates" in one
    }
    assert len(clock.calls) == len(graphs), "each graph is measured once"
    assert ex.report.tuning.measured == {"engines": len(clock.calls)}
    assert "measured" in str(ex.report.tuning)


def test_bytes_are_those_that_plans_touch(clock: Clock, planner: StandIn, tmp_path: Path) -> None:
    compiled(tmp_path, tune="measure")
    asked = [one for one in planner.requests if "candidates" in one]
    for request, sizes in zip(asked, clock.calls, strict=True):
        stored = {one["uid"]: one for one in request["tensors"] if "number" not in one and not one["virtual"]}
        assert sizes.keys() == stored.keys()
        for uid, one in stored.items():
            count = 1
            for extent in one["dim"]:
                count *= extent
            assert sizes[uid] == 2 * count, "float16 without gaps"


def test_a_plan_that_fails_is_not_taken(clock: Clock, tmp_path: Path) -> None:
    clock.microseconds = {"eng7": 30.0, "eng0": 20.0, "eng31": 0.0}
    assert engines(compiled(tmp_path, tune="measure")) == {"eng0"}


@pytest.mark.parametrize("survived", [True, False])
@pytest.mark.parametrize("deadly, left", [("eng7_k1=2", "eng31_k2=4"), ("eng31_k2=4", "eng0")])
def test_a_plan_that_takes_the_gpu_from_others_is_out_alone(
    clock: Clock, tmp_path: Path, deadly: str, left: str, survived: bool
) -> None:
    clock.deadly, clock.survived = deadly, survived
    assert engines(compiled(tmp_path, tune="measure")) == {left}


def test_where_all_plans_fail_heuristics_choose(clock: Clock, tmp_path: Path) -> None:
    clock.microseconds = {"eng7": 0.0, "eng0": 0.0, "eng31": 0.0}
    assert engines(compiled(tmp_path, tune="measure")) == {"eng7_k1=2"}


def test_records_are_read_again_without_a_gpu(
    clock: Clock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    records, count = tmp_path / "records", len(clock.calls)
    options = {"cache": "disabled", "device_properties": str(DEVICES / "h200.json")}
    ex = tvm_mxplan.tune(small_network(), records, TARGET, options=options)
    assert engines(ex) == {"eng31_k2=4"} and len(clock.calls) > count
    lines = [json.loads(line) for line in records.read_text().splitlines()]
    assert "NVIDIA H200" in lines[0]["machine"]["GPU"] and "CPU" not in lines[0]["machine"]
    assert {line["kind"] for line in lines[1:]} == {"engine"}
    count = len(clock.calls)
    monkeypatch.setattr(CudnnEngine, "absent", lambda _: "no GPU is here")
    again = compiled(tmp_path, tuning_records=records)
    assert engines(again) == {"eng31_k2=4"} and len(clock.calls) == count
    assert again.report.tuning.known == {"engines": len(lines) - 1}


def test_records_of_another_gpu_are_refused(clock: Clock, tmp_path: Path) -> None:
    records = tmp_path / "records"
    options = {"cache": "disabled", "device_properties": str(DEVICES / "h200.json")}
    tvm_mxplan.tune(small_network(), records, TARGET, options=options)
    with pytest.raises(InvalidInputError, match="measured with GPU"):
        compiled(tmp_path, "a100", tuning_records=records)


def test_a_spent_budget_leaves_the_rest_to_heuristics(clock: Clock, tmp_path: Path) -> None:
    ex = compiled(tmp_path, tune="measure", tune_trials=1)
    assert len(clock.calls) == 1 and engines(ex) == {"eng31_k2=4", "eng7_k1=2"}
    assert ex.report.tuning.modelled["engines"] > 0


def test_without_a_gpu_one_line_says_so(
    planner: StandIn, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(CudnnEngine, "absent", lambda _: "no GPU is here (the driver knows none)")
    with pytest.raises(UnsupportedError, match=r"tune=measure: no GPU is here .*tuning_records") as told:
        compiled(tmp_path, tune="measure")
    assert "\n" not in str(told.value)
    with pytest.raises(UnsupportedError, match="engines of a GPU are compared by their times"):
        monkeypatch.setattr(CudnnEngine, "absent", lambda _: "")
        compiled(tmp_path, tune="measure", tune_for="memory")


def test_steps_may_be_kept_as_a_graph(planner: StandIn, tmp_path: Path) -> None:
    """The option is in the records of all plans, where the runtime reads it."""

    def flags(ex: tvm_mxplan.Executable) -> set[int]:
        steps = [step for program in decoded_programs(ex.module) for step in program.steps]
        assert not all(isinstance(step.attrs, ir.Reorder) for step in steps)
        return {step.prepared[56] for step in steps if step.prepared}

    assert flags(compiled(tmp_path)) == {0}
    assert flags(compiled(tmp_path, cuda_graphs=True)) == {1}


@pytest.mark.slow
def test_plans_are_timed_in_a_process_of_their_own() -> None:
    """Without a GPU it has nothing to time; the question is answered, and so is the next one."""
    process = library._stopwatch()
    for _ in range(2):
        with pytest.raises(UnsupportedError, match="execution plan") as told:
            library.time_plans(b"no record", {1: 4}, 1, 2, 3)
        assert not isinstance(told.value, ProcessEndedError)
    assert process._process is None, "the GPU may be lost to one that failed"


def test_a_stopwatch_that_is_not_asked_ends() -> None:
    script = "from tvm_mxplan.byoc.cudnn import stopwatch; stopwatch.IDLE_SECONDS = 0.2; stopwatch.main()"
    process = AskedProcess("stopwatch", ["-c", script], "install this")
    try:
        first = process.hello["version"]
        began = process._process
        assert began is not None and began.wait(20) == 0
        assert process.hello["version"] == first and process._process is not began
    finally:
        process.close()
