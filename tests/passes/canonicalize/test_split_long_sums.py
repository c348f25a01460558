"""SplitLongSums: sums over other axes than the last ones in stages; short ones and libraries' own stay."""

from __future__ import annotations

import pytest
import tvm_ffi
from dataflow_text import assert_becomes, assert_unchanged, dataflow

from tvm_mxplan.passes.canonicalize import SplitLongSums


@pytest.mark.parametrize("kind", ["sum", "mean"])
@pytest.mark.parametrize("axes", ["None", "[0, 1]", "[-1, -2]"])
def test_a_sum_of_everything_is_one_over_the_last_axis(kind, axes):
    assert_becomes(
        SplitLongSums(),
        f"y = R.{kind}(x, axis={axes}, keepdims=False)",
        f"""
        a = R.reshape(x, (1, 10000))
        b = R.{kind}(a, axis=[1], keepdims=True)
        y = R.reshape(b, ())
        """,
        parameters='x: R.Tensor((100, 100), "float32")',
    )


@pytest.mark.parametrize(
    ("axes", "keepdims", "shape"), [("[0, 2, 3]", False, "(5,)"), ("[3, 0, -2]", True, "(1, 5, 1, 1)")]
)
def test_last_axes_come_first(axes, keepdims, shape):
    assert_becomes(
        SplitLongSums(),
        f"y = R.mean(x, axis={axes}, keepdims={keepdims})",
        f"""
        a = R.mean(x, axis=[2, 3], keepdims=True)
        b = R.reshape(a, (1, 70, 5, 1, 1))
        c = R.mean(b, axis=[1], keepdims=False)
        y = R.reshape(c, {shape})
        """,
        parameters='x: R.Tensor((70, 5, 6, 7), "float32")',
    )


def test_an_axis_that_is_too_long_becomes_two():
    assert_becomes(
        SplitLongSums(),
        "y = R.sum(x, axis=[0], keepdims=False)",
        """
        a = R.reshape(x, (32, 128, 3))
        b = R.sum(a, axis=[1], keepdims=False)
        c = R.reshape(b, (1, 32, 3))
        d = R.sum(c, axis=[1], keepdims=False)
        y = R.reshape(d, (3,))
        """,
        parameters='x: R.Tensor((4096, 3), "float32")',
    )


def test_axes_on_both_sides_stay_where_they_are():
    assert_becomes(
        SplitLongSums(),
        "y = R.sum(x, axis=[1], keepdims=False)",
        """
        a = R.reshape(x, (3, 32, 128, 5))
        b = R.sum(a, axis=[2], keepdims=False)
        c = R.reshape(b, (3, 1, 32, 5))
        d = R.sum(c, axis=[2], keepdims=False)
        y = R.reshape(d, (3, 5))
        """,
        parameters='x: R.Tensor((3, 4096, 5), "float32")',
    )


@pytest.mark.parametrize(
    ("call", "shape", "dtype"),
    [
        ("R.sum(x, axis=[0])", "(100, 7)", "float32"),
        ("R.mean(x, axis=[1])", "(7, 100000)", "float32"),
        ("R.mean(x, axis=[-2, -1], keepdims=True)", "(2, 3, 100, 100)", "float32"),
        ("R.sum(x)", "(100, 100)", "int32"),
        ("R.max(x)", "(100, 100)", "float32"),
    ],
)
def test_ir_unchanged(call, shape, dtype):
    assert_unchanged(SplitLongSums(), f"y = {call}", parameters=f'x: R.Tensor({shape}, "{dtype}")')


@pytest.mark.parametrize(
    ("call", "type_"),
    [
        ("R.sum(x)", 'R.Tensor(("n", 5000), "float32")'),
        ("R.sum(x, axis=[0])", 'R.Tensor((5000, "n"), "float32")'),
        ("R.mean(x, axis=[0])", 'R.Tensor(ndim=2, dtype="float32")'),
        ("R.sum(x)", 'R.Tensor(ndim=2, dtype="float32")'),
        ("R.sum(x)", 'R.Tensor(dtype="float32")'),
    ],
)
def test_extents_that_are_not_known_stay(call, type_):
    assert_unchanged(SplitLongSums(), f"y = {call}", parameters=f"x: {type_}")


@pytest.mark.parametrize("terms", [1024, 1025])
def test_what_is_long_begins_where_a_stage_ends(terms):
    before = dataflow("y = R.sum(x, axis=[0])", parameters=f'x: R.Tensor(({terms}, 3), "float32")')
    after = SplitLongSums()(before)
    assert tvm_ffi.structural_equal(after, before) == (terms == 1024)
