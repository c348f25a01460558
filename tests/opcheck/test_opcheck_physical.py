"""Bytes read as tensors, in every layout that a region may hold."""

from __future__ import annotations

import numpy as np
import pytest

from tvm_mxplan import UnsupportedError
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.opcheck.physical import read


def value(layout: str, *shape: int) -> ir.Value:
    return ir.Value("v", shape, "float32", "local", layout)


def test_permuted_layouts():
    x = np.arange(120, dtype="float32").reshape(2, 3, 4, 5)
    for layout in ("abcd", "acdb", "dcba", "bacd"):
        stored = x.transpose(["abcd".index(letter) for letter in layout]).copy()
        tensor = read(stored.view(np.uint8).ravel(), value(layout, *x.shape))
        np.testing.assert_array_equal(tensor.logical, x)
        assert tensor.dirty == 0


@pytest.mark.parametrize("layout", ["aBcd4b", "ABcd4b2a", "ABcd2a4b"])
def test_blocked_layouts_and_their_tails(layout):
    """Each element where the notation says, counted out by hand; padding elsewhere."""
    shape = (3, 6, 2, 2)
    x = np.arange(1, 73, dtype="float32").reshape(shape)
    batches = 1 if layout.startswith("a") else 2
    inner = [4] if batches == 1 else ([4, 2] if layout.endswith("2a") else [2, 4])
    stored = np.zeros((-(-3 // batches), 2, 2, 2, *inner), "float32")
    for n, c, h, w in np.ndindex(*shape):
        block = {1: (c % 4,), 2: (c % 4, n % 2) if layout.endswith("2a") else (n % 2, c % 4)}[batches]
        stored[(n // batches, c // 4, h, w, *block)] = x[n, c, h, w]
    raw = stored.view(np.uint8).ravel()
    tensor = read(raw, value(layout, *shape))
    np.testing.assert_array_equal(tensor.logical, x)
    assert tensor.dirty == 0
    stored[-1, 1, 0, 0, -1 if batches == 1 else slice(None)] = np.nan
    dirty = read(raw, value(layout, *shape))
    assert dirty.dirty > 0


def test_a_type_that_is_not_numpys_is_refused():
    with pytest.raises(UnsupportedError, match="value v: opcheck reads no float4"):
        read(np.zeros(4, np.uint8), ir.Value("v", (4,), "float4", "local", "a"))


def test_more_bytes_than_the_value_has_are_left_alone():
    raw = np.arange(6, dtype="float32").view(np.uint8)
    np.testing.assert_array_equal(read(raw, value("ab", 2, 2)).logical, [[0, 1], [2, 3]])
