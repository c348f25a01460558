"""Activations, bounds and other functions of an element, against numpy."""

from __future__ import annotations

import numpy as np
import pytest
from converters_run import run_all

from tvm_mxplan.frontend.torch import converters

_random = np.random.default_rng(2)
X = _random.standard_normal((3, 5)).astype("float32") * 2
Y = _random.standard_normal((3, 5)).astype("float32")
I = _random.integers(-9, 9, (3, 5))  # noqa: E741
NAN = np.where(X > 1, np.float32(np.nan), X)
LARGE = np.array([[3e30, 4e30], [0, 0]], "float32")


def elu(alpha: float, scale: float, inner: float) -> np.ndarray:
    return np.where(X > 0, scale * X, scale * alpha * np.expm1(inner * X.astype("float64"))).astype("float32")


CASES = [
    ("elu.default", {"self": X, "alpha": 1.0, "scale": 1.0, "input_scale": 1.0}, elu(1, 1, 1)),
    ("elu.default", {"self": X, "alpha": 1.673, "scale": 1.05, "input_scale": 1.0}, elu(1.673, 1.05, 1)),
    ("elu.default", {"self": X, "alpha": 0.5, "scale": 3, "input_scale": 2.0}, elu(0.5, 3, 2)),
    ("clamp.default", {"self": X, "min": -0.5, "max": 0.75}, np.clip(X, -0.5, 0.75)),
    ("clamp.default", {"self": X, "min": 1, "max": -1}, np.full_like(X, -1)),
    ("clamp.default", {"self": I, "min": -2, "max": None}, np.maximum(I, -2)),
    ("clamp.Tensor", {"self": X, "min": Y, "max": -Y}, np.minimum(np.maximum(X, Y), -Y)),
    ("clamp_max.default", {"self": X, "max": 0.25}, np.minimum(X, np.float32(0.25))),
    ("fmax.default", {"self": NAN, "other": Y}, np.fmax(NAN, Y)),
    ("fmin.default", {"self": Y, "other": NAN}, np.fmin(Y, NAN)),
    ("hypot.default", {"self": LARGE, "other": LARGE[:, ::-1].copy()}, np.hypot(LARGE, LARGE[:, ::-1])),
    ("exp2.default", {"self": X}, np.exp2(X)),
    ("__lshift__.Scalar", {"self": I, "other": 2}, I << 2),
    ("bitwise_right_shift.Tensor", {"self": I, "other": np.abs(I)}, I >> np.abs(I)),
    ("any.default", {"self": I}, np.array(True)),
    ("any.dim", {"self": I > 5, "dim": 1, "keepdim": True}, (I > 5).any(1, keepdims=True)),
    ("all.dims", {"self": I + 3, "dim": [0], "keepdim": False}, (I + 3).all(0)),
]


@pytest.fixture(scope="module")
def results() -> list[np.ndarray]:
    """The results of all cases' converters, which run in one module."""
    calls = [
        (operator, operands, (expected.shape, str(expected.dtype))) for operator, operands, expected in CASES
    ]
    return run_all(calls, converters.TABLE, "llvm")


@pytest.mark.parametrize("at", range(len(CASES)), ids=[case[0] for case in CASES])
def test_against_numpy(at, results):
    np.testing.assert_allclose(results[at], CASES[at][2], rtol=2e-6, atol=5e-7)
