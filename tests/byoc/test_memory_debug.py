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

import tvm_mxplan
from tvm_mxplan.byoc.onednn import library
from tvm_mxplan.core import codec
from tvm_mxplan.core import program as ir
from tvm_mxplan.testing import zoo

SHAPE = (1, 16, 8, 8)
BYTES = 4096


@pytest.fixture(autouse=True)
def watched() -> Iterator[None]:
    library.set_debug(True)
    yield
    library.set_debug(False)


def square(b: Builder, src: int, dst: int) -> int:
    b.step(ir.Eltwise("square", 0.0, 0.0), src=src, dst=dst)
    return dst


def chain(second: int = BYTES, arena: int = 2 * BYTES) -> ir.Program:
    """input -> t1 -> t2; t3 = t1 + t2 -> output.  t1 lives over the step that writes t2 at ``second``."""
    b = Builder("chain")
    first = square(b, b.input(SHAPE), b.local(SHAPE, offset=0, nbytes=BYTES))
    other = square(b, first, b.local(SHAPE, offset=second, nbytes=BYTES))
    b.step(ir.Binary("add"), src=first, src1=other, dst=b.output(SHAPE))
    program = b.build(arena)
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


@pytest.mark.parametrize("second", [BYTES - 64, 64, 0])
def test_an_offset_that_moved_is_caught(second):
    """t1 and t2 are alive together and share bytes."""
    message = (
        r"region chain: memory: step 1, eltwise s1, which writes value t2 \(bytes \d+ to \d+\), has its "
        r"result or scratchpad on top of value t1 \(bytes 0 to 4096\), which is alive until step 3"
    )
    with pytest.raises(RuntimeError, match=message):
        run(chain(second), random(*SHAPE))


def test_the_same_fault_without_the_watch_is_silent():
    library.set_debug(False)
    x = random(*SHAPE)
    assert not np.allclose(run(chain(second=64), x), x**2 + x**4)


@pytest.mark.parametrize(("value", "expected"), [("memory", "memory: step 1"), ("", "ran")])
def test_the_environment_variable_turns_it_on(tmp_path, value, expected):
    """Read once, when TVM loads the plug-in."""
    (tmp_path / "program").write_bytes(codec.encode(chain(second=64)))
    code = f"""
import numpy as np, tvm, tvm_ffi
from tvm_mxplan.byoc.onednn import library
from tvm_mxplan.core import codec
module = library.create_module("chain", codec.decode(open("program", "rb").read()), ())
module["chain"](*(tvm_ffi.from_dlpack(np.ones({SHAPE}, "float32")) for _ in range(2)))
print("ran")
"""
    environment = {**os.environ, "TVM_MXPLAN_DEBUG": value}
    result = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env=environment, capture_output=True, text=True
    )
    assert expected in result.stdout + result.stderr


def test_a_scratchpad_on_a_living_value_is_caught():
    """t1 is read after the convolution, whose scratchpad stands on it."""
    b = Builder("pad")
    shape, w = (2, 17, 8, 8), random(17, 17, 3, 3)
    src = square(b, b.input(shape), b.local(shape))
    same = ir.Convolution((1, 1), (1, 1, 1, 1), (1, 1), 1)
    dst = b.local(shape)
    b.step(same, src=src, weights=b.constant(w), dst=dst)
    b.step(ir.Binary("add"), src=src, src1=dst, dst=b.output(shape))
    program = b.build()
    info = library.describe(program)
    assert info.steps[1].scratchpad_bytes > 0, "the case needs a convolution with a scratchpad"
    values, top = list(program.values), 0
    for number in (src, dst):
        nbytes = info.values[number].nbytes
        values[number] = replace(values[number], offset=top, nbytes=nbytes)
        top += -(-nbytes // 64) * 64
    steps = [
        replace(step, scratchpad_offset=top, scratchpad_bytes=answer.scratchpad_bytes)
        for step, answer in zip(program.steps, info.steps, strict=True)
    ]
    arena = top + info.steps[1].scratchpad_bytes
    good = replace(program, values=tuple(values), steps=tuple(steps), arena_bytes=arena)
    run(good, random(*shape), constants=[w])
    steps[1] = replace(steps[1], scratchpad_offset=64)
    with pytest.raises(RuntimeError, match=r"convolution s1, .* result or scratchpad on top of value t1"):
        run(replace(good, steps=tuple(steps)), random(*shape), constants=[w])
    steps[1] = replace(steps[1], scratchpad_offset=values[dst].offset)
    with pytest.raises(RuntimeError, match="s1 has its scratchpad on top of its result, value t"):
        run(replace(good, steps=tuple(steps)), random(*shape), constants=[w])


def in_place(read_again: bool) -> ir.Program:
    """t2 takes the bytes of t1, which may be read only by the step that does so."""
    b = Builder("place")
    first = square(b, b.input(SHAPE), b.local(SHAPE, offset=0, nbytes=BYTES))
    over = square(b, first, b.view(first, SHAPE))
    b.step(ir.Binary("add"), src=over, src1=first if read_again else over, dst=b.output(SHAPE))
    program = b.build(BYTES)
    steps = tuple(replace(step, scratchpad_offset=0, scratchpad_bytes=0) for step in program.steps)
    return replace(program, steps=steps)


def test_a_result_in_place_is_fine_where_its_source_dies():
    x = random(*SHAPE)
    check(run(in_place(read_again=False), x), 2 * x**4)


def test_a_life_cut_short_is_caught():
    """The result goes in place over a source that a later step still reads."""
    with pytest.raises(RuntimeError, match=r"eltwise s1, .* changed value t1 .* alive until step 3"):
        run(in_place(read_again=True), random(*SHAPE))


def test_a_value_read_before_it_is_written_is_caught():
    program = chain()
    with pytest.raises(RuntimeError, match=r"eltwise s1 reads value t1 .* before any step has written"):
        run(replace(program, steps=tuple(program.steps[i] for i in (1, 0, 2))), random(*SHAPE))


def test_pieces_of_a_whole_live_until_it_is_read():
    """No step writes the whole; its pieces are not dead when the step that wrote them is over."""
    b = Builder("pieces")
    whole = b.local((32, 8, 8))
    for at in range(2):
        square(b, b.input((16, 8, 8)), b.view(whole, (16, 8, 8), offset=4096 * at))
    b.finish(whole)
    first, last = random(16, 8, 8), random(16, 8, 8, seed=1)
    check(run(b.build(), first, last), np.concatenate([first, last]) ** 2)


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
