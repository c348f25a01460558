"""Programs whose memory is wrong: refused by name before they run, and what is right is not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from program_builder import Builder, call, check, random
from squares import pieces_of_a_whole, square

import tvm_mxplan
from tvm_mxplan.byoc.onednn import library
from tvm_mxplan.core.program import program as ir

SHAPE = (1, 16, 8, 8)
BYTES = 4096
RELU = ir.EltwisePostOp("relu", 0.0, 0.0)
SAME = ir.Convolution((1, 1), (1, 1, 1, 1), (1, 1), 1)


def planned(program: ir.Program, arena: int) -> ir.Program:
    """With scratchpads of no bytes, as elementwise steps have."""
    steps = tuple(replace(step, scratchpad_offset=0, scratchpad_bytes=0) for step in program.steps)
    return replace(program, steps=steps, arena_bytes=arena)


def chain(second: int = BYTES, arena: int = 2 * BYTES) -> ir.Program:
    """input -> t1 -> t2; t3 = t1 + t2 -> output.  t1 lives over the step that writes t2 at ``second``."""
    b = Builder("chain")
    first = square(b, b.input(SHAPE), b.local(SHAPE, offset=0, nbytes=BYTES))
    other = square(b, first, b.local(SHAPE, offset=second, nbytes=BYTES))
    b.step(ir.Binary("add"), src=first, src1=other, dst=b.output(SHAPE))
    return planned(b.build(), arena)


def run(program: ir.Program, *inputs: np.ndarray, constants: Sequence[Any] = ()) -> np.ndarray:
    (dst,) = program.of_kind("output")
    out = np.empty(program.values[dst].shape, "float32")
    call(library.create_module(program.name, program, constants), program.name, *inputs, out)
    return out


def refused(program: ir.Program, message: str, constants: Sequence[Any] = ()) -> None:
    module = library.create_module(program.name, program, constants)
    with pytest.raises(tvm_mxplan.InvalidInputError, match=f"region {program.name}: {message}"):
        module["mxplan.prepare"]()


def test_a_right_plan_gives_the_numbers():
    x = random(*SHAPE)
    check(run(chain(), x), x**2 + x**4)


@pytest.mark.parametrize("second", [BYTES - 64, 64, 0])
def test_values_that_are_alive_together_and_share_bytes(second):
    """t1 and t2 are alive together, and what t2 overwrites is read by the step that writes it."""
    message = "eltwise s1: dst: t2 overlaps t1, which the step reads and cannot write over"
    refused(chain(second), message)


def test_offsets_are_aligned():
    refused(chain(BYTES + 32, 3 * BYTES), "value t2: expected an offset that is a multiple of 64, got 4128")


def test_views_begin_at_whole_elements():
    b = Builder("odd")
    whole = square(b, b.input(SHAPE), b.local(SHAPE))
    b.step(ir.Reorder(), src=b.view(whole, (1, 15, 8, 8), offset=6), dst=b.output((1, 15, 8, 8)))
    refused(b.build(), "value t2: expected a place in t1 at a multiple of 4 bytes, got byte 6")


def with_scratchpad() -> tuple[ir.Program, np.ndarray, int]:
    """t1 is read after the convolution t2, which has a scratchpad; its bytes."""
    b = Builder("pad")
    shape, w = (2, 17, 8, 8), random(17, 17, 3, 3)
    src = square(b, b.input(shape), b.local(shape))
    dst = b.local(shape)
    b.step(SAME, src=src, weights=b.constant(w), dst=dst)
    b.step(ir.Binary("add"), src=src, src1=dst, dst=b.output(shape))
    program = b.build()
    info = library.describe(program)
    needed = info.steps[1].scratchpad_bytes
    assert needed > 0, "the case needs a convolution with a scratchpad"
    values, top = list(program.values), 0
    for number in (src, dst):
        nbytes = info.values[number].nbytes
        values[number] = replace(values[number], offset=top, nbytes=nbytes)
        top += -(-nbytes // 64) * 64
    steps = tuple(
        replace(step, scratchpad_offset=top, scratchpad_bytes=answer.scratchpad_bytes)
        for step, answer in zip(program.steps, info.steps, strict=True)
    )
    return replace(program, values=tuple(values), steps=steps, arena_bytes=top + needed), w, dst


def with_scratchpad_at(program: ir.Program, offset: int) -> ir.Program:
    steps = list(program.steps)
    steps[1] = replace(steps[1], scratchpad_offset=offset)
    return replace(program, steps=tuple(steps))


def test_scratchpads_stand_beside_what_the_step_touches():
    """One on the result would break what the library keeps there, addresses included."""
    good, w, dst = with_scratchpad()
    run(good, random(2, 17, 8, 8), constants=[w])
    refused(with_scratchpad_at(good, 64), r"convolution s1: the scratchpad overlaps t\d", [w])
    there = good.values[dst].offset
    refused(with_scratchpad_at(good, there), r"convolution s1: the scratchpad overlaps t\d", [w])
    message = "convolution s1: scratchpad: expected an offset that is a multiple of 64"
    refused(replace(with_scratchpad_at(good, 4), arena_bytes=good.arena_bytes + 64), message, [w])


def test_a_scratchpad_on_a_value_that_is_read_later():
    """The step itself does not touch the value."""
    b = Builder("late")
    shape, w = (2, 17, 8, 8), random(17, 17, 3, 3)
    src = b.input(shape)
    early = square(b, src, b.local(shape, offset=0))
    dst = b.local(shape, offset=1 << 19)
    b.step(SAME, src=src, weights=b.constant(w), dst=dst)
    b.step(ir.Binary("add"), src=early, src1=dst, dst=b.output(shape))
    steps = [replace(s, scratchpad_offset=1 << 20, scratchpad_bytes=1 << 20) for s in b.steps]
    good = replace(b.build(1 << 21), steps=tuple(steps))
    run(good, random(*shape), constants=[w])
    refused(with_scratchpad_at(good, 0), "binary s2: value t1 is read, but its byte 0 of", [w])


def in_place(read_again: bool) -> ir.Program:
    """t2 takes the bytes of t1, which may be read only by the step that does so."""
    b = Builder("place")
    first = square(b, b.input(SHAPE), b.local(SHAPE, offset=0, nbytes=BYTES))
    over = square(b, first, b.view(first, SHAPE))
    b.step(ir.Binary("add"), src=over, src1=first if read_again else over, dst=b.output(SHAPE))
    return planned(b.build(), BYTES)


def test_a_result_in_place_is_fine_where_its_source_dies():
    x = random(*SHAPE)
    check(run(in_place(read_again=False), x), 2 * x**4)
    refused(in_place(read_again=True), "binary s2: value t1 is read, but its byte 0 of 4096")


@pytest.mark.parametrize("shape", [(), (1,), (3,)])
def test_a_result_in_place_of_any_rank(shape):
    b = Builder("place")
    first, src = b.local(shape), b.input(shape)
    over, dst = b.view(first, shape), b.output(shape)
    for a, result in ((src, first), (first, over), (over, dst)):
        b.step(ir.Eltwise("square", 0.0, 0.0), src=a, dst=result)
        b.steps[-1] = replace(b.steps[-1], library="host")
    x = np.asarray(random(*shape, seed=5))
    check(run(b.build(), x), x**8)


@pytest.mark.parametrize("kind", ["convolution", "softmax", "reorder", "later bytes"])
def test_only_elementwise_steps_work_in_place(kind):
    b = Builder("place")
    first = square(b, b.input(SHAPE), b.local((1, 17, 8, 8) if kind == "later bytes" else SHAPE))
    b.values[first] = replace(b.values[first], shape=SHAPE)
    over = b.view(first, SHAPE, "acdb" if kind == "reorder" else "")
    if kind == "convolution":
        b.step(SAME, src=first, weights=b.constant(random(16, 16, 3, 3)), dst=over)
    elif kind == "softmax":
        b.step(ir.Softmax("softmax", 1), src=first, dst=over)
    elif kind == "reorder":
        b.step(ir.Reorder(), src=first, dst=over)
    else:
        b.values[first] = replace(b.values[first], shape=(2, 16, 8, 8))
        b.values[0] = replace(b.values[0], shape=(2, 16, 8, 8))
        half = b.view(first, SHAPE)
        b.values[over] = replace(b.values[over], alias_of=first, alias_offset=256)
        square(b, half, over)
    b.finish(over)
    refused(b.build(), r"\w+ s1: dst: t2 overlaps t\d, which the step reads", b.constants)


def test_a_sum_adds_what_is_there():
    b = Builder("sum")
    src = b.input(SHAPE)
    before = square(b, src, b.local(SHAPE))
    weights = b.constant(random(16, 16, 3, 3))
    b.step(SAME, [ir.SumPostOp(1.0), RELU], src=src, weights=weights, dst=b.view(before, SHAPE))
    b.finish(len(b.values) - 1)
    program = b.build()
    library.create_module("sum", program, b.constants)["mxplan.prepare"]()
    refused(replace(program, steps=program.steps[1:]), "convolution s1: value t1 is read, but", b.constants)
    dst = program.steps[1].dst
    other = program.with_value(dst, layout="acdb")
    refused(other, "convolution s1: post-op sum: expected dst as t1 is", b.constants)
    none = program.with_value(dst, alias_of=-1)
    refused(none, "convolution s1: post-op sum: expected dst to be an alias of what is added", b.constants)
    step = program.steps[1]
    step = replace(
        step, operands=tuple(replace(o, value=before) if o.role == "src" else o for o in step.operands)
    )
    twice = replace(program, steps=(program.steps[0], step, program.steps[2]))
    refused(twice, "convolution s1: dst: t3 overlaps t1, which the step reads", b.constants)


def test_a_value_read_before_it_is_written():
    program = chain()
    swapped = replace(program, steps=tuple(program.steps[i] for i in (1, 0, 2)))
    refused(swapped, "eltwise s1: value t1 is read, but its byte 0 of 4096 is not written yet")


def test_a_value_without_bytes_is_written_before_it_is_read():
    b = Builder("early")
    out = b.output((3, 0))
    square(b, out, out)
    refused(b.build(), "eltwise s0: value output0 is read, but its byte 0 of 0 is not written yet")


def test_a_value_that_no_step_writes():
    b = Builder("never")
    b.finish(b.local(SHAPE))
    refused(b.build(), "reorder s0: value t0 is read, but its byte 0 of 4096 is not written yet")


def test_a_whole_is_read_when_all_of_its_pieces_are_there():
    program = pieces_of_a_whole()
    first, last = random(16, 8, 8), random(16, 8, 8, seed=1)
    check(run(program, first, last), np.concatenate([first, last]) ** 2)
    one = replace(program, steps=(program.steps[0], program.steps[2]))
    refused(one, "reorder s2: value t0 is read, but its byte 4096 of 8192 is not written yet")


def test_a_piece_is_still_itself_behind_its_concatenation():
    b = Builder("join")
    whole = b.local((1, 32, 8, 8))
    pieces = [square(b, b.input(SHAPE), b.view(whole, SHAPE, offset=BYTES * at)) for at in range(2)]
    b.step(ir.Concat(1), src=pieces, dst=whole)
    again = square(b, pieces[1], b.local(SHAPE))
    b.step(ir.Concat(1), src=[whole, again], dst=b.output((1, 48, 8, 8)))
    first, last = random(*SHAPE), random(*SHAPE, seed=1)
    check(run(b.build(), first, last), np.concatenate([first**2, last**2, last**4], 1))


def test_a_piece_that_is_copied_stands_elsewhere():
    """Two plans that only offsets bring together."""
    b = Builder("join")
    first, second = (square(b, b.input(SHAPE), b.local(SHAPE, offset=at)) for at in (0, BYTES))
    whole = b.local((1, 32, 8, 8), offset=2 * BYTES)
    b.step(ir.Concat(1), src=[first, second], dst=whole)
    b.finish(whole)
    good = planned(b.build(), 4 * BYTES)
    library.create_module("join", good)["mxplan.prepare"]()
    for number in (first, second):
        for place in (2 * BYTES, 3 * BYTES, 2 * BYTES + 64):
            wrong = good.with_value(number, offset=place)
            refused(wrong, r"concat s2: dst: t\d overlaps t\d, which the step reads and cannot write over")


def test_every_output_is_written():
    b = Builder("half")
    out = b.output((1, 32, 8, 8))
    square(b, b.input(SHAPE), b.view(out, SHAPE))
    refused(b.build(), "output output0: byte 4096 of 8192 is never written")


def test_what_an_output_holds_is_not_overwritten():
    b = Builder("over")
    src, out = b.input(SHAPE), b.output((1, 32, 8, 8))
    half = square(b, src, b.view(out, SHAPE, offset=BYTES))
    b.step(ir.Concat(1), src=[src, src], dst=out)
    refused(b.build(), "concat s1: dst: output0 overwrites what an earlier step wrote into output output0")
    b.steps[1] = replace(
        b.steps[1], operands=tuple(ir.Operand(r, v) for r, v in (("src", src), ("src", half), ("dst", out)))
    )
    b.module()["mxplan.prepare"]()


def test_a_result_belongs_to_one_step():
    b = Builder("again")
    src, dst = b.input(SHAPE), b.output(SHAPE)
    square(b, src, dst)
    square(b, src, dst)
    with pytest.raises(ValueError, match="step s1: dst output0 is the result of an earlier step"):
        b.module()
