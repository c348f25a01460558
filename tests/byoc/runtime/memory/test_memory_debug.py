"""Runs under watch: nothing to say where all is well, and every injected fault is caught and named."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from program_builder import Builder, call, check, random
from squares import pieces_of_a_whole, square

import tvm_mxplan
from tvm_mxplan.byoc.onednn import library
from tvm_mxplan.core.program import codec
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.testing import zoo

SHAPE = (1, 16, 8, 8)
BYTES = 4096


@pytest.fixture(autouse=True)
def watched() -> Iterator[None]:
    library.set_debug(True)
    yield
    library.set_debug(False)


def chain() -> ir.Program:
    """input -> t1 -> t2; t3 = t1 + t2 -> output."""
    b = Builder("chain")
    first = square(b, b.input(SHAPE), b.local(SHAPE, offset=0, nbytes=BYTES))
    other = square(b, first, b.local(SHAPE, offset=BYTES, nbytes=BYTES))
    b.step(ir.Binary("add"), src=first, src1=other, dst=b.output(SHAPE))
    program = b.build(2 * BYTES)
    steps = tuple(replace(step, scratchpad_offset=0, scratchpad_bytes=0) for step in program.steps)
    return replace(program, steps=steps)


def run(program: ir.Program, *inputs: np.ndarray, constants: Any = ()) -> np.ndarray:
    (dst,) = program.of_kind("output")
    out = np.empty(program.values[dst].shape, "float32")
    call(library.create_module(program.name, program, constants), program.name, *inputs, out)
    return out


def test_a_right_plan_gives_the_numbers_and_nothing_to_say():
    x = random(*SHAPE)
    check(run(chain(), x), x**2 + x**4)


def test_what_stands_on_a_living_value_is_caught():
    """The plan is right, but the caller hands over one buffer as input and as output."""
    b = Builder("twice")
    src = b.input(SHAPE)
    first = square(b, src, b.output(SHAPE))
    b.step(ir.Binary("add"), src=src, src1=first, dst=b.output(SHAPE))
    x, y = random(*SHAPE), np.empty(SHAPE, "float32")
    module = library.create_module("twice", b.build(), ())
    message = (
        r"region twice: memory: step 0, eltwise s0, which writes value output0, has its result or scratchpad "
        r"on top of value input0, which is alive until step 2"
    )
    with pytest.raises(RuntimeError, match=message):
        call(module, "twice", x, x, y)
    library.set_debug(False)
    x = random(*SHAPE)
    expected = x + x**2
    call(module, "twice", x, x, y)
    assert not np.allclose(y, expected), "the same fault without the watch is silent"


@pytest.mark.slow
@pytest.mark.parametrize(("value", "expected"), [("memory", "memory: step 0"), ("", "ran")])
def test_the_environment_variable_turns_it_on(tmp_path, value, expected):
    """Read once, when TVM loads the plug-in."""
    (tmp_path / "program").write_bytes(codec.encode(padded_input()))
    code = """
import numpy as np, tvm, tvm_ffi
from tvm_mxplan.byoc.onednn import library
from tvm_mxplan.core.program import codec
module = library.create_module("tail", codec.decode(open("program", "rb").read()), ())
shapes = (1, 2, 8, 8, 16), (1, 17, 8, 8)
module["tail"](*(tvm_ffi.from_dlpack(np.ones(shape, "float32")) for shape in shapes))
print("ran")
"""
    environment = {**os.environ, "TVM_MXPLAN_DEBUG": value}
    result = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env=environment, capture_output=True, text=True
    )
    assert expected in result.stdout + result.stderr


def test_pieces_of_a_whole_live_until_it_is_read():
    """No step writes the whole; its pieces are not dead when the step that wrote them is over."""
    first, last = random(16, 8, 8), random(16, 8, 8, seed=1)
    check(run(pieces_of_a_whole(), first, last), np.concatenate([first, last]) ** 2)


def padded_input() -> ir.Program:
    b = Builder("tail")
    src = b.input((1, 17, 8, 8), "aBcd16b")
    b.finish(square(b, src, b.local((1, 17, 8, 8), "aBcd16b")))
    return b.build()


def test_an_input_with_a_dirty_tail_is_caught():
    x = random(1, 2, 8, 8, 16)
    x[:, 1, :, :, 1:] = 0
    run(padded_input(), x)
    x[0, 1, 7, 7, 15] = 1e-30
    with pytest.raises(RuntimeError, match="eltwise s0 reads value input0 with 1 elements in the padding"):
        run(padded_input(), x)


def test_a_view_that_cuts_channels_off_has_no_zero_tail():
    """17 of 32 channels as a view: its padding is what the 15 others hold."""
    b = Builder("cut")
    src = b.reorder(b.input((1, 32, 8, 8)), "aBcd16b")
    cut = b.view(src, (1, 17, 8, 8), "aBcd16b")
    b.finish(square(b, cut, b.local((1, 17, 8, 8), "aBcd16b")))
    with pytest.raises(RuntimeError, match=r"eltwise s1 reads value t\d .* with 960 elements in the padding"):
        run(b.build(), random(1, 32, 8, 8))


def concat_without_copy(dirty: bool) -> ir.Program:
    """17 channels as 16 and 1, where they stand; the one may be a view of a block with 16 channels in it."""
    b = Builder("join")
    layout = "aBcd16b"
    whole = b.local((1, 17, 4, 4), layout)
    square(b, b.input((1, 16, 4, 4), layout), b.view(whole, (1, 16, 4, 4), layout))
    shape = (1, 16 if dirty else 1, 4, 4)
    last = square(b, b.reorder(b.input(shape), layout), b.view(whole, shape, layout, offset=1024))
    if dirty:
        last = b.view(last, (1, 1, 4, 4), layout)
    b.step(ir.Concat(1), src=[whole + 2, last], dst=whole)
    b.finish(whole)
    return b.build()


def test_a_tail_that_a_step_left_dirty_is_caught():
    first, last = random(1, 1, 4, 4, 16), random(1, 16, 4, 4)
    out = run(concat_without_copy(dirty=False), first, last[:, :1].copy())
    check(out[:, 16:], last[:, :1] ** 2)
    with pytest.raises(RuntimeError, match=r"concat s3 reads value t\d .* with 240 elements in the padding"):
        run(concat_without_copy(dirty=True), first, last)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["tiny", "squeezenet"])
def test_whole_networks_give_the_same_numbers_under_watch(name):
    model = zoo.load(name)
    ex = tvm_mxplan.compile(model)
    assert ex.report.regions
    inputs = zoo.random_inputs(model)
    under_watch = [tensor.numpy() for tensor in ex(**inputs)]
    library.set_debug(False)
    plain = [tensor.numpy() for tensor in ex(**inputs)]
    assert all(np.array_equal(a, b) for a, b in zip(under_watch, plain, strict=True))
