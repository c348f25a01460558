"""``tvmc show``, ``tvmc show-config``, versions, and verbs that are gone."""

from __future__ import annotations

import json

import pytest

import tvm_mxplan
from tvm_mxplan.execution.signature import Signature
from tvm_mxplan.report.report import Report


def test_show_prints_signature_and_report(tvmc, models):
    result = tvmc("show", models / "batch.so")
    assert (result.code, result.err) == (0, "")
    assert "input  image: float32[N, 3, 9, 9]" in result.out
    assert "output features: float32[N, 17, 9, 9]" in result.out
    assert str(tvm_mxplan.load(models / "batch.so").report) in result.out


def test_show_json_round_trips(tvmc, models):
    data = json.loads(tvmc("show", models / "small.so", "--json").out)
    ex = tvm_mxplan.load(models / "small.so")
    assert ex.report.regions
    assert Signature.from_json(data["signature"]) == ex.signature
    assert Report.from_json(data["report"]) == ex.report


def test_show_program_prints_the_regions_steps(tvmc, models):
    assert "convolution" in tvmc("show", models / "small.so", "--program").out


def test_show_config_names_versions_and_settings(tvmc, monkeypatch):
    monkeypatch.setenv("ONEDNN_VERBOSE", "0")
    out = tvmc("show-config").out
    for word in ("apache-tvm ", "apache-tvm-ffi", "oneDNN ", "instruction set", "TVM_MXPLAN_DISABLE"):
        assert word in out
    facts = json.loads(tvmc("show-config", "--json").out)
    assert facts["versions"]["tvm_mxplan"] == tvm_mxplan.__version__
    assert facts["environment"]["ONEDNN_VERBOSE"] == "0"


def test_version_and_help(tvmc):
    version = tvmc("--version")
    assert version.code == 0
    assert f"tvm_mxplan {tvm_mxplan.__version__}" in version.out
    usage = tvmc("compile", "--help")
    assert usage.code == 0
    assert "--target" in usage.out
    assert "--tuning-records" in usage.out
    assert "--pass-config" not in usage.out


@pytest.mark.parametrize("verb, word", [("micro", "gone from TVM")])
def test_verbs_of_old_are_answered_whatever_follows(tvmc, verb, word):
    for rest in ((), ("--target", "llvm", "model.onnx", "-o", "x")):
        error = tvmc(verb, *rest).error()
        assert verb in error
        assert word in error
