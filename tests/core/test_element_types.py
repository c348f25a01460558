"""Bytes of elements and tensors by type, against numpy's own where it has the type."""

from __future__ import annotations

import numpy as np
import pytest

from tvm_mxplan.core.element_types import dense_bytes, item_bytes, numpy_type, stored_bytes
from tvm_mxplan.core.layout.layout import parse_layout
from tvm_mxplan.core.layout.layout_arrays import pack


@pytest.mark.parametrize(
    "dtype", ["float64", "float32", "float16", "int64", "int32", "int16", "int8", "uint32", "uint8", "bool"]
)
def test_an_item_takes_what_it_takes_in_numpy(dtype: str) -> None:
    assert item_bytes(dtype) == np.dtype(dtype).itemsize == numpy_type(dtype).itemsize


@pytest.mark.parametrize(
    ("dtype", "expected"),
    [
        ("bfloat16", 2),
        ("float8_e4m3fn", 1),
        ("int4", 1),
        ("float4_e2m1fn", 1),
        ("int4x2", 1),
        ("float32x4", 16),
    ],
)
def test_types_that_numpy_lacks(dtype: str, expected: int) -> None:
    """An element takes whole bytes."""
    assert item_bytes(dtype) == expected


@pytest.mark.parametrize("dtype", ["", "float", "handle", "32", "float32 ", "Float32", "bfloat16x"])
def test_what_names_no_type_is_said(dtype: str) -> None:
    with pytest.raises(ValueError, match="expected a name such as float32"):
        item_bytes(dtype)


def test_bfloat16_is_numpys_by_extension() -> None:
    assert numpy_type("bfloat16").name == "bfloat16"
    with pytest.raises(TypeError):
        numpy_type("float8_of_nobody")


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int8"])
@pytest.mark.parametrize("layout", ["abcd", "acdb", "aBcd16b", "ABcd4b8a"])
@pytest.mark.parametrize("shape", [(1, 17, 8, 5), (3, 32, 1, 7), (0, 5, 2, 2)])
def test_stored_bytes_are_those_of_the_packed_array(shape: tuple[int, ...], layout: str, dtype: str) -> None:
    plain = np.zeros(shape, numpy_type(dtype))
    assert dense_bytes(shape, dtype) == plain.nbytes
    assert stored_bytes(shape, layout, dtype) == pack(plain, parse_layout(layout)).nbytes
