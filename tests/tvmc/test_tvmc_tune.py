"""``tvmc tune``: records out, progress on standard error, and ``tvmc compile --tuning-records``."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

import tvm_mxplan
from tvm_mxplan.passes.layout.measure import StepTimer
from tvm_mxplan.report.inspection import decoded_programs


@pytest.fixture(autouse=True)
def cache_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TVM_MXPLAN_CACHE_DIR", str(tmp_path / "cache"))


@pytest.mark.slow
def test_records_are_written_and_compiled_by(tvmc, models, tmp_path, monkeypatch):
    records, library = tmp_path / "records", tmp_path / "m.so"
    result = tvmc("tune", models / "small.onnx", "-o", records)
    assert result.code == 0, result.err
    assert "tuned for latency" in result.out
    assert "<- used" in result.out
    assert "plans" in result.err
    assert "best" in result.err
    assert records.read_text().count('"kind": "step"') >= 3
    monkeypatch.setenv("TVM_MXPLAN_CACHE_DIR", str(tmp_path / "other"))
    monkeypatch.setattr(StepTimer, "_time", lambda *_: pytest.fail("measured"))
    assert tvmc("compile", models / "small.onnx", "--tuning-records", records, "-o", library).code == 0
    report = tvm_mxplan.load(library).report.tuning
    assert report.chosen
    assert report.chosen in result.out
    assert sum(report.measured.values()) == 0


@pytest.mark.slow
def test_records_to_start_from(tvmc, models, tmp_path, monkeypatch):
    assert tvmc("tune", models / "small.onnx", "-o", tmp_path / "a").code == 0
    monkeypatch.setenv("TVM_MXPLAN_CACHE_DIR", str(tmp_path / "other"))
    monkeypatch.setattr(StepTimer, "_time", lambda *_: pytest.fail("measured"))
    flags = ("-o", tmp_path / "b", "--tuning-records", tmp_path / "a")
    assert tvmc("tune", models / "small.onnx", *flags).code == 0
    first, second = (sorted((tmp_path / name).read_text().splitlines()) for name in "ab")
    assert first == second


def test_budget_and_strategy(tvmc, models, tmp_path):
    flags = ("-o", tmp_path / "r", "--seconds", "9", "--trials", "2", "--for", "memory")
    result = tvmc("tune", models / "small.onnx", *flags)
    assert result.code == 0, result.err
    assert "tuned for memory" in result.out
    assert "2 measured" in result.out
    error = tvmc("tune", models / "small.onnx", *flags, "--opt", "tune_trials=3").error()
    assert "tune_trials is given as 3 and as 2" in error


@pytest.mark.slow
def test_quiet(tvmc, models, tmp_path):
    result = tvmc("tune", models / "small.onnx", "-o", tmp_path / "r", "--seconds", "2", "-q")
    assert (result.code, result.out, result.err) == (0, "", "")


@pytest.mark.slow
def test_a_terminal_gets_a_bar(models, tmp_path):
    leader, follower = pty.openpty()
    command = [sys.executable, "-m", "tvm_mxplan.tvmc", "tune", models / "small.onnx", "-o", tmp_path / "r"]
    process = subprocess.Popen(command, stderr=follower, stdout=subprocess.PIPE)
    os.close(follower)
    shown = b""
    try:
        while data := os.read(leader, 4096):
            shown += data
    except OSError:  # the other end is closed
        pass
    out, _ = process.communicate()
    os.close(leader)
    assert process.returncode == 0
    assert b"<- used" in out
    drawn = [line for line in shown.split(b"\r") if line.startswith(b"[")]
    assert len(drawn) > 3
    assert all(len(line) < 80 and b"/60 s" in line for line in drawn)
    assert b"\n" not in shown


@pytest.mark.parametrize("flag", ["-o", "--tuning-records"])
def test_other_files_are_refused(tvmc, models, tmp_path, flag):
    (tmp_path / "notes").write_text("mine\n")
    flags = ("-o", tmp_path / "r", flag, tmp_path / "notes")
    error = tvmc("tune", models / "small.onnx", *flags).error()
    assert "notes: no tuning records" in error
    assert (tmp_path / "notes").read_text() == "mine\n"


def test_a_missing_file(tvmc, models, tmp_path):
    error = tvmc("compile", models / "small.onnx", "--tuning-records", tmp_path / "r").error()
    assert "r: no such file" in error


def test_a_target_without_libraries_gets_records_of_nothing(tvmc, models, tmp_path):
    flags = ("--target", "llvm", "--opt", "cache=disabled")
    tuned = tvmc("tune", models / "small.onnx", *flags, "-o", tmp_path / "r")
    assert tuned.code == 0
    assert "nothing to tune: the target names no library" in tuned.out
    assert (tmp_path / "r").read_text().count("\n") == 1  # the header
    flags = ("--target", "llvm", "--tuning-records", tmp_path / "r", "-o", tmp_path / "m.so")
    assert tvmc("compile", models / "small.onnx", *flags).code == 0


@pytest.mark.slow
def test_records_are_found_again_without_a_file(tvmc, models, tmp_path, monkeypatch):
    assert tvmc("tune", models / "small.onnx", "-o", tmp_path / "r").code == 0
    monkeypatch.setattr(StepTimer, "_time", lambda *_: pytest.fail("measured"))
    flags = ("--opt", "tune=measure", "-o", tmp_path / "m.so")
    assert tvmc("compile", models / "small.onnx", *flags).code == 0
    ex = tvm_mxplan.compile(models / "small.onnx", options={"tune": "measure"})
    assert decoded_programs(ex.module)
    assert ex.report.tuning.known["plans"] >= 1
