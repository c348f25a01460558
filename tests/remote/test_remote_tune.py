"""Tuning on another machine: its records, used there without measuring; its instruction set."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import rpc_processes
from rpc_processes import KEY

import tvm_mxplan
from tvm_mxplan import Remote, UnsupportedError
from tvm_mxplan.testing import zoo
from tvm_mxplan.testing.reference import onnxruntime_outputs, worst_relative_l2
from tvm_mxplan.tuning import place, tune_dispatch

OTHER = {"OMP_NUM_THREADS": "1", "ONEDNN_MAX_CPU_ISA": "SSE41"}
_OVER_THERE = """
import json, sys, numpy as np, tvm_mxplan
from tvm_mxplan.report.inspection import decoded_programs
from tvm_mxplan.testing import zoo
ex = tvm_mxplan.compile(zoo.load("tiny"), options={"tuning_records": sys.argv[1]})
tuned = tvm_mxplan.load(sys.argv[2])
np.savez(sys.argv[3], *[y.numpy() for y in tuned(**zoo.random_inputs(zoo.load("tiny")))])
report = ex.report.tuning
ours, theirs = ({p.name: p for p in decoded_programs(one.module)} for one in (ex, tuned))
same = ours == theirs and len(ours) > 0  # a library lists regions in an order of its own
print(json.dumps([report.measured, report.modelled, report.chosen, same]))
"""


@pytest.fixture(scope="module")
def tiny():
    return zoo.load("tiny")


@pytest.fixture
def nothing_here(monkeypatch):
    """Nothing may be timed in this process."""
    for name in ("time_alone", "sampler"):
        monkeypatch.setattr(place, name, lambda *_: pytest.fail("measured in this process"))


def over_there(records: Path, library: Path, folder: Path, environment: dict[str, str]) -> tuple[list, list]:
    """The report of a compile with the records on such a machine, and the tuned library's results there."""
    command = [sys.executable, "-c", _OVER_THERE, records, library, folder / "y.npz"]
    cache = {"TVM_MXPLAN_CACHE_DIR": str(folder / "elsewhere")}
    env = {**os.environ, **cache, **environment}
    done = subprocess.run(command, env=env, check=True, stdout=subprocess.PIPE, text=True)
    with np.load(folder / "y.npz") as file:
        return json.loads(done.stdout), [file[name] for name in file.files]


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


@pytest.mark.slow
def test_records_are_those_of_that_machine_and_used_there(tiny, pi, tmp_path, nothing_here):
    records, library = tmp_path / "records", tmp_path / "tiny.so"
    ex = tvm_mxplan.tune(tiny, records, remote=Remote(tracker=pi, key=KEY))
    report = ex.report.tuning
    assert report.measured["operators"] > 5
    assert report.measured["groups"] > 5
    assert report.measured["plans"] >= 2
    assert report.modelled == {}
    header, *rest = lines(records)
    assert header["machine"]["oneDNN threads"] == 1
    assert {record["kind"] for record in rest} >= {"step", "reorder", "plan"}
    assert all(record["value"] > 0 and record["repeats"] >= 4 for record in rest)
    ex.export(library)
    told, outputs = over_there(records, library, tmp_path, {"OMP_NUM_THREADS": "1"})
    assert told == [{}, {}, report.chosen, True]
    inputs = zoo.random_inputs(tiny)
    assert worst_relative_l2(outputs, onnxruntime_outputs(tiny, inputs)) < 1e-5


@pytest.mark.slow
def test_records_have_the_form_of_local_ones(tiny, pi, tmp_path, monkeypatch):
    """And answer the same questions."""
    monkeypatch.setattr(tune_dispatch, "CLEARLY", 0.0)  # plans for other operators are other questions
    options = {"convolutions": "direct"}
    tvm_mxplan.tune(tiny, tmp_path / "there", options=options, remote=Remote(tracker=pi, key=KEY))
    tvm_mxplan.tune(tiny, tmp_path / "here", options=options)
    there, here = lines(tmp_path / "there"), lines(tmp_path / "here")
    assert there[0]["machine"].keys() == here[0]["machine"].keys()
    fields = [{r["kind"]: sorted(r) for r in part[1:]} for part in (there, here)]
    assert fields[0] == fields[1]
    for kind, least in (("step", 6), ("plan", 1)):
        questions = [{r["digest"] for r in part[1:] if r["kind"] == kind} for part in (there, here)]
        assert len(questions[0] & questions[1]) >= least


@pytest.mark.slow
def test_what_is_known_is_not_measured_again(tiny, pi, tmp_path):
    remote = Remote(tracker=pi, key=KEY)
    first = tvm_mxplan.tune(tiny, tmp_path / "a", options={"tune_trials": 4}, remote=remote).report.tuning
    assert sum(first.measured.values()) == 4
    again = tvm_mxplan.tune(tiny, tmp_path / "a", options={"tune_trials": 4}, remote=remote).report.tuning
    assert again.known["operators"] == first.measured["operators"] == 2  # and a plan, and a kernel


@pytest.mark.slow
@pytest.mark.parametrize("strategy, unit", [("throughput", "us per answer"), ("memory", "bytes")])
def test_strategies(tiny, pi, tmp_path, strategy, unit, nothing_here):
    options = {"tune_for": strategy, "convolutions": "direct"}
    report = tvm_mxplan.tune(
        tiny, tmp_path / "r", options=options, remote=Remote(tracker=pi, key=KEY)
    ).report.tuning
    assert report.unit == unit
    assert report.measured["plans"] >= 2


@pytest.mark.slow
def test_another_instruction_set(tiny, tmp_path, nothing_here):
    """Plans are made of what oneDNN would do over there, and run there as they were planned."""
    records, library = tmp_path / "records", tmp_path / "tiny.so"
    options = {"deterministic": True}
    with rpc_processes.server(**OTHER) as (address, _):
        ex = tvm_mxplan.tune(tiny, records, options=options, remote=Remote(server=address, key=KEY))
    isa = lines(records)[0]["machine"]["instruction set"]
    assert "sse41" in isa
    assert ex.report.determinism.code["instruction set"] == isa
    implementations = " ".join(step.implementation for region in ex.report.regions for step in region.steps)
    assert "sse41" in implementations
    assert "avx" not in implementations
    with pytest.raises(UnsupportedError, match=f"where the instruction set is {isa}, not .* run it there"):
        ex(**zoo.random_inputs(tiny))
    ex.export(library)
    inputs = zoo.random_inputs(tiny)
    told, outputs = over_there(records, library, tmp_path, OTHER)
    assert told == [{}, {}, ex.report.tuning.chosen, True]
    assert worst_relative_l2(outputs, onnxruntime_outputs(tiny, inputs)) < 1e-5
