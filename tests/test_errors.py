"""Errors keep their class on their way through TVM: from passes, from callbacks, from the runtime."""

from __future__ import annotations

import numpy as np
import pytest
import tvm
import tvm_ffi

import tvm_mxplan
from tvm_mxplan import InternalError, InvalidInputError, UnsupportedError
from tvm_mxplan.byoc.onednn import codegen, library
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.passes.memory import plan_memory
from tvm_mxplan.testing import zoo


@pytest.mark.parametrize("kind", [InternalError, InvalidInputError, UnsupportedError])
def test_through_a_pass(kind):
    @tvm.transform.module_pass(opt_level=0)
    def fails(mod: tvm.IRModule, _ctx: tvm.transform.PassContext) -> tvm.IRModule:
        raise kind("convolution conv1: no")

    with pytest.raises(kind) as error:
        fails(tvm.IRModule())
    assert type(error.value) is kind
    assert str(error.value) == "convolution conv1: no"


def test_compile_says_what_a_pass_found(monkeypatch):
    """A plan that is wrong is ours to answer for, with the region's name."""
    monkeypatch.setattr(plan_memory, "validate", lambda *_: ["a overlaps b"])
    with pytest.raises(InternalError, match="mxplan_onednn_0: the memory plan is wrong: a overlaps b"):
        tvm_mxplan.compile(zoo.load("tiny"))


def test_compile_names_the_operator_it_fails_on(monkeypatch):
    def fails(_composite: object) -> int:
        raise KeyError("stride")

    monkeypatch.setitem(codegen.TRANSLATE, "convolution", fails)
    message = r"region mxplan_onednn_0: operator convolution of \[1, 3, 32, 32\].*KeyError: 'stride'"
    with pytest.raises(InternalError, match=message):
        tvm_mxplan.compile(zoo.load("tiny"))


def region(algorithm: str) -> object:
    values = tuple(ir.Value(kind, (2, 3), "float32", kind, "ab", 0) for kind in ("input", "output"))
    operands = (ir.Operand("src", 0), ir.Operand("dst", 1))
    step = ir.Step("act", ir.Eltwise(algorithm, 0.0, 0.0), operands)
    return library.create_module("r", ir.Program("r", values, (step,)))


def test_from_the_runtime():
    x, y = np.ones((2, 3), np.float32), np.zeros((2, 3), np.float32)
    with pytest.raises(UnsupportedError, match="region r: eltwise act: eltwise algorithm sine is not known"):
        region("sine")["r"](*map(tvm_ffi.from_dlpack, (x, y)))
    with pytest.raises(InvalidInputError, match=r"region r: input 0 .*expected shape \(2, 3\)"):
        region("relu")["r"](*map(tvm_ffi.from_dlpack, (x[:1].copy(), y)))
    with pytest.raises(TypeError, match="region r takes 1 inputs"):
        region("relu")["r"](tvm_ffi.from_dlpack(x))
    region("relu")["r"](*map(tvm_ffi.from_dlpack, (x, y)))
    assert (y == 1).all()
