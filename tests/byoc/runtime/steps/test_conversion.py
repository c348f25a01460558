"""Conversions between real numbers and integers by our own kernels: types, orders of axes, ends, threads."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from program_builder import Array, Builder, call, random

from tvm_mxplan.byoc.onednn import library
from tvm_mxplan.core.element_types import numpy_type
from tvm_mxplan.core.layout.layout import parse_layout
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.execution.threads import with_threads

U8, S8 = (0.0237, 121, "uint8"), (0.0311, -7, "int8")
Numbers = tuple[float, int, str]
REAL = ("float32", "bfloat16")
IMAGES = [((2, 3, 37, 5), "abcd", "acdb"), ((1, 3, 16, 24), "abcd", "acdb"), ((2, 4, 6, 9), "abcd", "acdb")]
TURNS = [
    *IMAGES,
    ((2, 67, 5, 7), "abcd", "acdb"),
    ((2, 67, 5, 7), "acdb", "abcd"),
    ((1, 3, 33, 40), "adbc", "abcd"),  # a transposed key
    ((1, 3, 5, 259), "acbd", "abcd"),
    ((1, 3, 5, 259), "abcd", "acbd"),
    ((32, 48), "ba", "ab"),
    ((70, 3), "ba", "ab"),
]


def builder(
    shape: tuple[int, ...], src: Numbers | str, dst: Numbers | str, layouts: tuple[str, str] = ("", "")
) -> Builder:
    """One conversion; a side is a real type, or the numbers of its integers."""
    b = Builder()
    operands, types = {}, {}
    for side, numbers in (("src", src), ("dst", dst)):
        if isinstance(numbers, str):
            types[side] = numbers
            continue
        scale, zero, types[side] = numbers
        operands[f"{side}_scale"] = b.constant(np.array([scale], "float32"))
        if zero:
            operands[f"{side}_zero_point"] = b.constant(np.array([zero], "int32"))
    operands["src"] = b.input(shape, layouts[0], types["src"])
    operands["dst"] = b.output(shape, layouts[1], types["dst"])
    b.step(ir.Quantization(0), **operands)
    return b


def reorder(shape: tuple[int, ...], src: str, dst: str, dtype: str = "float32", written: str = "") -> Builder:
    b = Builder()
    b.step(ir.Reorder(), src=b.input(shape, src, dtype), dst=b.output(shape, dst, written or dtype))
    return b


def named(b: Builder) -> str:
    (info,) = library.describe(b.build()).steps
    assert not info.error, info.error
    return str(info.implementation)


def real(x: Array, numbers: Numbers | str) -> Array:
    if isinstance(numbers, str):
        return x.astype("float32")
    scale, zero, _ = numbers
    return (x.astype("int32") - zero).astype("float32") * np.float32(scale)


def expected(x: Array, src: Numbers | str, dst: Numbers | str) -> Array:
    """ONNX's definition, each operation in float32."""
    numbers = real(x, src)
    if isinstance(dst, str):
        return numbers.astype(ml_dtypes.bfloat16 if dst == "bfloat16" else dst)
    scale, zero, dtype = dst
    ends = np.iinfo(dtype)
    return np.clip(np.rint(numbers / np.float32(scale)) + zero, ends.min, ends.max).astype(dtype)


def sample(shape: tuple[int, ...], numbers: Numbers | str, seed: int = 0) -> Array:
    """Numbers beyond both ends of integers of 8 bits."""
    if isinstance(numbers, str):
        wide = random(*shape, seed=seed) * np.float32(3)
        return wide.astype(ml_dtypes.bfloat16 if numbers == "bfloat16" else numbers)
    ends = np.iinfo(numbers[2])
    return np.random.default_rng(seed).integers(ends.min, ends.max + 1, shape).astype(numbers[2])


def stored(x: Array, layout: str) -> Array:
    return np.ascontiguousarray(x.transpose(parse_layout(layout).order)) if layout else x


def plain(x: Array, layout: str) -> Array:
    return x.transpose(np.argsort(parse_layout(layout).order)) if layout else x


def check(
    shape: tuple[int, ...], src: Numbers | str, dst: Numbers | str, layouts: tuple[str, str] = ("", "")
) -> None:
    b = builder(shape, src, dst, layouts)
    assert named(b).startswith("conversion:")
    x = sample(shape, src)
    right = expected(x, src, dst)
    out = np.zeros_like(stored(right, layouts[1]))
    call(b.module(), b.name, stored(x, layouts[0]), out)
    np.testing.assert_array_equal(plain(out, layouts[1]), right)


@pytest.mark.parametrize("dtype", REAL)
@pytest.mark.parametrize("numbers", [U8, S8])
@pytest.mark.parametrize("count", [1, 3, 15, 16, 17, 4095, 4097, 70_001])
def test_numbers_side_by_side(count: int, numbers: Numbers, dtype: str) -> None:
    check((count,), dtype, numbers)
    check((count,), numbers, dtype)


@pytest.mark.parametrize("dtype", REAL)
@pytest.mark.parametrize("numbers", [U8, S8])
@pytest.mark.parametrize(("shape", "src", "dst"), TURNS)
def test_axes_in_another_order(
    shape: tuple[int, ...], src: str, dst: str, numbers: Numbers, dtype: str
) -> None:
    check(shape, dtype, numbers, (src, dst))
    check(shape, numbers, dtype, (src, dst))


def check_turn(
    shape: tuple[int, ...], src: str, dst: str, dtype: str = "float32", written: str = "float32"
) -> None:
    b, x = reorder(shape, src, dst, dtype, written), sample(shape, dtype)
    assert named(b).startswith("turn:")
    x.flat[::7] = np.nan
    x.flat[::11] = -0.0
    x.flat[::13] = 1e-40
    right = x.astype(numpy_type(written))
    around = np.full(x.size + 64, 7, right.dtype)
    out = around[32:-32].reshape(stored(right, dst).shape)
    call(b.module(), b.name, stored(x, src), out)
    assert plain(out, dst).tobytes() == right.tobytes(), "bit by bit"
    assert (around[:32] == 7).all() and (around[-32:] == 7).all()


FLOAT_TURNS = [
    *(turn for turn in TURNS if turn[1][-1] != turn[2][-1]),  # of others neighbours stay together
    *(((rows, columns), "ba", "ab") for rows in (17, 31, 300) for columns in (*range(2, 17), 33)),
    ((3, 1000), "ab", "ba"),
    ((2, 3, 20, 32), "abcd", "abdc"),
]


@pytest.mark.parametrize(("shape", "src", "dst"), FLOAT_TURNS)
def test_floats_in_another_order(shape: tuple[int, ...], src: str, dst: str) -> None:
    check_turn(shape, src, dst)


@pytest.mark.parametrize("types", [("float32", "bfloat16"), ("bfloat16", "float32")])
@pytest.mark.parametrize(("shape", "src", "dst"), FLOAT_TURNS)
def test_real_numbers_of_another_type_in_another_order(
    shape: tuple[int, ...], src: str, dst: str, types: tuple[str, str]
) -> None:
    check_turn(shape, src, dst, *types)


@pytest.mark.parametrize("together", [2, 3, 4, 8])
@pytest.mark.parametrize("threads", [1, 2])
def test_a_few_floats_that_stay_together(together: int, threads: int) -> None:
    """As those of a pixel that is shuffled."""
    with with_threads(threads):
        check_turn((2, 5, 9, 3, 31, together), "acebdf", "abcdef")
        check_turn((1, 64, 40, together, 40, together), "acebdf", "abcdef")
        check_turn((3, 40, together), "bac", "abc")
    other = reorder((2, 5, 9, 3, 31, together), "abcdef", "acebdf")
    assert not named(other).startswith("turn:"), "few rows"


def test_floats_that_keep_their_neighbours_and_short_rows_are_left_to_onednn() -> None:
    assert named(reorder((2, 20, 30, 40), "abcd", "acbd")) == "jit:uni"
    assert not named(reorder((70, 9), "ab", "ba")).startswith("turn:")
    assert not named(reorder((2, 20, 30, 40), "abcd", "aBcd16b")).startswith("turn:")
    assert not named(reorder((2, 20, 30, 40), "abcd", "acdb", "bfloat16")).startswith("turn:")


@pytest.mark.parametrize(("src", "dst"), [(U8, S8), (S8, U8), (U8, (0.01, 3, "uint8"))])
def test_integers_of_another_scale(src: Numbers, dst: Numbers) -> None:
    check((2, 67, 5, 7), src, dst)


def test_halves_go_to_the_even_integer_before_the_zero_point() -> None:
    x = np.array([-0.5, 0.5, 1.5, 2.5, 300.0, -300.0, np.inf, -np.inf], "float32")
    b, out = builder(x.shape, "float32", (1.0, 7, "uint8")), np.zeros(x.shape, "uint8")
    call(b.module(), b.name, x, out)
    assert out.tolist() == [7, 7, 9, 9, 255, 0, 255, 0]


def test_what_is_no_number_becomes_the_least_integer() -> None:
    x = np.full(20, np.nan, "float32")
    b, out = builder(x.shape, "float32", U8), np.ones(x.shape, "uint8")
    call(b.module(), b.name, x, out)
    assert not out.any()


def test_scales_of_channels_and_blocks_and_short_rows_are_left_to_onednn() -> None:
    assert not named(builder((1, 3, 33, 40), "float32", U8, ("acbd", "abcd"))).startswith("conversion:")
    assert not named(builder((2, 20, 3, 3), "float32", U8, ("aBcd16b", "aBcd16b"))).startswith("conversion:")
    b = Builder()
    scale = b.constant(np.full(5, 0.1, "float32"))
    b.step(ir.Quantization(1), src=b.input((2, 5), "", "int8"), src_scale=scale, dst=b.output((2, 5)))
    assert not named(b).startswith("conversion:")


def test_a_refused_kernel_is_onednns() -> None:
    b = builder((4, 40), "float32", U8)
    (info,) = library.describe(b.build()).steps
    library.refuse(info.descriptor, info.implementation, "tried")
    try:
        (other,) = library.describe(b.build()).steps
        assert other.implementation != info.implementation and not other.error
    finally:
        library.forget_refusals()


@pytest.mark.slow
def test_threads_and_instruction_sets_give_the_same() -> None:
    script = (
        "import sys; sys.path[:0] = ['tests/byoc', 'tests/byoc/runtime', 'tests/byoc/runtime/steps'];"
        "from test_conversion import *;"
        "[check(shape, *sides, layouts) for shape, *layouts in [*TURNS, ((2, 3, 224, 224), 'abcd', 'acdb')]"
        " for sides in (('float32', U8), (S8, 'bfloat16'), (U8, 'float32'))];"
        "[check_turn(*turn, *types) for turn in [*FLOAT_TURNS, ((2, 3, 224, 224), 'abcd', 'acdb')]"
        " for types in ((), ('float32', 'bfloat16'), ('bfloat16', 'float32'))];"
        "print(named(builder((64,), 'float32', U8)))"
    )
    found = set()
    for isa in ("SSE41", "AVX2", "DEFAULT"):
        environment = os.environ | {"OMP_NUM_THREADS": "3", "ONEDNN_MAX_CPU_ISA": isa}
        done = subprocess.run(
            [sys.executable, "-c", script], env=environment, capture_output=True, text=True,
            cwd=Path(__file__).parents[4], check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr[-2000:]
        found.add(done.stdout.strip())
    assert {"conversion:sse2", "conversion:avx2"} <= found
