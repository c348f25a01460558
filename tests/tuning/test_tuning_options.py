"""Options of tuning: what they mean, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

import tvm_mxplan
from tvm_mxplan import InvalidInputError, Options
from tvm_mxplan.report.inspection import decoded_programs


def test_off_weighs_no_costs(tiny):
    ex = tvm_mxplan.compile(tiny, options={"tune": "off"})
    wanted = tvm_mxplan.compile(tiny, options={"layouts": "channels_last", "convolutions": "direct"})
    assert decoded_programs(ex.module) == decoded_programs(wanted.module)
    assert ex.report.regions[0].layouts.policy == "channels_last"
    blocked = tvm_mxplan.compile(tiny, options={"tune": "off", "layouts": "blocked"})
    assert blocked.report.regions[0].layouts.policy == "blocked"


@pytest.mark.parametrize("value, tune", [("", "model"), ("0", "off"), ("1", "model"), ("2", "measure")])
def test_the_environment_says_what_the_option_does_not(monkeypatch, value, tune):
    monkeypatch.setenv("TVM_MXPLAN_AUTOTUNE", value)
    assert Options().tune == Options.of({}).tune == tune
    assert Options(tune="off").tune == "off"


def test_the_environment_is_checked(monkeypatch):
    monkeypatch.setenv("TVM_MXPLAN_AUTOTUNE", "3")
    with pytest.raises(InvalidInputError, match=r"TVM_MXPLAN_AUTOTUNE='3'; expected 0 .*, 1 .* or 2"):
        Options()


@pytest.mark.parametrize(
    "options, message",
    [
        ({"tune": "fast"}, "tune='fast'; expected one of off, model, measure"),
        ({"tune_for": "speed"}, "tune_for='speed'; expected one of latency, throughput"),
        ({"tune_for": "memory", "tune": "model"}, "give tune=measure"),
        ({"tune_trials": 0}, "tune_trials=0; expected a number of at least 1"),
        ({"tuning_records": 3}, "expected a path"),
        ({"tuning_records": "r", "tune": "off"}, "use model or measure"),
        ({"tuning_records": "/no/such/file"}, "/no/such/file: no such file"),
    ],
)
def test_bad_options(tiny, options, message):
    with pytest.raises(InvalidInputError, match=message):
        tvm_mxplan.compile(tiny, options=options)


def test_records_are_part_of_the_fingerprint(tmp_path: Path):
    (tmp_path / "r").write_text("a")
    options = Options(tuning_records=str(tmp_path / "r"))
    before = options.fingerprinted()["tuning_records"]
    (tmp_path / "r").write_text("b")
    assert options.fingerprinted()["tuning_records"] != before
