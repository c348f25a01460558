"""Copies between devices as the virtual machine calls them: bytes, and errors that name both tensors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tvm_ffi

from tvm_mxplan.byoc.cudnn import library


@pytest.fixture(scope="module")
def copy() -> Callable[[np.ndarray[Any, Any], np.ndarray[Any, Any]], None]:
    library.load()
    function = tvm_ffi.get_global_func("tvm_mxplan.devices.copy")
    return lambda source, target: function(tvm_ffi.from_dlpack(source), tvm_ffi.from_dlpack(target))


def test_all_bytes_arrive(copy: Callable[..., None]) -> None:
    source, target = np.arange(15, dtype="float32").reshape(3, 5), np.zeros((3, 5), "float32")
    copy(source, target)
    np.testing.assert_array_equal(target, source)


@pytest.mark.parametrize(
    "source, target, words",
    [
        (np.zeros((3, 5), "float32"), np.zeros((3, 4), "float32"), r"\[3, 5\] of .*\[3, 4\] of float32"),
        (np.zeros((3, 5), "float32"), np.zeros((3, 5), "int32"), r"\[3, 5\] of float32.*\[3, 5\] of int32"),
        (np.zeros((3, 10), "float32")[:, ::2], np.zeros((3, 5), "float32"), r"its source, \[3, 5\].*gaps"),
        (np.zeros((3, 5), "float32"), np.zeros((6, 5), "float32")[::2], r"its destination, \[3, 5\].*gaps"),
    ],
)  # fmt: skip
def test_what_cannot_be_copied_is_named(
    copy: Callable[..., None], source: np.ndarray[Any, Any], target: np.ndarray[Any, Any], words: str
) -> None:
    with pytest.raises(Exception, match=rf"copy between devices: .*{words}"):
        copy(source, target)
