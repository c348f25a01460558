"""``tvmc tune`` and ``run`` on another machine: flags, records that a compile there uses, errors."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import rpc_processes
from rpc_processes import HOST, KEY, free_port
from tvmc_helpers import listing

import tvm_mxplan
from tvm_mxplan.execution.executable import Executable


def over_there(*arguments: object) -> str:
    """The output of tvmc on such a machine."""
    command = [sys.executable, "-m", "tvm_mxplan.tvmc", *map(str, arguments)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    return done.stdout


@pytest.mark.slow
def test_records_by_a_tracker(tvmc, models, pi, tmp_path, monkeypatch):
    records = tmp_path / "records"
    flags = ("-o", records, "--rpc-tracker", pi, "--rpc-key", KEY)
    result = tvmc("tune", models / "small.onnx", *flags)
    assert result.code == 0, result.err
    assert "<- used" in result.out
    assert "best" in result.err
    assert records.read_text().count('"kind": "step"') >= 3
    assert '"oneDNN threads": 1' in records.read_text().splitlines()[0]
    monkeypatch.setenv("TVM_MXPLAN_CACHE_DIR", str(tmp_path / "other"))
    library = tmp_path / "m.so"
    over_there("compile", models / "small.onnx", "--tuning-records", records, "-o", library)
    report = tvm_mxplan.load(library).report.tuning
    assert report.chosen in result.out
    assert (report.measured, report.modelled) == ({}, {})
    assert report.known["plans"] >= 1


@pytest.mark.slow
def test_records_by_a_servers_own_address(tvmc, models, tmp_path):
    with rpc_processes.server() as (address, _):
        host, _, port = address.partition(":")
        flags = ("--hostname", host, "--port", port, "--rpc-key", KEY, "--trials", "3")
        result = tvmc("tune", models / "small.onnx", "-o", tmp_path / "r", *flags)
    assert result.code == 0, result.err
    assert "3 measured" in result.out


def test_a_library_is_run_there(tvmc, models, pi, tmp_path, monkeypatch):
    """The outputs are those of a run here, and nothing runs here."""
    here, there = tmp_path / "here.npz", tmp_path / "there.npz"
    flags = ("run", models / "small.so", "--seed", "3")
    assert tvmc(*flags, "-o", here).code == 0
    monkeypatch.setattr(Executable, "__call__", lambda *_, **__: pytest.fail("ran in this process"))
    remote = ("--rpc-tracker", pi, "--rpc-key", KEY, "--print-time", "--repeat", "3")
    result = tvmc(*flags, "-o", there, *remote)
    assert result.code == 0, result.err
    assert "Execution time summary" in result.out
    with np.load(here) as ours, np.load(there) as theirs:
        assert ours.files == theirs.files == ["features"]
        np.testing.assert_allclose(theirs["features"], ours["features"], rtol=1e-5, atol=1e-5)
    named = ("run", models / "small.so", "--rpc-tracker", pi, "--rpc-key", KEY)
    np.savez(tmp_path / "wrong.npz", picture=np.zeros(3, np.float32))
    error = tvmc(*named, "-i", tmp_path / "wrong.npz").error()
    assert "server 'pi'" in error
    assert "'picture'" in error
    assert "--opcheck looks at runs in this process" in tvmc(*named, "--opcheck").error()


@pytest.mark.parametrize(
    "flags, words",
    [
        (("--rpc-tracker", "host:9190"), ("tracker host:9190: no key given",)),
        (("--rpc-tracker", "host:port", "--rpc-key", "pi"), ("'host:port'", "HOST:PORT")),
        (("--rpc-tracker", "host", "--hostname", "host", "--rpc-key", "pi"), ("or that of a server",)),
        (("--rpc-key", "pi"), ("--rpc-key pi", "--rpc-tracker", "--hostname")),
        (("--port", "9090"), ("--hostname",)),
    ],
)
def test_flags_that_name_no_machine(tvmc, models, tmp_path, flags, words):
    error = tvmc("tune", models / "small.onnx", "-o", tmp_path / "r", *flags).error()
    assert all(word in error for word in words), error
    assert listing(tmp_path) == []


def test_errors_are_one_line(tvmc, models, pi, tmp_path: Path):
    tune = ("tune", models / "small.onnx", "-o", tmp_path / "r")
    nowhere = f"{HOST}:{free_port()}"
    assert "cannot be reached" in tvmc(*tune, "--rpc-tracker", nowhere, "--rpc-key", KEY).error()
    assert "no server with the key 'phone'" in tvmc(*tune, "--rpc-tracker", pi, "--rpc-key", "phone").error()
    assert listing(tmp_path) == []
