"""The roofline of a model: the time of its steps, and the least that their work can take."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[4] / "scripts"))

from _bench.steps import machine, roofline
from _bench.steps.machine import Roofs
from _bench.steps.profile import time_steps

import tvm_mxplan
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.report.inspection import decoded_programs
from tvm_mxplan.testing import zoo


@pytest.fixture(scope="module")
def squeezenet() -> tuple[tvm_mxplan.Executable, dict]:
    model = zoo.load("squeezenet")
    return tvm_mxplan.compile(model, options={"convolutions": "winograd_f2"}), zoo.random_inputs(model)


@pytest.mark.slow
def test_every_step_is_timed(squeezenet) -> None:
    executable, inputs = squeezenet
    timed = time_steps(executable, inputs, calls=2)
    planned = [step for program in decoded_programs(executable.module) for step in program.steps]
    assert [each.step for each in timed] == planned
    assert all(each.seconds > 0 for each in timed)


def test_work_of_steps(squeezenet) -> None:
    executable, inputs = squeezenet
    roofs = Roofs(flops=1e9, read=1e12, triad=1e9)
    work = [(each, roofline.work_of(each, roofs)) for each in time_steps(executable, inputs, calls=1)]
    saved = 0
    for timed, part in work:
        attrs = timed.step.attrs
        if not isinstance(attrs, ir.Convolution):
            assert part.direct == part.flops == 0
            continue
        weights = timed.program.values[timed.step.operand("weights")].shape
        positions = timed.program.values[timed.step.dst].shape
        least = 2 * positions[0] * positions[2] * positions[3]
        for size in weights:
            least *= size
        assert part.direct == least
        assert part.bound == pytest.approx(part.flops / 1e9), "far more arithmetic than bytes, at these roofs"
        assert part.flops == pytest.approx(least / (1 if attrs.algorithm == "direct" else 2.25))
        saved += attrs.algorithm != "direct"
    assert saved == 8, "the 3x3 convolutions of the eight fires"
    whole = roofline.total(part for _, part in work)
    assert whole.direct / 1e9 == pytest.approx(0.70, rel=0.01)
    assert whole.weights >= 4 * 1_235_496

    slow_memory = Roofs(flops=1e15, read=1e6, triad=1e9)
    first = next(timed for timed, _ in work if isinstance(timed.step.attrs, ir.Convolution))
    part = roofline.work_of(first, slow_memory)
    assert part.bound == pytest.approx(part.weights / 1e6) and part.weights > 0


def test_shares_of_the_profile_add_up(squeezenet) -> None:
    executable, inputs = squeezenet
    roofs = Roofs(flops=1e12, read=1e10, triad=1e9)
    work = [(each, roofline.work_of(each, roofs)) for each in time_steps(executable, inputs, calls=1)]
    rows = [row.split(" | ") for row in roofline.kinds(work, top=2)]
    assert len(rows) == 3 and rows[-1][0] == "all others"
    assert sum(int(row[1]) for row in rows) == len(work)
    assert sum(float(row[3].rstrip("%")) for row in rows) == pytest.approx(100, abs=2)


def test_two_tables(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "SIDES", (256,))
    monkeypatch.setattr(machine, "BYTES", 1 << 20)
    assert roofline.main(["--models", "tiny", "--batch", "2", "--calls", "1"]) == 0
    text = capsys.readouterr().out
    assert "GFLOP/s in a float32 matrix product" in text
    tables = [line for line in text.splitlines() if line.startswith("|")]
    assert tables[0] == roofline.TABLE and roofline.PROFILE in tables
    assert tables[2].startswith("| tiny | 2 | ") and any("convolution " in row for row in tables)
