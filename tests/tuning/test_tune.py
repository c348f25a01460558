"""Tuning from end to end: what is measured, kept, replayed, and compared."""

from __future__ import annotations

import base64
import contextlib
import io
import shutil
import signal
import subprocess
import sys
import textwrap
import zlib
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest

import tvm_mxplan
from tvm_mxplan import InvalidInputError, Report, UnsupportedError
from tvm_mxplan.core.program import codec
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.passes.layout.measure import StepTimer
from tvm_mxplan.report.inspection import decoded_programs
from tvm_mxplan.testing import zoo
from tvm_mxplan.testing.reference import onnxruntime_outputs, worst_relative_l2
from tvm_mxplan.tuning import place
from tvm_mxplan.tuning.compare import Comparison
from tvm_mxplan.tuning.progress import Progress
from tvm_mxplan.tuning.record_file import RecordFile

MEASURE = {"tune": "measure", "tune_seconds": 600.0}
FEW_PLANS = {**MEASURE, "layouts": "channels_last"}
FEW_TRIALS = {**FEW_PLANS, "tune_trials": 8}


@dataclass(frozen=True)
class Measured:
    """The tiny model, for which all was measured once.

    Attributes
    ----------
    caches, records : the cache folder, and the file of records, that it left.
    joined : names of the candidates that were compared, plans and ways to dispatch.
    events : progress as it was told.
    said : all that was printed meanwhile.
    """

    executable: tvm_mxplan.Executable
    caches: Path
    records: Path
    joined: list[str]
    events: list[Progress]
    said: str


@pytest.fixture(scope="module")
def measured(tiny, tmp_path_factory) -> Measured:
    folder = tmp_path_factory.mktemp("measured")
    caches, records = folder / "cache", folder / "r.jsonl"
    joined, events, said = [], [], io.StringIO()
    join = Comparison.join

    def noted(self, name, sample):
        joined.append(name)
        join(self, name, sample)

    with (
        pytest.MonkeyPatch.context() as patch,
        contextlib.redirect_stdout(said),
        contextlib.redirect_stderr(said),
    ):
        patch.setenv("TVM_MXPLAN_CACHE_DIR", str(caches))
        patch.setattr(Comparison, "join", noted)
        ex = tvm_mxplan.compile(tiny, options=MEASURE, progress=events.append)
        # What the folder knows is not measured again.
        tvm_mxplan.tune(tiny, records, options=MEASURE)
    return Measured(ex, caches, records, joined, events, said.getvalue())


@pytest.fixture
def known(measured, cache_folder) -> Measured:
    """This test's cache folder holds what was measured."""
    shutil.copytree(measured.caches, cache_folder)
    return measured


@pytest.fixture
def no_timer(monkeypatch):
    """From when it is called on, no operator and no plan may be timed."""

    def forbid() -> None:
        monkeypatch.setattr(StepTimer, "_time", lambda *_: pytest.fail("an operator was measured"))
        monkeypatch.setattr(Comparison, "join", lambda *_: pytest.fail("a plan was measured"))

    return forbid


@pytest.mark.slow
def test_operators_groups_and_plans_are_measured(tiny, measured):
    ex = measured.executable
    report = ex.report.tuning
    assert report.measured["operators"] > 5
    assert report.measured["groups"] > 5
    assert report.measured["plans"] >= 2
    assert report.modelled == {}
    assert report.chosen == report.plans[0][0]
    assert report.plans[0][1] <= min(value for _, value in report.plans[:2])
    inputs = zoo.random_inputs(tiny)
    outputs = [tensor.numpy() for tensor in ex(**inputs)]
    assert worst_relative_l2(outputs, onnxruntime_outputs(tiny, inputs)) < 1e-5
    assert Report.from_json(ex.report.to_json()) == ex.report
    assert f"{report.chosen}  <- used" in str(ex.report)


def test_equal_plans_are_timed_once(measured):
    report = measured.executable.report.tuning
    plans = [name for name in measured.joined if name.startswith("layouts=")]
    assert 2 <= len(plans) == report.measured["plans"] < len(report.plans)


def test_a_second_compile_measures_nothing_and_is_the_same(tiny, known, no_timer):
    first = known.executable
    no_timer()
    second = tvm_mxplan.compile(tiny, options={**MEASURE, "tune_seconds": 7.0})
    assert decoded_programs(second.module) == decoded_programs(first.module)
    assert sum(second.report.tuning.measured.values()) == 0
    assert second.report.tuning.plans == first.report.tuning.plans
    x = zoo.random_inputs(tiny)
    np.testing.assert_array_equal(first(**x)[0].numpy(), second(**x)[0].numpy())


@pytest.mark.slow
def test_the_best_plan_is_what_is_used(tiny, known, monkeypatch, no_timer):
    """The plan that its sampler makes the fastest is compiled, and replayed."""
    join = Comparison.join

    def biased(self, name, _sample):
        return join(self, name, lambda: 1.0 if "blocked" in name else 1e6)

    monkeypatch.setattr(Comparison, "join", biased)
    direct = {"convolutions": "direct"}
    ex = tvm_mxplan.compile(tiny, options={**MEASURE, **direct})
    assert ex.report.tuning.chosen == "layouts=blocked convolutions=direct"
    no_timer()
    again = tvm_mxplan.compile(tiny, options={**MEASURE, **direct})
    found, replayed, blocked, other = (
        decoded_programs(e.module)
        for e in (
            ex,
            again,
            tvm_mxplan.compile(tiny, options={"layouts": "blocked", **direct}),
            tvm_mxplan.compile(tiny, options={"layouts": "channels_last", **direct}),
        )
    )
    assert found == replayed == blocked != other


def test_records_are_taken_elsewhere(tiny, measured, cache_folder, no_timer):
    assert not cache_folder.exists()
    first = measured.executable
    no_timer()
    for options in ({}, MEASURE):
        ex = tvm_mxplan.compile(tiny, options={**options, "tuning_records": measured.records})
        assert decoded_programs(ex.module) == decoded_programs(first.module)
        assert ex.report.tuning.chosen == first.report.tuning.chosen


@pytest.mark.slow
def test_changed_plans_in_records_are_refused(tiny, tmp_path):
    """A plan is a region program; one that computes something else is named, and the plan made anew."""
    path = tmp_path / "r.jsonl"
    tvm_mxplan.tune(tiny, path, options={**FEW_PLANS, "tune_for": "memory"})
    records = RecordFile(path, place.machine())
    changed = []
    for record in records.load()[0]:
        if record.kind == "plan":
            decided = tuple((key, _with_abs(text)) for key, text in record.plan.decided)
            assert decided != record.plan.decided
            record = replace(record, plan=replace(record.plan, decided=decided))
            changed.append(key for key, _ in decided)
        records.append(replace(record, repeats=record.repeats + 1))
    assert changed
    options = {"layouts": "channels_last", "tune_for": "memory", "tuning_records": path, "cache": "disabled"}
    with pytest.warns(RuntimeWarning, match=r"r\.jsonl: region mxplan_onednn_0: the layouts that were kept"):
        ex = tvm_mxplan.compile(tiny, options=options)
    inputs = zoo.random_inputs(tiny)
    outputs = [tensor.numpy() for tensor in ex(**inputs)]
    assert ex.report.regions
    assert worst_relative_l2(outputs, onnxruntime_outputs(tiny, inputs)) < 1e-5


def _with_abs(text: str) -> str:
    """A decided program with absolute values in place of its relus."""
    program = codec.decode(zlib.decompress(base64.b64decode(text)))
    steps = [
        replace(step, post_ops=tuple(_abs(post_op) for post_op in step.post_ops)) for step in program.steps
    ]
    program = replace(program, steps=tuple(steps))
    return base64.b64encode(zlib.compress(codec.encode(program))).decode()


def _abs(post_op: ir.PostOp) -> ir.PostOp:
    relu = isinstance(post_op, ir.EltwisePostOp) and post_op.algorithm == "relu"
    return replace(post_op, algorithm="abs") if relu else post_op


def test_records_of_another_model_help_with_nothing_measured(tiny, measured, no_timer):
    """With tune=model what records know counts, and the rest is the model's."""
    no_timer()
    options = {"tuning_records": measured.records, "memory": "no_reuse"}
    report = tvm_mxplan.compile(tiny, options=options).report.tuning
    assert report.plans == ()
    assert report.known["operators"] > 5
    assert report.measured == {}


def test_another_machines_records_are_refused_by_name(tiny, measured, tmp_path, monkeypatch):
    shutil.copy(measured.records, tmp_path / "r.jsonl")
    facts = place.machine()
    monkeypatch.setattr(place, "machine", lambda: {**facts, "instruction set": "OTHER"})
    refusal = r"r\.jsonl: measured with instruction set .*, here it is 'OTHER'"
    for options in ({}, MEASURE):
        with pytest.raises(InvalidInputError, match=refusal):
            tvm_mxplan.compile(tiny, options={**options, "tuning_records": tmp_path / "r.jsonl"})
    with pytest.raises(InvalidInputError, match=refusal):
        tvm_mxplan.tune(tiny, tmp_path / "r.jsonl")


def test_a_damaged_store_costs_a_note(tiny, known, cache_folder, no_timer):
    (path,) = (cache_folder / "tuning").iterdir()
    lines = path.read_text().splitlines(keepends=True)
    assert len(lines) > 10
    step = next(at for at, line in enumerate(lines) if '"kind": "step"' in line)
    path.write_text("".join([*lines[:step], lines[step][:-9] + "\n", *lines[step + 1 :]]))
    no_timer()
    report = tvm_mxplan.compile(tiny, options=MEASURE).report.tuning
    assert any("1 damaged line(s)" in note for note in report.notes)
    path.write_text("nonsense\n")
    report = tvm_mxplan.compile(tiny, options={"tuning_records": None}).report.tuning
    assert report is None


@pytest.mark.slow
def test_a_store_that_cannot_be_used_costs_a_note(tiny, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("TVM_MXPLAN_CACHE_DIR", str(tmp_path / "file"))
    report = tvm_mxplan.compile(tiny, options=FEW_TRIALS).report.tuning
    assert report.measured["operators"] > 0
    assert any("records are not kept" in note for note in report.notes)


@pytest.mark.slow
def test_cache_disabled_touches_no_disk(tiny, cache_folder):
    report = tvm_mxplan.compile(tiny, options={**FEW_TRIALS, "cache": "disabled"}).report.tuning
    assert report.measured["operators"] > 0
    assert not cache_folder.exists()


@pytest.mark.slow
def test_estimates_are_not_called_measured(tiny, tmp_path):
    """The model's costs stand in where the budget was spent, and say so."""
    path = tmp_path / "r.jsonl"
    report = tvm_mxplan.tune(tiny, path, options={**MEASURE, "tune_trials": 6}).report.tuning
    assert report.measured["operators"] > 0 < report.modelled["operators"]
    report = tvm_mxplan.compile(tiny, options={"tuning_records": path, "memory": "no_reuse"}).report
    assert report.tuning.plans == ()  # else the fastest layouts may be ones that no cost was asked for
    sources = [one.source for row in report.dispatch.decisions for one in row.candidates if one.cost_us]
    assert {"measured", "model"} <= set(sources), sources


@pytest.mark.slow
def test_budgets(tiny):
    report = tvm_mxplan.compile(tiny, options={**FEW_PLANS, "tune_trials": 4}).report.tuning
    assert report.measured == {"dispatch": 1, "operators": 2, "plans": 1}
    assert report.modelled["operators"] > 0
    assert any("budget" in note for note in report.notes)
    assert len({value for _, value in report.plans}) == 1
    again = tvm_mxplan.compile(tiny, options={**FEW_PLANS, "tune_trials": 100}).report.tuning
    assert again.known["operators"] == 2
    assert again.measured["plans"] > 1  # a comparison that was cut short is no answer


def test_progress_is_told_and_quiet_without(measured):
    events = measured.events
    assert {event.stage for event in events} == {"dispatch", "operators", "groups", "plans"}
    assert [event.measured for event in events] == list(range(1, len(events) + 1))
    assert all(event.best for event in events if event.stage in ("dispatch", "plans"))
    assert "layouts=" not in measured.said


@pytest.mark.slow
@pytest.mark.parametrize("options", [FEW_PLANS, {**FEW_PLANS, "cache": "disabled"}])
def test_a_killed_run_goes_on_where_it_stopped(tiny, tmp_path, monkeypatch, no_timer, options):
    """SIGKILL amid the measurements; what was kept is not measured again."""
    script = textwrap.dedent(f"""
        import sys, tvm_mxplan
        from tvm_mxplan.core.program import codec
        from tvm_mxplan.passes.layout import measure
        from tvm_mxplan.testing import zoo
        time = measure.StepTimer._time
        def noted(self, question):
            print(codec.encode(question).hex(), flush=True)
            return time(self, question)
        measure.StepTimer._time = noted
        tvm_mxplan.tune(zoo.load("tiny"), sys.argv[1], options={options!r},
                        progress=lambda event: event.stage == "dispatch" or print("kept", flush=True))
    """)
    path = tmp_path / "r.jsonl"
    with subprocess.Popen(
        [sys.executable, "-c", script, str(path)], stdout=subprocess.PIPE, text=True
    ) as process:
        first = []
        for line in process.stdout:
            first.append(line.strip())
            if first.count("kept") == 8:
                process.send_signal(signal.SIGKILL)
                break
    assert process.returncode == -signal.SIGKILL
    kept = [line for line in first if line != "kept"][:8]
    assert len(set(kept)) == 8
    measured = []
    time = StepTimer._time

    def noted(self, question):
        measured.append(codec.encode(question).hex())
        return time(self, question)

    monkeypatch.setattr(StepTimer, "_time", noted)
    tvm_mxplan.tune(tiny, path, options=options)
    assert len(set(measured)) == len(measured) > 5
    assert not set(kept) & set(measured)
    no_timer()
    tvm_mxplan.tune(tiny, path, options=options)


def test_what_was_loaded_is_not_tuned(tiny, known, tmp_path, no_timer, monkeypatch):
    first = tvm_mxplan.compile(tiny, options=MEASURE)
    tvm_mxplan.save_cache(tmp_path / "c", "mkldnn")
    monkeypatch.setenv("TVM_MXPLAN_CACHE_DIR", str(tmp_path / "other"))
    assert tvm_mxplan.load_cache(tmp_path / "c", "mkldnn") >= 1
    no_timer()
    second = tvm_mxplan.compile(tiny, options=MEASURE)
    assert decoded_programs(second.module) == decoded_programs(first.module)
    assert second.report.tuning.notes == ("the choices were loaded",)


def test_symbolic_shapes_are_measured_by_operator_alone():
    model = zoo.load("tiny", batch="n")
    report = tvm_mxplan.compile(model, options=FEW_TRIALS).report.tuning
    assert report.measured["operators"] > 0
    assert "plans" not in report.measured
    assert any("fixed shapes" in note for note in report.notes)


# --- strategies --------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("strategy", ["memory", "energy"])
def test_strategies_that_count_bytes_time_nothing(tiny, strategy, no_timer):
    no_timer()
    report = tvm_mxplan.compile(tiny, options={**MEASURE, "tune_for": strategy}).report.tuning
    values = dict(report.plans)
    assert values[report.chosen] == min(values.values()) < max(values.values())
    again = tvm_mxplan.compile(tiny, options={**MEASURE, "tune_for": strategy}).report.tuning
    assert (again.plans, sum(again.measured.values())) == (report.plans, 0)


@pytest.mark.slow
def test_memory_is_no_more_than_of_any_policy(tiny):
    chosen = tvm_mxplan.compile(tiny, options={**MEASURE, "tune_for": "memory"})
    values = dict(chosen.report.tuning.plans)
    (region,) = chosen.report.regions
    assert region.arena_bytes < values[chosen.report.tuning.chosen]
    for layouts in ("channels_last", "blocked"):
        assert values[chosen.report.tuning.chosen] <= values[f"layouts={layouts} convolutions=direct"]


@pytest.mark.slow
def test_throughput_is_measured_with_one_thread(tiny):
    one = tvm_mxplan.compile(tiny, options={**FEW_PLANS, "tune_for": "throughput"})
    assert one.report.tuning.unit == "us per answer"
    assert one.report.tuning.measured["plans"] >= 2
    assert one.report.tuning.measured["operators"] > 5


def test_joules_need_counters(tiny, monkeypatch, tmp_path):
    monkeypatch.setattr("tvm_mxplan.tuning.values.POWERCAP", tmp_path)
    with pytest.raises(UnsupportedError, match="no energy counters"):
        tvm_mxplan.compile(tiny, options={**MEASURE, "tune_for": "joules"})
