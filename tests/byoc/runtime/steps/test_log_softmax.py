"""Logarithms of softmax in the runtime: by a kernel of our own, right also where probabilities are near 1."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from less_instructions import run_again
from program_builder import Array, Builder, random
from scipy import special

from tvm_mxplan.byoc.onednn import library
from tvm_mxplan.core.program import program as ir

SHORT = np.dtype(ml_dtypes.bfloat16)


def step(x: Array, layout: str = "", written: str = "float32", axis: int = -1) -> Builder:
    b = Builder()
    src, dst = b.input(x.shape, layout, x.dtype.name), b.output(x.shape, layout, written)
    b.step(ir.Softmax("log_softmax", axis % x.ndim), src=src, dst=dst)
    return b


def implementation(b: Builder) -> str:
    return str(library.describe(b.build()).steps[-1].implementation)


def logarithms(x: Array, written: str = "float32") -> Array:
    """The step's result; it has been held against its reference."""
    b = step(x, written=written)
    assert implementation(b).startswith("log_softmax:")
    return b.run(x)


@pytest.mark.parametrize("count", [1, 2, 5, 7, 8, 9, 15, 16, 17, 31, 33, 64, 1000, 50_257])
def test_rows_of_any_size(count: int) -> None:
    x = 5 * random(7, count)
    wanted = special.log_softmax(x.astype("float64"), -1)
    np.testing.assert_allclose(logarithms(x), wanted, rtol=1.5e-7, atol=3e-7)


def test_a_probability_near_1_has_a_small_logarithm_below_0() -> None:
    x = np.array([[0, -14], [0, -10], [12, 0], [3, 3]], "float32")
    found, wanted = logarithms(x), special.log_softmax(x.astype("float64"), -1)
    assert np.all(found <= 0)
    np.testing.assert_allclose(found, wanted, atol=1e-7)


def test_large_numbers_and_empty_places() -> None:
    x = np.array([[3e38, 0, -3e38], [-np.inf, 1, 1], [1e4, 1e4, -np.inf]], "float32")
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(
            logarithms(x), special.log_softmax(x.astype("f8"), -1).astype("f4"), rtol=1e-6
        )


def test_a_row_with_nan_or_infinity_is_nan_and_no_other() -> None:
    x = random(4, 40)
    x[1, 3], x[2, 39] = np.inf, np.nan
    found = step(x).run(x)
    assert np.isnan(found[1:3]).all()
    np.testing.assert_allclose(found[[0, 3]], special.log_softmax(x[[0, 3]].astype("f8"), -1), atol=1e-6)


@pytest.mark.parametrize(("read", "written"), [(True, True), (True, False), (False, True)])
def test_in_bfloat16(read: bool, written: bool) -> None:
    x = random(7, 67).astype(SHORT if read else "float32")
    got = logarithms(x, "bfloat16" if written else "float32").astype("float64")
    wanted = special.log_softmax(x.astype("float64"), -1)
    np.testing.assert_allclose(got, wanted, rtol=2**-8 if written else 1e-6)


def test_on_many_threads_and_in_other_orders_rows_are_the_same() -> None:
    x = random(40, 30, 300)
    whole = logarithms(x)
    assert np.array_equal(whole[7:9], logarithms(x[7:9]))
    turned = step(x, "bac")
    assert implementation(turned).startswith("log_softmax:")
    stored = turned.run_stored(np.ascontiguousarray(x.transpose(1, 0, 2)), shape=[30, 40, 300])
    assert np.array_equal(stored.transpose(1, 0, 2), whole)


def test_where_ours_is_refused_or_takes_no_axis_the_library_s_runs() -> None:
    x = random(3, 7, 5)
    assert not implementation(step(x, axis=1)).startswith("log_softmax")
    told = library.describe(step(x).build()).steps[-1]
    library.refuse(told.descriptor, told.implementation, "is tried")
    try:
        assert not implementation(step(x)).startswith("log_softmax")
    finally:
        library.forget_refusals()


@pytest.mark.slow
@pytest.mark.parametrize("isa", ["AVX2", "SSE41"])
def test_with_fewer_instructions(isa: str) -> None:
    run_again(__file__, isa, "test_rows_of_any_size or near_1")
