"""Plans and descriptions of a region module, and tensors in physical layouts at its boundary."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from program_builder import Builder, call, check, output_shape, random
from small_regions import SAME, W, expected, out, small, symbolic

from tvm_mxplan import InvalidInputError
from tvm_mxplan.byoc.onednn import library
from tvm_mxplan.core.program import program as ir


@pytest.mark.parametrize(("layout", "physical"), [("acdb", (2, 8, 8, 32)), ("aBcd16b", (2, 2, 8, 8, 16))])
def test_inputs_and_outputs_in_physical_layouts(layout, physical):
    b = Builder("square")
    src = b.input((2, 32, 8, 8), layout)
    b.step(ir.Eltwise("square", 0.0, 0.0), src=src, dst=b.output((2, 32, 8, 8), layout))
    module = b.module()
    x, y = random(*physical), np.zeros(physical, "float32")
    call(module, "square", x, y)
    check(y, x**2)
    with pytest.raises(ValueError, match="input 0"):
        call(module, "square", random(2, 32, 8, 8), y)
    with pytest.raises(ValueError, match="output 0"):
        call(module, "square", x, random(2, 32, 8, 8))


def test_padded_boundary_takes_the_padded_shape():
    b = Builder("square")
    src = b.input((1, 17, 8, 8), "aBcd16b")
    b.step(ir.Eltwise("square", 0.0, 0.0), src=src, dst=b.output((1, 17, 8, 8), "aBcd16b"))
    module = b.module()
    x = random(1, 2, 8, 8, 16)
    x[:, 1, :, :, 1:] = 0
    y = np.full_like(x, np.nan)
    call(module, "square", x, y)
    check(y, x**2)
    with pytest.raises(ValueError, match=r"expected shape \(1, 2, 8, 8, 16\) \(layout aBcd16b\)"):
        call(module, "square", random(1, 17, 8, 8, 1), y)


def planned(program, slack=0):
    """Every local one after the other, then the scratchpads."""
    info = library.describe(program)
    top = 0
    values, steps = [], []
    for value, got in zip(program.values, info.values, strict=True):
        offset = -1
        if value.kind == "local" and value.alias_of < 0:
            offset, top = top, (top + got.nbytes + 63) // 64 * 64
        values.append(replace(value, nbytes=got.nbytes - slack, offset=offset))
    for step, answer in zip(program.steps, info.steps, strict=True):
        steps.append(replace(step, scratchpad_offset=top, scratchpad_bytes=answer.scratchpad_bytes))
        top += (answer.scratchpad_bytes + 63) // 64 * 64
    return replace(program, values=tuple(values), steps=tuple(steps), arena_bytes=top)


def test_planned_offsets_are_used():
    program = planned(small(layout="aBcd16b").build())
    module = library.create_module("small", program, [W])
    x, y = random(2, 3, 8, 8), out()
    call(module, "small", x, y)
    check(y, expected(x), 27)
    (stats,) = library.stats(module)["specializations"]
    assert stats["arena_bytes"] == program.arena_bytes
    assert stats["spilled_scratchpad_bytes"] == 0


def test_a_scratchpad_that_outgrew_its_plan_stands_behind_the_arena():
    """More threads than the plan was made with, say."""
    program = planned(small(layout="abcd").build())
    needed = program.steps[1].scratchpad_bytes
    assert needed > 0, "the case needs a convolution with a scratchpad"
    steps = list(program.steps)
    steps[1] = replace(steps[1], scratchpad_bytes=needed - 64)
    module = library.create_module("small", replace(program, steps=tuple(steps)), [W])
    x, y = random(2, 3, 8, 8), out()
    call(module, "small", x, y)
    check(y, expected(x), 27)
    (stats,) = library.stats(module)["specializations"]
    assert stats["spilled_scratchpad_bytes"] >= needed
    assert stats["arena_bytes"] >= program.arena_bytes + needed


def aligned(nbytes, skip=0):
    """Bytes that begin ``skip`` behind a multiple of 64."""
    whole = np.zeros(nbytes + 128, np.uint8)
    first = -whole.ctypes.data % 64 + skip
    return whole[first : first + nbytes]


@pytest.mark.parametrize("watched", [False, True])
def test_a_lent_arena_takes_the_place_of_the_own_one(watched):
    """Alternating arenas move the values; bytes of the arena outside of the plan stay as they are."""
    program = planned(small(layout="aBcd16b").build())
    module = library.create_module("small", program, [W])
    x = random(2, 3, 8, 8)
    arenas = [aligned(program.arena_bytes + 64) for _ in range(2)]
    library.set_debug(watched)
    try:
        for arena in (arenas[0], arenas[0], arenas[1], arenas[0]):
            arena[:] = 0
            arena[program.arena_bytes :] = 7
            y = out()
            call(module, "small", x, y, arena)
            check(y, expected(x), 27)
            assert arena[: program.arena_bytes].any()
            assert (arena[program.arena_bytes :] == 7).all()
        y = out()
        call(module, "small", x, y)
        check(y, expected(x), 27)
    finally:
        library.set_debug(False)
    (stats,) = library.stats(module)["specializations"]
    assert stats["contexts"] == 1


def test_a_lent_arena_that_does_not_fit_is_refused():
    program = planned(small().build())
    module = library.create_module("small", program, [W])
    nbytes = program.arena_bytes
    for arena, error, message in (
        (aligned(nbytes - 1), ValueError, f"expected at least {nbytes} bytes, got {nbytes - 1}"),
        (aligned(nbytes, skip=8), ValueError, "does not begin at a multiple of 64"),
        (aligned(2 * nbytes)[::2], ValueError, "strides that are not compact"),
        (np.zeros(nbytes, "float32"), TypeError, "expected uint8 of rank 1, got float32 of rank 1"),
    ):
        with pytest.raises(error, match=message):
            call(module, "small", random(2, 3, 8, 8), out(), arena)


def test_a_plan_with_too_few_bytes_is_refused():
    program = planned(small().build())
    for wrong in (
        planned(small().build(), slack=4),
        replace(program, arena_bytes=100),
        program.with_value(1, offset=program.arena_bytes - 64),
    ):
        with pytest.raises(InvalidInputError, match=r"bytes leaves the arena|was planned with"):
            library.create_module("small", wrong, [W])["mxplan.prepare"]()


def test_own_plan_reuses_bytes():
    b = Builder("chain")
    src = b.input((1, 16, 32, 32))
    for _ in range(6):
        dst = b.local((1, 16, 32, 32))
        b.step(ir.Eltwise("relu", 0.0, 0.0), src=src, dst=dst)
        src = dst
    b.finish(src)
    module = b.module()
    module["mxplan.prepare"]()
    assert library.stats(module)["specializations"][0]["arena_bytes"] == 2 * 16 * 32 * 32 * 4


def test_describe_settles_any():
    b = Builder()
    x = b.input((1, 32, 14, 14), "any")
    shape = output_shape((1, 32, 14, 14), (64, 32, 3, 3), SAME)
    y, z = b.local(shape, "any"), b.local((1, 64, 7, 7), "any")
    b.step(SAME, src=x, weights=b.constant(random(64, 32, 3, 3)), dst=y)
    b.step(ir.Pooling("max", (2, 2), (2, 2), (0, 0), (1, 1)), src=y, dst=z)
    answer = library.describe(b.build())
    conv, pool = answer.steps
    assert conv.error == pool.error == ""
    assert not conv.is_reference
    assert conv.weights_bytes >= 64 * 32 * 9 * 4
    assert answer.values[x].layout not in ("any", "opaque")
    assert answer.values[y].layout == answer.values[z].layout
    assert answer.values[y].nbytes == 64 * 14 * 14 * 4


def test_describe_lets_data_movement_keep_the_layout():
    b = Builder()
    x = b.input((1, 32, 8, 8), "acdb")
    padded, cut = b.local((1, 32, 10, 10), "any"), b.local((1, 16, 4, 4), "any")
    b.step(ir.Pad((0, 0, 1, 1), 0.0), src=x, dst=padded)
    b.step(ir.Slice((0, 3, 1, 1)), src=padded, dst=cut)
    answer = library.describe(b.build())
    assert [value.layout for value in answer.values] == ["acdb"] * 3


def test_describe_counts_padding():
    b = Builder()
    b.reorder(b.input((1, 17, 4, 4)), "aBcd16b")
    answer = library.describe(b.build())
    assert [value.nbytes for value in answer.values] == [17 * 16 * 4, 32 * 16 * 4]


def test_describe_with_symbols():
    answer = library.describe(symbolic().build(), [5])
    assert answer.values[0].nbytes == 5 * 3 * 64 * 4
    with pytest.raises(ValueError, match="has 1 symbols, not 0"):
        library.describe(symbolic().build())


def test_describe_goes_on_after_a_refusal():
    b = small()
    b.step(ir.Shuffle(1, 5), src=1, dst=b.local((2, 3, 8, 8)))
    b.values.append(ir.Value("odd", (3,), "complex64", "local", "a"))
    answer = library.describe(b.build())
    assert [bool(step.error) for step in answer.steps] == [False, False, False, True]
    assert "shuffle s3: attribute groups: 3 channels in 5 groups" in answer.steps[3].error
    assert answer.values[-1].nbytes == -1


def test_text_lists_values_and_steps():
    text = small().module().inspect_source()
    assert "region small" in text
    assert "convolution s1" in text
    assert "f32" in text or "float32" in text
