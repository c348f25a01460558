"""Arrays of libraries other than numpy and TVM, and what is no array at all."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest

import tvm_mxplan
from tvm_mxplan.testing.mlp import mlp


def numbers(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape, np.float32)


class ByDlpack:
    """A tensor as PyTorch's: with a shape, an element type of its own, rows, and DLPack."""

    dtype = "other.float32"

    def __init__(self, array: np.ndarray) -> None:
        self.array = array
        self.shape = array.shape

    def __iter__(self) -> Any:
        return map(ByDlpack, self.array)

    def __dlpack__(self, **how: Any) -> Any:
        return self.array.__dlpack__(**how)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.array.__dlpack_device__()


class ByArray:
    """A table that numpy can read."""

    def __init__(self, array: np.ndarray) -> None:
        self.array = array
        self.shape = array.shape

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return self.array.copy()


@pytest.fixture(scope="module")
def ex():
    ex = tvm_mxplan.compile(mlp([8, 16, 4], "N"))
    assert ex.report.regions
    return ex


@pytest.mark.parametrize("kind", [ByDlpack, ByArray])
def test_an_array_of_another_library_is_one_array(ex, kind):
    x = numbers(3, 8)
    (wanted,) = ex.run(x)
    for array in (x, np.asfortranarray(x)):
        for inputs in (kind(array), [kind(array)], {"x": kind(array)}):
            np.testing.assert_array_equal(ex.run(inputs)[0], wanted)
        np.testing.assert_array_equal(ex(kind(array))[0].numpy(), wanted)


def test_a_bound_array_of_another_library_is_read_where_it_stands(ex):
    x = numbers(3, 8)
    bound = ex.bind(ByDlpack(x))
    x[:] = numbers(3, 8, seed=7)
    np.testing.assert_array_equal(bound()[0], ex.run(x)[0])
    with pytest.raises(tvm_mxplan.InvalidInputError, match="no memory to read in a ByArray"):
        ex.bind(ByArray(x))


@pytest.mark.parametrize(
    ("inputs", "words"),
    [
        (None, "expected an array, a sequence of them or a mapping, got NoneType"),
        (numbers(3, 8).tolist(), "input x: float32[N, 8]: expected a numpy array or a TVM tensor, got list"),
        ([numbers(3, 8), [1.0]], "value 1 of the inputs: expected a numpy array or a TVM tensor, got list"),
        (np.array(["a"]), "expected element type float32, got <U1"),
    ],
)
def test_what_is_no_array_is_said(ex, inputs, words):
    for call in (ex.run, ex.bind):
        with pytest.raises(tvm_mxplan.InvalidInputError) as error:
            call(inputs)
        assert words in str(error.value)


def test_an_executable_is_exported_and_not_pickled(ex):
    for copied in (pickle.dumps, copy.deepcopy):
        with pytest.raises(tvm_mxplan.UnsupportedError, match=r"export it .* and load the file"):
            copied(ex)
    assert copy.copy(ex) is ex
