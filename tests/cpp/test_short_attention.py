"""Attention's kernels for bfloat16, by vectors that every processor here has, against float64."""

from __future__ import annotations

import ctypes
import subprocess
from dataclasses import dataclass
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from sanitized import PROGRAMS, RUNTIME

SHORT = ml_dtypes.bfloat16
EPS = 2.0**-8
"""The largest relative error of one rounding: of a weight, and of the result."""
_GUARD = 64
_UNTOUCHED = 12352.0


@pytest.fixture(scope="module")
def kernels(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    if " avx2 " not in Path("/proc/cpuinfo").read_text():
        pytest.skip("the processor has no AVX2")
    built = tmp_path_factory.mktemp("attention") / "kernels.so"
    flags = ["-std=c++17", "-O2", "-shared", "-fPIC", f"-iquote{RUNTIME}"]
    subprocess.run(["g++", *flags, str(PROGRAMS / "short_attention.cc"), "-o", str(built)], check=True)
    library = ctypes.CDLL(str(built))
    library.most_rows.restype = ctypes.c_int64
    return library


@dataclass(frozen=True)
class Case:
    """Sizes; ``mask`` is its shape, ``before`` the keys that the first row sees beside itself."""

    rows: int = 19
    keys: int = 37
    depth: int = 17
    width: int = 21
    mask: tuple[int, int] | None = None
    before: int = -1
    nan_is_zero: bool = False

    def arrays(self) -> dict[str, np.ndarray]:
        random = np.random.default_rng(self.rows + self.keys)
        shapes = {"q": (self.rows, self.depth), "k": (self.keys, self.depth), "v": (self.keys, self.width)}
        made = {name: random.standard_normal(shape).astype(SHORT) for name, shape in shapes.items()}
        if self.mask is not None:
            made["mask"] = random.standard_normal(self.mask).astype("float32")
        return made

    def run(self, kernels: ctypes.CDLL, arrays: dict[str, np.ndarray], few: bool) -> np.ndarray:
        """The result; nothing around it was written."""
        memory = np.full(self.rows * self.width + 2 * _GUARD, _UNTOUCHED, SHORT)
        dst = memory[_GUARD:-_GUARD]
        mask = arrays.get("mask")
        strides = (
            (0, 0)
            if mask is None
            else tuple(0 if n == 1 else s // 4 for n, s in zip(mask.shape, mask.strides, strict=True))
        )
        sizes = np.array(
            [self.rows, self.keys, self.depth, self.width, *strides, self.before, self.nan_is_zero, few],
            "int64",
        )
        pointers = [arrays[name].ctypes.data_as(ctypes.c_void_p) for name in "qkv"]
        pointers += [None if mask is None else mask.ctypes.data_as(ctypes.c_void_p)]
        scale = ctypes.c_float(self.depth**-0.5)
        kernels.attend(
            sizes.ctypes.data_as(ctypes.c_void_p), scale, *pointers, dst.ctypes.data_as(ctypes.c_void_p)
        )
        assert (memory[:_GUARD] == _UNTOUCHED).all() and (memory[-_GUARD:] == _UNTOUCHED).all()
        return dst.reshape(self.rows, self.width).astype("float64")

    def expected(self, arrays: dict[str, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
        """The result, and what the size of its terms is."""
        q, k, v = (arrays[name].astype("float64") for name in "qkv")
        scores = q @ k.T * self.depth**-0.5 + arrays.get("mask", 0.0)
        if self.before >= 0:
            scores[~np.tri(self.rows, self.keys, self.before, dtype=bool)] = -np.inf
        with np.errstate(invalid="ignore"):
            weights = np.exp(scores - scores.max(1, keepdims=True))
            weights /= weights.sum(1, keepdims=True)
        if self.nan_is_zero:
            weights = np.nan_to_num(weights, nan=0.0)
        return weights @ v, weights @ np.abs(v)


CASES = {
    "odd": Case(),
    "even": Case(16, 32, 16, 16),
    "one row": Case(1, 53, 33, 40),
    "one key": Case(5, 1, 3, 2),
    "one number": Case(3, 5, 1, 1),
    "more keys than at once": Case(11, 523, 18, 9),
    "an odd last block": Case(24, 513, 8, 33),
    "masks of rows": Case(19, 37, mask=(19, 37)),
    "one mask": Case(19, 300, mask=(1, 37 + 263)),
    "a number for each row": Case(19, 37, mask=(19, 1)),
    "causal": Case(21, 40, before=19),
    "causal from the first": Case(20, 33, before=0, mask=(20, 33)),
    "whole vectors": Case(8, 24, 64, 64),
}


@pytest.mark.parametrize("few", [False, True], ids=["rows", "few"])
@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_results_are_the_exact_ones_but_for_two_roundings(kernels, case: Case, few: bool) -> None:
    assert case.rows <= kernels.most_rows()
    arrays = case.arrays()
    got = case.run(kernels, arrays, few)
    exact, terms = case.expected(arrays)
    assert (np.abs(got - exact) <= EPS * (terms + np.abs(exact)) + 1e-6).all()
    assert np.linalg.norm(got - exact) < EPS * np.linalg.norm(exact)


@pytest.mark.parametrize("few", [False, True], ids=["rows", "few"])
def test_rows_that_see_nothing_and_numbers_that_are_none(kernels, few: bool) -> None:
    case = Case(6, 20, 5, 7, mask=(6, 20))
    arrays = case.arrays()
    arrays["mask"][2] = -np.inf
    arrays["q"][4, 1] = np.nan
    got = case.run(kernels, arrays, few)
    dead = np.isnan(got).all(1)
    assert dead.tolist() == [False, False, True, False, True, False]
    exact, terms = case.expected(arrays)
    alive = ~dead
    assert (np.abs(got - exact)[alive] <= EPS * (terms + np.abs(exact))[alive] + 1e-6).all()
    zero = Case(6, 20, 5, 7, mask=(6, 20), nan_is_zero=True).run(kernels, arrays, few)
    assert (zero[2] == 0).all()


@pytest.mark.parametrize("few", [False, True], ids=["rows", "few"])
def test_far_masks_leave_nothing_and_infinite_values_stay_in_their_columns(kernels, few: bool) -> None:
    case = Case(4, 12, 6, 5, mask=(4, 12))
    arrays = case.arrays()
    arrays["mask"][:, 7:] = np.finfo("float32").min
    arrays["v"][3, 2] = np.inf
    got = case.run(kernels, arrays, few)
    assert np.isposinf(got[:, 2]).all() and np.isfinite(np.delete(got, 2, 1)).all()
    cut = {
        **arrays,
        "k": arrays["k"][:7],
        "v": arrays["v"][:7],
        "mask": np.ascontiguousarray(arrays["mask"][:, :7]),
    }
    np.testing.assert_array_equal(got, Case(4, 7, 6, 5, mask=(4, 7)).run(kernels, cut, few))
