"""Kinds of operators in TVM's own kernels, tried as whole plans: what is tried, taken, told and replayed."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import tvm_mxplan
from tvm_mxplan import Report
from tvm_mxplan.report.inspection import decoded_programs
from tvm_mxplan.testing import zoo
from tvm_mxplan.testing.reference import onnxruntime_outputs, worst_relative_l2
from tvm_mxplan.tuning.compare import Comparison
from tvm_mxplan.tuning.records import PlanResult
from tvm_mxplan.tuning.tune_dispatch import AS_PREFERRED, result_of, trials_of

ALL = {"tune": "measure", "layouts": "channels_last", "tune_seconds": 600.0}
MEASURE = {**ALL, "tune_trials": 48}


@pytest.fixture
def worth(monkeypatch) -> Callable[..., list[str]]:
    """Plans are worth what their names say, 100 for all others; gives the names of those that are built."""

    def set_worth(**values: float) -> list[str]:
        joined: list[str] = []
        join = Comparison.join

        def noted(self, name: str, _sample: Callable[[], float]) -> None:
            joined.append(name)
            value = min((values[kind] for kind in values if f"{kind}=llvm" in name), default=100.0)
            join(self, name, lambda: value)

        monkeypatch.setattr(Comparison, "join", noted)
        return joined

    return set_worth


def tried(joined: list[str]) -> list[str]:
    return [name for name in joined if name == AS_PREFERRED or "=llvm" in name]


@pytest.mark.slow
def test_the_faster_kernels_are_taken(tiny, worth):
    joined = worth(softmax=50.0)
    ex = tvm_mxplan.compile(tiny, options=MEASURE)
    assert tried(joined)[0] == AS_PREFERRED
    assert {"softmax=llvm", "mean=llvm"} <= set(joined)
    softmax = ex.report.dispatch["softmax_0"]
    assert softmax.chosen.backend == "llvm"
    outs = {one.backend: one.out for one in softmax.candidates}
    assert outs.keys() == {"onednn", "host", "llvm"} and not outs["llvm"]
    assert outs["onednn"] == "whole plan with softmax in llvm measured 0.500 times as long"
    assert [fallback.operator for fallback in ex.report.fallbacks] == ["relax.nn.softmax"]
    inputs = zoo.random_inputs(tiny)
    outputs = [tensor.numpy() for tensor in ex(**inputs)]
    assert worst_relative_l2(outputs, onnxruntime_outputs(tiny, inputs)) < 1e-5
    assert ex.report.tuning.dispatch[0] == ("softmax=llvm", 50.0)
    assert ex.report.tuning.measured["dispatch"] == len(tried(joined)) - 1
    assert "softmax=llvm  <- used" in str(ex.report.tuning)
    assert Report.from_json(ex.report.to_json()) == ex.report


@pytest.mark.slow
def test_slower_kernels_are_not_and_the_report_says_so(tiny, worth):
    worth(softmax=99.0, mean=200.0)
    report = tvm_mxplan.compile(tiny, options=MEASURE).report
    assert {decision.chosen.backend for decision in report.dispatch} == {"onednn"}
    reason = {
        name: next(one.out for one in report.dispatch[name].candidates if one.backend == "llvm")
        for name in ("softmax_0", "mean_0", "conv2d_0")
    }
    assert reason["softmax_0"] == "whole plan with softmax in llvm measured 0.990 times as long"
    assert reason["mean_0"] == "whole plan with mean in llvm measured 2.000 times as long"
    assert reason["conv2d_0"] == "after onednn in the order of preference"


@pytest.mark.slow
def test_winners_are_tried_together(tiny, worth):
    joined = worth(softmax=60.0, mean=50.0)
    report = tvm_mxplan.compile(tiny, options=MEASURE).report
    assert "mean=llvm,softmax=llvm" in joined
    assert report.dispatch["mean_0"].chosen.backend == "llvm"


@pytest.mark.slow
def test_what_cuts_regions_or_computes_most_is_not_tried(tiny, worth):
    joined = worth()
    tvm_mxplan.compile(tiny, options=MEASURE)
    kinds = {name.partition("=")[0] for name in tried(joined)[1:]}
    assert "softmax" in kinds
    assert not kinds & {"conv2d", "matmul", "relu", "add", "multiply", "permute_dims"}


@pytest.mark.slow
def test_a_second_compile_builds_nothing_and_is_the_same(tiny, worth, tmp_path, monkeypatch):
    worth(softmax=50.0)
    first = tvm_mxplan.tune(tiny, tmp_path / "r.jsonl", options=ALL)
    monkeypatch.setattr(Comparison, "join", lambda *_: pytest.fail("a plan was built"))
    again = tvm_mxplan.compile(tiny, options=ALL)
    records = {"layouts": "channels_last", "tuning_records": tmp_path / "r.jsonl", "cache": "disabled"}
    for ex in (again, tvm_mxplan.compile(tiny, options=records)):
        assert ex.report.dispatch["softmax_0"].chosen.backend == "llvm"
        assert decoded_programs(ex.module) == decoded_programs(first.module)
        assert ex.report.tuning.dispatch == first.report.tuning.dispatch
        assert sum(ex.report.tuning.measured.values()) == 0
    alone = tvm_mxplan.compile(tiny)
    assert alone.report.dispatch["softmax_0"].chosen.backend == "onednn"


@pytest.mark.slow
def test_choices_in_a_file_know_it_too(tiny, worth, tmp_path, monkeypatch):
    worth(softmax=50.0)
    first = tvm_mxplan.compile(tiny, options=MEASURE)
    tvm_mxplan.save_cache(tmp_path / "tiny.choices", "mkldnn")
    monkeypatch.setattr(Comparison, "join", lambda *_: pytest.fail("a plan was built"))
    monkeypatch.setenv("TVM_MXPLAN_CACHE_DIR", str(tmp_path / "without records"))
    assert tvm_mxplan.load_cache(tmp_path / "tiny.choices", "mkldnn") == len(first.report.regions)
    ex = tvm_mxplan.compile(tiny, options=MEASURE)
    assert ex.report.dispatch["softmax_0"].chosen.backend == "llvm"
    assert decoded_programs(ex.module) == decoded_programs(first.module)


@pytest.mark.slow
def test_a_kernel_that_cannot_be_made_is_no_candidate(tiny, monkeypatch):
    refused = []
    join = Comparison.join

    def refuses_kernels(self, name: str, sample: Callable[[], float]) -> None:
        if "=llvm" in name:
            refused.append(name)
            raise RuntimeError("no such kernel")
        join(self, name, sample)

    monkeypatch.setattr(Comparison, "join", refuses_kernels)
    report = tvm_mxplan.compile(tiny, options=MEASURE).report
    assert "softmax=llvm" in refused
    assert report.dispatch["softmax_0"].chosen.backend == "onednn"
    assert "softmax=llvm was not compared: no such kernel" in report.tuning.notes


@pytest.mark.slow
def test_a_users_wishes_stand(tiny, worth):
    joined = worth(softmax=50.0, mean=50.0)
    report = tvm_mxplan.compile(tiny, options={**MEASURE, "prefer": "softmax=dnnl, mean_0=dnnl"}).report
    assert {decision.chosen.backend for decision in report.dispatch} == {"onednn"}
    assert not any("softmax" in name or "mean" in name for name in tried(joined))


@pytest.mark.slow
@pytest.mark.parametrize("options", [{"tune_for": "memory"}, {"tune_seconds": 1e-9}])
def test_nothing_is_tried_where_nothing_is_timed(tiny, worth, options):
    joined = worth(softmax=50.0)
    report = tvm_mxplan.compile(tiny, options={**MEASURE, **options}).report
    assert not [name for name in joined if "=llvm" in name]
    assert report.dispatch["softmax_0"].chosen.backend == "onednn"


def test_a_plan_has_to_win_clearly() -> None:
    assert result_of({AS_PREFERRED: 100.0, "softmax=llvm": 98.5}, True).decided == ()
    assert result_of({AS_PREFERRED: 100.0, "softmax=llvm": 97.5}, True).decided == (("softmax", "llvm"),)


def test_trials_are_those_of_the_plan_that_is_taken() -> None:
    values = {AS_PREFERRED: 100.0, "a=llvm": 90.0, "b=llvm": 80.0, "c=llvm": 300.0, "a=llvm,b=llvm": 70.0}
    result = result_of(values, True)
    assert result.table[0] == ("a=llvm,b=llvm", 70.0)
    found = trials_of(result)
    assert found["a"] == found["b"]
    assert (found["a"].kinds, found["a"].ratio, found["a"].taken) == (("a", "b"), 0.7, True)
    assert (found["c"].kinds, found["c"].ratio, found["c"].taken) == (("c",), 3.0, False)
    alone = trials_of(result_of({**values, "a=llvm,b=llvm": 85.0}, True))
    assert (alone["a"].taken, alone["a"].ratio) == (False, 0.9)
    assert (alone["b"].taken, alone["b"].ratio) == (True, 0.8)


def test_without_plans_nothing_changes() -> None:
    result = result_of({}, True)
    assert result == PlanResult(((AS_PREFERRED, 1.0),), True, ())
    assert trials_of(result) == {}
