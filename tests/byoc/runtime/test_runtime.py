"""The region module: calls, errors, symbols, threads, saving, plans, and what it says of itself."""

from __future__ import annotations

import threading
from dataclasses import replace

import ml_dtypes
import numpy as np
import pytest
import tvm_ffi
from program_builder import Builder, call, check, random
from small_regions import W, expected, out, small, symbolic

from tvm_mxplan.byoc.onednn import library
from tvm_mxplan.byoc.onednn.backend import OneDNN
from tvm_mxplan.core.program import codec
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.core.program.dims import Expr, Symbol

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


STATE = ir.Program(
    "state",
    tuple(
        ir.Value(name, (4, 3), "float32", kind, "ab", index, state=0)
        for name, kind, index in (("w", "input", 0), ("g", "output", 0))
    ),
    (ir.Step("relu", ir.Eltwise("relu", 0.0, 0.0), (ir.Operand("src", 0), ir.Operand("dst", 1))),),
)


def test_a_state_and_what_changes_it_are_taken():
    (info,) = library.describe(STATE).steps
    assert info.implementation


@pytest.mark.parametrize(
    ("program", "message"),
    [
        (STATE.with_value(0, state=-2), "value w is state -2, but no input or output, or below 0"),
        (STATE.with_value(0, kind="constant"), "value w is state 0, but no input or output"),
        (STATE.with_value(1, kind="local", index=-1), "value g is state 0, but no input or output"),
        (STATE.with_value(1, layout="ba"), "values w and g are state 0, but differ in shape, type or layout"),
        (STATE.with_value(1, shape=(3, 4)), "values w and g are state 0, but differ"),
        (STATE.with_value(1, dtype="bfloat16"), "values w and g are state 0, but differ"),
        (
            replace(STATE, values=(*STATE.values, replace(STATE.values[1], name="h", index=1))),
            "value h is the second output of state 0",
        ),
    ],
)
def test_states_that_cannot_be_are_refused_by_the_decoder(program, message):
    describe = tvm_ffi.get_global_func("tvm_mxplan.onednn.describe")
    with pytest.raises(ValueError, match=message):
        describe(codec.encode(program), [])


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


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("layout", ["abcd", "acdb", "aBcd16b"])
@pytest.mark.parametrize(
    ("algorithm", "number"), [("sum", 0), ("mul", 1), ("max", -np.inf), ("min", np.inf), ("mean", np.nan)]
)
def test_reductions_of_no_elements(algorithm, number, layout, dtype):
    """The library leaves their results unwritten; what is behind them is done as ever."""
    if dtype == "bfloat16" and OneDNN().lacks(dtype):
        pytest.skip(OneDNN().lacks(dtype))
    post_ops = (ir.EltwisePostOp("abs", 0.0, 0.0),) if algorithm == "max" else ()
    b = Builder("empty")
    reduced = b.local((2, 3, 1, 1), layout, dtype=dtype)
    b.step(ir.Reduction(algorithm), post_ops, src=b.input((2, 3, 0, 1), dtype=dtype), dst=reduced)
    b.step(ir.Reorder(), src=reduced, dst=b.output((2, 3, 1, 1)))
    result = np.ones((2, 3, 1, 1), "float32")
    data = np.zeros((2, 3, 0, 1), getattr(ml_dtypes, dtype, dtype))
    call(b.module(), "empty", data, result)
    np.testing.assert_array_equal(result, np.full_like(result, np.inf if post_ops else number))
