"""The region module: calls, errors, symbols, threads, saving, plans, and what it says of itself."""

from __future__ import annotations

import threading
from dataclasses import replace

import numpy as np
import pytest
import tvm_ffi
from program_builder import Builder, call, check, convolution, output_shape, random

from tvm_mxplan import InvalidInputError
from tvm_mxplan.byoc.onednn import library
from tvm_mxplan.core.program import codec
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.core.program.dims import Expr, Symbol

SAME = ir.Convolution((1, 1), (1, 1, 1, 1), (1, 1), 1)
W = random(17, 3, 3, 3)


def small(batch=2, layout="acdb"):
    """conv + relu between two reorders."""
    b = Builder("small")
    src = b.reorder(b.input((batch, 3, 8, 8)), layout)
    dst = b.local((batch, 17, 8, 8), layout)
    b.step(SAME, [ir.EltwisePostOp("relu", 0.0, 0.0)], src=src, weights=b.constant(W), dst=dst)
    b.finish(dst)
    return b


def symbolic():
    n = Symbol("n")
    b = small(batch=n)
    b.symbols.append(ir.SymbolBinding("n", 0, 0))
    return b


def expected(x):
    return np.maximum(convolution(x, W, SAME), 0)


def out(batch=2):
    return np.full((batch, 17, 8, 8), np.nan, "float32")


# --- symbols and threads ------------------------------------------------------------------------------


def test_symbolic_batch_keeps_a_bounded_number_of_specializations():
    module = symbolic().module()
    for batch in [*range(1, 21), 3, 20]:
        x, y = random(batch, 3, 8, 8), out(batch)
        call(module, "small", x, y)
        check(y, expected(x), 27)
    stats = library.stats(module)
    assert len(stats["specializations"]) == 16
    assert stats["evictions"] == 5
    # Packed weights are shared by all of them.
    assert stats["packed_weight_bytes"] < 3 * W.nbytes + 64


def test_empty_batch():
    module = symbolic().module()
    call(module, "small", random(0, 3, 8, 8), out(0))
    x, y = random(1, 3, 8, 8), out(1)
    call(module, "small", x, y)
    check(y, expected(x), 27)


def test_alias_at_a_symbolic_offset():
    """Two inputs are written side by side along a symbolic axis."""
    n = Symbol("n")
    b = Builder("join")
    b.symbols.append(ir.SymbolBinding("n", 0, 0))
    inputs = [b.input((n, 16)), b.input((n, 16))]
    whole = b.local((Expr("*", 2, n), 16))
    for i, src in enumerate(inputs):
        piece = b.view(whole, (n, 16), offset=Expr("*", i * 64, n))
        b.step(ir.Eltwise("square", 0.0, 0.0), src=src, dst=piece)
    b.step(ir.Reorder(), src=whole, dst=b.output((Expr("*", 2, n), 16)))
    module = b.module()
    for batch in (1, 5):
        x, z, y = random(batch, 16), random(batch, 16, seed=1), np.zeros((2 * batch, 16), "float32")
        call(module, "join", x, z, y)
        check(y, np.concatenate([x, z]) ** 2)


@pytest.mark.parametrize("make", [small, symbolic])
def test_eight_threads_on_one_module(make):
    module = make().module()
    failures = []

    def work(seed):
        try:
            for i in range(20):
                batch = 2 if make is small else 1 + (seed + i) % 3
                x, y = random(batch, 3, 8, 8, seed=100 * seed + i), out(batch)
                call(module, "small", x, y)
                check(y, expected(x), 27)
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    stats = library.stats(module)
    assert sum(entry["calls"] for entry in stats["specializations"]) == 160


# --- saving ----------------------------------------------------------------------------------------------


def reload(module):
    load = tvm_ffi.get_global_func("ffi.Module.load_from_bytes.mxplan_onednn")
    return load(saved(module))


def saved(module):
    return bytes(module["mxplan.save"]())


def test_saved_module_gives_the_same_numbers():
    module = small().module()
    again = reload(module)
    x, y, z = random(2, 3, 8, 8), out(), out()
    call(module, "small", x, y)
    call(again, "small", x, z)
    np.testing.assert_array_equal(y, z)
    assert saved(again) == saved(module)
    assert again["get_symbol"]() == "small"
    assert codec.decode(bytes(again["mxplan.program"]())) == small().build()


def test_garbage_is_rejected_as_a_module():
    load = tvm_ffi.get_global_func("ffi.Module.load_from_bytes.mxplan_onednn")
    data = saved(small().module())
    for broken in (b"", b"MXMD", b"nonsense", data[:-1], data + b"x", data[:40], b"XXXX" + data[4:]):
        with pytest.raises(ValueError, match=r"module|program|count|bytes|end"):
            load(broken)
    with pytest.raises(ValueError, match="version 7"):
        load(data[:4] + b"\x07\0\0\0" + data[8:])


def test_garbage_is_rejected_as_a_program():
    """Flipped and cut bytes either still describe a program or raise; nothing crashes."""
    library.load()
    describe = tvm_ffi.get_global_func("tvm_mxplan.onednn.describe")
    data = codec.encode(small().build())
    rng = np.random.default_rng(0)
    for size in range(0, len(data), 7):
        with pytest.raises(ValueError):
            describe(data[:size], [])
    survived = 0
    for _ in range(400):
        broken = bytearray(data)
        for _ in range(rng.integers(1, 4)):
            broken[rng.integers(len(data))] = rng.integers(256)
        try:
            describe(bytes(broken), [])
            survived += 1
        except (ValueError, RuntimeError):
            pass
    assert 0 < survived < 400


# --- errors of a call -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arrays", "error", "message"),
    [
        ([random(2, 3, 8, 8)], TypeError, "small takes 1 inputs and 1 outputs, not 1 tensors"),
        ([random(2, 3, 8, 9), out()], ValueError, r"input 0 \(input0\): expected shape \(2, 3, 8, 8\)"),
        ([random(2, 3, 8, 8), out(3)], ValueError, r"output 0 .* got \(3, 17, 8, 8\)"),
        ([random(2, 3, 64), out()], ValueError, "expected rank 4, got 3"),
        ([random(2, 3, 8, 8).astype("float64"), out()], TypeError, "expected float32, got float64"),
        ([random(2, 3, 8, 16)[..., ::2], out()], ValueError, "strides that are not compact"),
    ],
)
def test_wrong_arguments_are_named(arrays, error, message):
    module = small().module()
    with pytest.raises(error, match=message):
        call(module, "small", *arrays)


def test_no_tensor_is_named():
    with pytest.raises(TypeError, match="argument 1 is no tensor"):
        small().module()["small"](tvm_ffi.from_dlpack(random(2, 3, 8, 8)), 5)


def test_symbolic_shape_is_checked_against_the_symbol():
    with pytest.raises(ValueError, match=r"expected shape \(3, 17, 8, 8\), got \(2, 17, 8, 8\)"):
        call(symbolic().module(), "small", random(3, 3, 8, 8), out(2))


def test_wrong_constants_are_named():
    b = small()
    with pytest.raises(ValueError, match="has 1 constants, not 0"):
        library.create_module("small", b.build(), [])
    module = library.create_module("small", b.build(), [random(17, 3, 3, 2)])
    with pytest.raises(ValueError, match=r"constant 0 \(c1\) should be 1836 bytes"):
        module["mxplan.prepare"]()


def test_refused_step_is_named():
    b = Builder("bad")
    b.step(ir.Eltwise("sine", 0.0, 0.0), src=b.input((3,)), dst=b.output((3,)))
    with pytest.raises(RuntimeError, match="region bad: eltwise s0: eltwise algorithm sine is not known"):
        b.module()["mxplan.prepare"]()


# --- layouts at the boundary, plans, description -----------------------------------------------------


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


# --- symbols that are no extent of an input --------------------------------------------------------------


def by_number():
    """[2 * n, 16] squared, where n comes beside the tensors, behind a number that nobody needs."""
    n = Symbol("n")
    b = Builder("by_number")
    b.symbols.append(ir.SymbolBinding("n", -1, 1))
    rows = Expr("*", 2, n)
    dst = b.local((rows, 16))
    b.step(ir.Eltwise("square", 0.0, 0.0), src=b.input((rows, 16)), dst=dst)
    b.step(ir.Reorder(), src=dst, dst=b.output((rows, 16)))
    return b.module()


def test_a_symbol_among_the_numbers_beside_the_tensors():
    module = by_number()
    for n in (1, 3):
        x, y = random(2 * n, 16), np.zeros((2 * n, 16), "float32")
        call(module, "by_number", x, tvm_ffi.Shape([7, n]), y)
        check(y, x**2)


@pytest.mark.parametrize(
    ("numbers", "message"), [([3], "there are 1"), ([7, 2], r"expected shape \(4, 16\)")]
)
def test_numbers_that_are_missing_or_do_not_fit(numbers, message):
    x, y = random(6, 16), np.zeros((6, 16), "float32")
    with pytest.raises(ValueError, match=message):
        call(by_number(), "by_number", x, tvm_ffi.Shape(numbers), y)


# --- extents of 0 and 1 ----------------------------------------------------------------------------------


@pytest.mark.parametrize("layout", ["abcd", "acdb", "aBcd16b"])
def test_a_reduction_over_one_element_is_a_copy(layout):
    n = Symbol("n")
    b = Builder("mean")
    b.symbols.append(ir.SymbolBinding("n", 0, 2))
    src = b.reorder(b.input((2, 17, n, n)), layout)
    dst = b.local((2, 17, 1, 1))
    scale = b.constant(random(1, 17, 1, 1, seed=3))
    post_ops = [ir.BinaryPostOp("mul", scale), ir.EltwisePostOp("relu", 0.0, 0.0)]
    b.step(ir.Reduction("mean"), post_ops, src=src, dst=dst)
    b.finish(dst)
    module = b.module()
    for size in (3, 1):
        x, y = random(2, 17, size, size), np.zeros((2, 17, 1, 1), "float32")
        call(module, "mean", x, y)
        check(y, np.maximum(x.mean((2, 3), keepdims=True) * b.constants[0], 0), size * size)


def test_a_product_over_nothing_is_the_bias():
    k = Symbol("k")
    b = Builder("product")
    b.symbols.append(ir.SymbolBinding("k", 0, 1))
    dst = b.local((3, 7))
    bias = b.constant(random(1, 7, seed=3))
    post_ops = [ir.EltwisePostOp("relu", 0.0, 0.0)]
    b.step(ir.MatMul(), post_ops, src=b.input((3, k)), weights=b.input((k, 7)), bias=bias, dst=dst)
    b.finish(dst)
    module = b.module()
    for depth in (5, 0):
        x, w, y = random(3, depth), random(depth, 7, seed=1), np.full((3, 7), np.nan, "float32")
        call(module, "product", x, w, y)
        check(y, np.maximum(x @ w + b.constants[0], 0), 8)


@pytest.mark.parametrize("shape", [(2, 0), (0, 3), (2, 0, 4), (1, 3, 0, 5)])
def test_tensors_without_elements_are_moved(shape):
    """The library's reorders divide by their extents."""
    layout = "abcd"[: len(shape)]
    b = Builder("empty")
    moved = b.reorder(b.input(shape), layout[::-1])
    b.step(ir.Reorder(), src=moved, dst=b.output(shape))
    call(b.module(), "empty", np.zeros(shape, "float32"), np.zeros(shape, "float32"))


def test_a_result_made_of_nothing_is_refused():
    """There is no largest of no elements, and the library leaves the result unwritten."""
    b = Builder("empty")
    b.step(ir.Reduction("max"), src=b.input((2, 0)), dst=b.output((2, 1)))
    (info,) = library.describe(b.build()).steps
    assert "reduction s0: src: expected elements, got shape (2, 0) for a dst of" in info.error
