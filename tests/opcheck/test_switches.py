"""The check of every call is turned on by the option or the environment, and raises its own error."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import tvm_mxplan
from tvm_mxplan import InternalError, InvalidInputError, opcheck
from tvm_mxplan.core.program import codec
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.testing import zoo

X = zoo.random_images((1, 3, 32, 32))


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    path = tmp_path_factory.mktemp("opcheck") / "tiny.so"
    ex = tvm_mxplan.compile(zoo.load("tiny"))
    assert ex.report.regions
    ex.export(path)
    return path


@pytest.fixture
def wrong(monkeypatch):
    """Every program is read as one whose convolutions give twice what they do."""

    def decode(data: bytes) -> ir.Program:
        program = real(data)
        steps = tuple(
            replace(step, post_ops=(*step.post_ops, ir.EltwisePostOp("linear", 2.0, 0.0)))
            if step.kind == "convolution"
            else step
            for step in program.steps
        )
        return replace(program, steps=steps)

    real = codec.decode
    monkeypatch.setattr(codec, "decode", decode)


def test_off_by_default(library, wrong):
    assert np.isfinite(tvm_mxplan.load(library)(X)[0].numpy()).all()


def test_the_environment_checks_every_call(library, wrong, monkeypatch, tmp_path):
    monkeypatch.setenv("TVM_MXPLAN_DEBUG", "memory,opcheck")
    monkeypatch.setenv("TVM_MXPLAN_OPCHECK_DIR", str(tmp_path / "found"))
    ex = tvm_mxplan.load(library)
    for _ in range(2):
        with pytest.raises(InternalError, match=r"steps differ .*convolution conv2d_0 .*tvmc replay"):
            ex(X)
    assert len(list((tmp_path / "found").iterdir())) == 1


def test_the_option_checks_every_call(wrong, tmp_path):
    ex = tvm_mxplan.compile(zoo.load("tiny"), options={"opcheck": True, "opcheck_folder": str(tmp_path)})
    assert ex.report.regions
    with pytest.raises(InternalError, match="conv2d_0"):
        ex(X)
    assert opcheck.check(ex, X).first.name == "conv2d_0", "a check of one's own says it, and raises nothing"


def test_a_right_model_gives_the_same_numbers_under_check(library):
    ex = tvm_mxplan.compile(zoo.load("tiny"), options={"opcheck": True})
    assert ex.report.regions
    np.testing.assert_array_equal(ex(X)[0].numpy(), tvm_mxplan.load(library)(X)[0].numpy())


@pytest.mark.parametrize("option", [{"opcheck": "yes"}, {"opcheck_folder": 3}])
def test_wrong_options(option):
    (name,) = option
    with pytest.raises(InvalidInputError, match=f"option {name}="):
        tvm_mxplan.Options(**option)


def test_a_folder_that_cannot_be(library, wrong, tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(InvalidInputError, match="no folder for opcheck's files"):
        opcheck.check(tvm_mxplan.load(library), X, folder=tmp_path / "file")
