"""Machines that cannot be reached, are not what was expected, or go away: a line each, and records stay."""

from __future__ import annotations

import json

import pytest
import rpc_processes
from rpc_processes import HOST, KEY, free_port

import tvm_mxplan
from tvm_mxplan import Remote, RemoteError, UnsupportedError
from tvm_mxplan.remote import place
from tvm_mxplan.testing import zoo
from tvm_mxplan.tuning.values import POWERCAP


@pytest.fixture(scope="module")
def tiny():
    return zoo.load("tiny")


def refusal(model, remote: Remote, folder) -> str:
    with pytest.raises(RemoteError) as error:
        tvm_mxplan.tune(model, folder / "records", remote=remote)
    assert "\n" not in str(error.value)
    assert not (folder / "records").exists()
    return str(error.value)


def test_nobody_is_there(tiny, tmp_path):
    nowhere = f"{HOST}:{free_port()}"
    message = refusal(tiny, Remote(server=nowhere, key=KEY), tmp_path)
    assert f"server 'pi' at {nowhere}: cannot be reached (Connect to {nowhere} failed)" in message
    assert "python -m tvm.exec.rpc_server" in message
    message = refusal(tiny, Remote(tracker=nowhere, key=KEY), tmp_path)
    assert f"server 'pi' of the tracker {nowhere}: cannot be reached (Connection refused)" in message
    assert "python -m tvm.exec.rpc_tracker" in message


@pytest.mark.slow
def test_a_tracker_without_such_a_key(tiny, pi, tmp_path):
    message = refusal(tiny, Remote(tracker=pi, key="phone"), tmp_path)
    assert f"tracker {pi}: no server with the key 'phone'; it knows 'pi'" in message
    assert f"python -m tvm.exec.rpc_server --tracker {pi} --key phone" in message


@pytest.mark.slow
def test_a_server_is_no_tracker_and_minds_its_key(tiny, tmp_path):
    with rpc_processes.server() as (address, _):
        message = refusal(tiny, Remote(tracker=address, key=KEY), tmp_path)
        assert "cannot be reached (connection reset); expected a tracker of TVM's there" in message
        assert "key=client:phone" in refusal(tiny, Remote(server=address, key="phone"), tmp_path)


@pytest.mark.slow
def test_a_server_without_the_plug_in(tiny, tmp_path):
    with rpc_processes.server(TVM_DEVICE_BACKEND_AUTOLOAD="0") as (address, _):
        message = refusal(tiny, Remote(server=address, key=KEY), tmp_path)
    assert "its process has no tvm_mxplan that can 'machine'; install tvm_mxplan" in message


def test_another_version_of_the_plug_in(tiny, pi, tmp_path, monkeypatch):
    ours = place.machine()
    monkeypatch.setattr(place, "machine", lambda: {**ours, "schema": [9, 9]})
    message = refusal(tiny, Remote(tracker=pi, key=KEY), tmp_path)
    assert f"tvm_mxplan's schema is {ours['schema']} there and [9, 9] here; install the same" in message


def test_errors_over_there(pi, tmp_path):
    """Those of ours keep their class on the way; others are told as failures, and the server goes on."""
    with place.connected(Remote(tracker=pi, key=KEY)) as there:
        with pytest.raises(RemoteError, match=r"server 'pi' .*: failed over there"):
            there._connection.ask("time_step", "onednn", b"no program", 0)
        if not list(POWERCAP.glob("intel-rapl:*")):
            with pytest.raises(UnsupportedError, match=r"server 'pi' .*: tune_for=joules"):
                there.check("joules")
        there.check("latency")


@pytest.mark.slow
def test_a_server_that_dies_amid_the_work(tiny, tmp_path, monkeypatch):
    """A cost that was measured before is kept, and counts in the next run."""
    records = tmp_path / "records"
    with rpc_processes.server() as (address, process):
        remote = Remote(server=address, key=KEY)
        operators = []

        def progress(event) -> None:
            operators.extend([event.text] * (event.stage == "operators"))
            if len(operators) == 5:
                rpc_processes.end(process)

        with pytest.raises(RemoteError, match=r"gone in the middle of the work .* is kept") as error:
            tvm_mxplan.tune(tiny, records, remote=remote, progress=progress)
        assert "\n" not in str(error.value)
    kept = [json.loads(line)["kind"] for line in records.read_text().splitlines()[1:]]
    assert kept.count("step") == 5 and set(kept) == {"dispatch", "step"}
    monkeypatch.setenv("TVM_MXPLAN_CACHE_DIR", str(tmp_path / "other"))
    with rpc_processes.server() as (address, _):
        remote = Remote(server=address, key=KEY)
        report = tvm_mxplan.tune(tiny, records, remote=remote, options={"tune_trials": 12}).report.tuning
    assert report.known["operators"] == 5
