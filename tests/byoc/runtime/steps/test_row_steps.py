"""Norms by the mean square and rotary places in the runtime: sizes around vectors, layouts, types."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from less_instructions import run_again
from program_builder import Array, Builder, random

from tvm_mxplan.byoc.onednn import library
from tvm_mxplan.core.program import program as ir

SHORT = np.dtype(ml_dtypes.bfloat16)


def norm(x: Array, scale: Array | None, layout: str = "", written: str = "float32") -> Array:
    """The step's result; it has been held against its reference."""
    b = Builder()
    ids = {"src": b.input(x.shape, layout, x.dtype.name)}
    inputs = [x if not layout else np.ascontiguousarray(x.transpose(["abcd".index(one) for one in layout]))]
    if scale is not None:
        ids["scale"] = b.constant(scale)
    b.step(ir.RmsNormalization(1e-3), **ids, dst=b.output(x.shape, "", written))
    return b.run(*inputs)


def expected_norm(x: Array, scale: Array | None) -> Array:
    x = x.astype(np.float64)
    return x / np.sqrt((x**2).mean(-1, keepdims=True) + 1e-3) * (1.0 if scale is None else scale)


@pytest.mark.parametrize("count", [1, 3, 15, 16, 17, 63, 64, 65, 127, 129, 768, 70_001])
@pytest.mark.parametrize("scaled", [True, False])
def test_a_norm_whatever_the_size(count: int, scaled: bool) -> None:
    x, scale = 3 * random(5, count), random(count, seed=1) if scaled else None
    np.testing.assert_allclose(norm(x, scale), expected_norm(x, scale), rtol=4e-6, atol=1e-7)


def test_a_norm_on_many_threads_is_the_same() -> None:
    x, scale = random(400, 3, 300), random(300, seed=1)
    whole = norm(x, scale)
    assert np.array_equal(whole[7:9], norm(x[7:9], scale))
    np.testing.assert_allclose(whole, expected_norm(x, scale), rtol=4e-6, atol=1e-7)


def test_rows_are_read_where_they_stand() -> None:
    x, scale = random(2, 5, 3, 19), random(19, seed=1)
    assert np.array_equal(norm(x, scale, "acbd"), norm(x, scale))


@pytest.mark.parametrize(("read", "written"), [(True, True), (True, False), (False, True)])
def test_a_norm_in_bfloat16(read: bool, written: bool) -> None:
    x, scale = random(7, 67).astype(SHORT if read else "float32"), random(67, seed=1)
    got = norm(x, scale, written="bfloat16" if written else "float32")
    wanted = expected_norm(x, scale)
    np.testing.assert_allclose(got.astype("float64"), wanted, rtol=2**-8 if written else 4e-6, atol=1e-7)


def test_infinities_and_nan_stay_in_their_rows() -> None:
    x = random(4, 40)
    x[1, 3], x[2, 39] = np.inf, np.nan
    b = Builder()
    b.step(ir.RmsNormalization(1e-3), src=b.input(x.shape), dst=b.output(x.shape))
    got = b.run(x)
    assert np.isnan(got[1, 3]) and np.all(np.delete(got[1], 3) == 0) and np.isnan(got[2]).all()
    np.testing.assert_allclose(got[[0, 3]], expected_norm(x[[0, 3]], None), rtol=4e-6, atol=1e-7)


def rotated(x: Array, tables: tuple[Array, Array], width: int, interleaved: bool, layout: str = "") -> Array:
    b = Builder()
    src = b.input(x.shape, layout, x.dtype.name)
    cosines, sines = (b.input(table.shape) for table in tables)
    dst = b.output(x.shape, "", x.dtype.name)
    b.step(ir.Rotary(width, interleaved), src=src, cosines=cosines, sines=sines, dst=dst)
    order = ["abcd".index(one) for one in layout or "abcd"]
    return b.run(np.ascontiguousarray(x.transpose(order)), *tables)


def expected_rotation(x: Array, tables: tuple[Array, Array], width: int, interleaved: bool) -> Array:
    """As complex numbers, which are turned and stretched; tables have a number for each pair."""
    x = x.astype(np.float64)
    used = x[..., :width]
    a, b = (used[..., ::2], used[..., 1::2]) if interleaved else np.split(used, 2, -1)
    turned = (a + 1j * b) * (tables[0] + 1j * tables[1])
    parts = [turned.real, turned.imag]
    joined = np.stack(parts, -1).reshape(used.shape) if interleaved else np.concatenate(parts, -1)
    return np.concatenate([joined, x[..., width:]], -1)


def doubled(table: Array, interleaved: bool) -> Array:
    return np.repeat(table, 2, -1) if interleaved else np.concatenate([table, table], -1)


@pytest.mark.parametrize("width", [2, 6, 16, 18, 32, 34, 62, 64, 128])
@pytest.mark.parametrize("rest", [0, 5])
@pytest.mark.parametrize("interleaved", [True, False])
@pytest.mark.parametrize("each", [True, False])
def test_a_rotation_whatever_the_size(width: int, rest: int, interleaved: bool, each: bool) -> None:
    x = random(2, 3, 7, width + rest)
    tables = random(2, 1, 7, width // 2, seed=1), random(1, 3, 7, width // 2, seed=2)
    given = tuple(doubled(table, interleaved) for table in tables) if each else tables
    wanted = expected_rotation(x, tables, width, interleaved)
    np.testing.assert_allclose(rotated(x, given, width, interleaved), wanted, rtol=0, atol=2e-6)


def test_numbers_of_a_pair_may_have_different_tables() -> None:
    x, cosines, sines = random(1, 2, 3, 8), random(1, 1, 3, 8, seed=1), random(1, 1, 3, 8, seed=2)
    turned = np.concatenate([-x[..., 4:], x[..., :4]], -1)
    np.testing.assert_allclose(
        rotated(x, (cosines, sines), 8, False), x * cosines + turned * sines, rtol=0, atol=1e-6
    )


def test_heads_are_read_where_they_stand_and_on_many_threads() -> None:
    x, tables = random(2, 8, 90, 64), (random(1, 1, 90, 32, seed=1), random(1, 1, 90, 32, seed=2))
    got = rotated(x, tables, 64, False, "acbd")
    assert np.array_equal(got, rotated(x, tables, 64, False))
    np.testing.assert_allclose(got, expected_rotation(x, tables, 64, False), rtol=0, atol=2e-6)


@pytest.mark.parametrize("interleaved", [True, False])
def test_a_rotation_in_bfloat16(interleaved: bool) -> None:
    x = random(1, 3, 5, 70).astype(SHORT)
    tables = random(1, 1, 5, 33, seed=1), random(1, 1, 5, 33, seed=2)
    got = rotated(x, tables, 66, interleaved).astype("float64")
    np.testing.assert_allclose(got, expected_rotation(x, tables, 66, interleaved), rtol=2**-7, atol=2**-8)


def test_the_kernels_are_those_of_the_library_s_instruction_set() -> None:
    b = Builder()
    x = b.input((3, 8))
    y = b.local((3, 8))
    b.step(ir.RmsNormalization(1e-5), src=x, dst=y)
    b.step(ir.Rotary(8, False), src=y, cosines=b.input((3, 4)), sines=b.input((3, 4)), dst=b.output((3, 8)))
    isa = next((one for one in ("avx512", "avx2") if one in library.isa()), "sse2")
    found = [step.implementation for step in library.describe(b.build()).steps]
    assert found == [f"rms_normalization:{isa}", f"rotary:{isa}"]


def test_rows_with_gaps_are_refused() -> None:
    b = Builder()
    src, table = b.input((1, 2, 3, 4), "abdc"), b.input((1, 1, 3, 4))
    b.step(ir.Rotary(4, False), src=src, cosines=table, sines=table, dst=b.output((1, 2, 3, 4)))
    (step,) = library.describe(b.build()).steps
    assert "src in layout abdc, expected one whose last axis is innermost" in step.error


@pytest.mark.slow
@pytest.mark.parametrize("isa", ["AVX2", "SSE41"])
def test_other_instruction_sets(isa: str) -> None:
    run_again(__file__, isa, "whatever_the_size or bfloat16 or infinities or the_kernels_are")
