"""``tvmc run --opcheck`` and ``tvmc replay``."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tvmc_helpers import listing

from tvm_mxplan.core.program import codec
from tvm_mxplan.core.program import program as ir


def test_a_right_model(tvmc, models, tmp_path):
    result = tvmc("run", models / "small.so", "--opcheck", "--opcheck-dir", tmp_path / "found")
    assert (result.code, result.err) == (0, "")
    assert "steps agree with their references" in result.out
    assert listing(tmp_path) == []


def test_a_wrong_step_is_named_and_replayed(tvmc, models, tmp_path, monkeypatch):
    real = codec.decode

    def decode(data: bytes) -> ir.Program:
        program = real(data)
        steps = [replace(step, post_ops=()) if step.kind == "convolution" else step for step in program.steps]
        return replace(program, steps=tuple(steps))

    monkeypatch.setattr(codec, "decode", decode)
    line = tvmc("run", models / "small.so", "--opcheck", "--opcheck-dir", tmp_path / "found").error()
    assert "convolution conv2d_0" in line
    monkeypatch.undo()
    (name,) = listing(tmp_path / "found")
    result = tvmc("replay", tmp_path / "found" / name)
    assert result.code == 0
    assert "recorded: region" in result.out
    assert "other bits as recorded; it agrees with its reference now" in result.out


@pytest.mark.parametrize(
    "flags, words",
    [
        (("--opcheck", "--print-time"), "leave --print-time out"),
        (("--opcheck-dir", "x"), "give --opcheck too"),
    ],
)
def test_flags_that_do_not_go_together(tvmc, models, flags, words):
    assert words in tvmc("run", models / "small.so", *flags).error()


def test_replay_of_a_file_that_is_none(tvmc, models, tmp_path):
    assert "none.npz: no such file" in tvmc("replay", tmp_path / "none.npz").error()
    assert "not a file of opcheck's" in tvmc("replay", models / "small.so").error()
