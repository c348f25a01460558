"""A step that differs lands in a file, in the folder asked for, and runs again from it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import tvm_ffi

from tvm_mxplan import InvalidInputError
from tvm_mxplan.byoc.onednn import library
from tvm_mxplan.core.program import codec
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.opcheck import checker as checker_module
from tvm_mxplan.opcheck import checking, replay

SHAPE = (1, 17, 6, 6)
RANDOM = np.random.default_rng(0)
X, ADDED = (RANDOM.standard_normal(SHAPE, np.float32) for _ in range(2))
WEIGHTS = RANDOM.standard_normal((17, 17, 1, 1), np.float32)
BIAS = RANDOM.standard_normal((1, 17, 1, 1), np.float32)


def network() -> ir.Program:
    """y = relu(convolution(x) * c + added), in place of ``added``, in a layout with a tail."""
    blocked = "aBcd16b"
    values = (
        ir.Value("x", SHAPE, "float32", "input", "abcd", 0),
        ir.Value("added", SHAPE, "float32", "input", "abcd", 1),
        ir.Value("y", SHAPE, "float32", "output", "abcd", 0),
        ir.Value("w", WEIGHTS.shape, "float32", "constant", "abcd", 0),
        ir.Value("c", BIAS.shape, "float32", "constant", "abcd", 1),
        ir.Value("a", SHAPE, "float32", "local", blocked),
        ir.Value("b", SHAPE, "float32", "local", blocked),
        ir.Value("d", SHAPE, "float32", "local", blocked, alias_of=6),
    )
    post_ops = (ir.BinaryPostOp("mul", 4), ir.SumPostOp(), ir.EltwisePostOp("relu", 0.0, 0.0))
    attrs = ir.Convolution((1, 1), (0, 0, 0, 0), (1, 1), 1)

    def step(name: str, attrs: ir.Attributes, *post_ops: ir.PostOp, **operands: int) -> ir.Step:
        return ir.Step(name, attrs, tuple(ir.Operand(r, v) for r, v in operands.items()), post_ops)

    steps = (
        step("first", ir.Reorder(), src=0, dst=5),
        step("second", ir.Reorder(), src=1, dst=6),
        step("conv/1", attrs, *post_ops, src=5, weights=3, dst=7),
        step("last", ir.Reorder(), src=7, dst=2),
    )
    return ir.Program("net", values, steps)


def run(program: ir.Program, folder) -> checker_module.OpCheck:
    module = library.create_module("net", program, [WEIGHTS, BIAS])
    out = np.zeros(SHAPE, np.float32)
    with checking(folder) as checker:
        module["net"](*(tvm_ffi.from_dlpack(array) for array in (X, ADDED, out)))
    return checker.result()


@pytest.fixture
def written(tmp_path, monkeypatch):
    """The file of a convolution whose sum is not the one checked against."""
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    right, ran = network(), network()
    conv = right.steps[2]
    expected = replace(conv, post_ops=(conv.post_ops[0], ir.SumPostOp(2.0), conv.post_ops[2]))
    right = replace(right, steps=(*right.steps[:2], expected, right.steps[3]))
    monkeypatch.setattr(codec, "decode", lambda _: right)
    result = run(ran, tmp_path / "new" / "found")
    monkeypatch.undo()
    assert result.first is not None
    assert list((tmp_path / "work").iterdir()) == []
    (path,) = (tmp_path / "new" / "found").iterdir()
    assert result.first.replay == str(path)
    assert f"tvmc replay {path}" in str(result)
    return path


def test_a_right_program_writes_nothing(tmp_path):
    assert run(network(), tmp_path / "found").first is None
    assert not (tmp_path / "found").exists()


def test_the_step_runs_again_as_it_should_have(written):
    """The program in the file is the one that was checked against: run for itself, it is right."""
    assert written.name == "opcheck-net-2-conv_1.npz"
    again = replay(written)
    assert again.finding is None
    assert not again.same_bytes
    (step,) = again.program.steps
    assert (step.kind, step.name, len(step.post_ops)) == ("convolution", "conv/1", 3)
    assert "agrees with its reference now" in str(again)


def test_the_file_holds_what_was_read_and_expected(written):
    """The expectation, worked out by hand once more from what the step read."""
    with np.load(written) as archive:
        arrays = dict(archive)
    assert {"program", "text", "read0", "read1", "read2", "prior", "actual0"} <= set(arrays)
    expected, allowed = arrays["expected0"], arrays["allowed0"]
    assert expected.shape == allowed.shape == SHAPE
    dense = np.einsum("oi,nihw->nohw", WEIGHTS[:, :, 0, 0].astype(float), X.astype(float))
    by_hand = np.maximum(dense * BIAS.astype(float) + 2 * ADDED.astype(float), 0)
    np.testing.assert_allclose(expected, by_hand, atol=1e-12)


@pytest.mark.parametrize("damage", ["missing", "text", "cut", "other"])
def test_files_that_are_none_are_refused(written, damage):
    if damage == "missing":
        written.unlink()
    elif damage == "text":
        written.write_text("opcheck")
    elif damage == "cut":
        written.write_bytes(written.read_bytes()[:200])
    else:
        np.savez(written, program=np.zeros(8, np.uint8))
    said = "no such file" if damage == "missing" else "not a file of opcheck's, or damaged"
    with pytest.raises(InvalidInputError, match=rf"conv_1\.npz: {said}"):
        replay(written)


def _read_only(program: ir.Program) -> ir.Program:
    return replace(program, steps=())


def _short(program: ir.Program) -> ir.Program:
    (bias,) = (i for i, value in enumerate(program.values) if value.shape == BIAS.shape)
    return program.with_value(bias, shape=(1, 1, 17, 1))


def _bytes(program: ir.Program) -> ir.Program:
    return program.with_value(program.steps[0].dst, dtype="int8")


def _larger(program: ir.Program) -> ir.Program:
    return program.with_value(0, shape=(9, *SHAPE[1:]))


def _layout(program: ir.Program) -> ir.Program:
    return program.with_value(0, layout="any")


def _input(program: ir.Program) -> ir.Program:
    return program.with_value(len(program.values) - 1, kind="local", index=-1)


@pytest.mark.parametrize("change", [_read_only, _short, _bytes, _larger, _layout, _input])
def test_programs_that_do_not_fit_are_refused_before_they_run(written, change):
    with np.load(written) as archive:
        arrays = dict(archive)
    program = change(codec.decode(arrays["program"].tobytes()))
    arrays["program"] = np.frombuffer(codec.encode(program), np.uint8)
    np.savez(written, **arrays)
    with pytest.raises(InvalidInputError, match=r"conv_1\.npz: not a file of opcheck's, or damaged \(.+\)"):
        replay(written)
