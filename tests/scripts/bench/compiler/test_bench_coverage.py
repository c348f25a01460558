"""Estimated shares of time outside of regions held against what the VM's calls take."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[4] / "scripts"))

from _bench.compiler import coverage

import tvm_mxplan
from tvm_mxplan.execution.threads import with_threads
from tvm_mxplan.testing import zoo


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    with with_threads(1):
        yield


@pytest.mark.slow
def test_kinds_that_are_left_make_a_share() -> None:
    whole, left = (coverage.shares_of("tiny", kind, calls=1) for kind in ("", "nn.conv2d"))
    assert whole is not None and left is not None
    assert 0 <= whole.estimated < left.estimated < 1
    assert 0 <= whole.measured < left.measured < 1


def test_a_kind_that_the_model_does_not_have_is_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    assert coverage.main(["--models", "tiny", "--left", ",nn.conv1d", "--calls", "1"]) == 0
    rows = capsys.readouterr().out.splitlines()
    assert rows[0] == coverage.TABLE
    assert len(rows) == 3 and rows[2].startswith("| tiny | nothing more | ")


@pytest.mark.slow
def test_what_the_vm_calls_is_told_apart() -> None:
    executable = tvm_mxplan.compile(zoo.load("tiny"), "llvm")
    inside, outside = coverage.measured_us(executable, list(zoo.random_inputs(zoo.load("tiny")).values()), 1)
    assert inside == 0 < outside


def test_several_threads_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with with_threads(2):
        assert coverage.main(["--models", "tiny"]) == 2
    assert "OMP_NUM_THREADS=1" in capsys.readouterr().err
