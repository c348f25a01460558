"""scripts/bench kinds: shares by kind, and the runtime's own clock behind them."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[4] / "scripts"))

from _bench.steps import kinds
from _bench.steps.profile import TimedStep, share_of, time_steps

import tvm_mxplan
from tvm_mxplan.byoc.onednn import library
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.errors import InvalidInputError
from tvm_mxplan.testing.mlp import mlp


def timed(attrs: ir.Attributes, seconds: float) -> TimedStep:
    values = (
        ir.Value("x", (2,), "float32", "input", "a", 0),
        ir.Value("y", (2,), "float32", "output", "a", 0),
    )
    step = ir.Step("s", attrs, (ir.Operand("src", 0), ir.Operand("dst", 1)))
    return TimedStep(ir.Program("r", values, (step,)), 0, seconds)


def test_shares_are_of_all_steps() -> None:
    steps = [
        timed(ir.Reorder(), 1e-3),
        timed(ir.MatMul(), 5e-3),
        timed(ir.Reorder(), 1e-3),
        timed(ir.Attention(1.0), 2e-3),
        timed(ir.Eltwise("relu", 0.0, 0.0), 1e-3),
    ]
    assert kinds.cells(steps) == ["5", "10.00", "2", "20.00 %", "50.0 %", "20.0 %", "10.0 %"]


def test_a_share_is_of_the_time_not_of_the_calls() -> None:
    steps = [timed(ir.Reorder(), 0.25), timed(ir.MatMul(), 0.75)]
    assert share_of(steps, ir.Reorder) == 0.25
    assert share_of([*steps, timed(ir.Reorder(), 1.0)], ir.Reorder) == 0.625
    assert share_of(steps, ir.Reorder, ir.MatMul) == 1.0
    assert share_of([], ir.Reorder) == 0.0


def test_the_runtime_takes_the_time_of_each_step() -> None:
    executable = tvm_mxplan.compile(mlp([8, 16, 4], 2))
    x = {executable.signature.inputs[0].name: np.ones((2, 8), "float32")}
    executable(**x)
    library.clock_steps(True)
    executable(**x)
    executable(**x)
    taken = library.clock_steps(False)
    steps = time_steps(executable, x, calls=3)
    assert len(taken) == 2 * len(steps) > 0 and all(nanoseconds > 0 for nanoseconds in taken)
    assert all(0 < one.seconds < 1 for one in steps)
    with pytest.raises(InvalidInputError, match="clock_steps: expected to have begun in this thread"):
        library.clock_steps(False)
