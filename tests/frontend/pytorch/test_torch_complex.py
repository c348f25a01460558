"""Complex numbers and Fourier transforms, against numpy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from converters_run import pairs, run, run_all

from tvm_mxplan.errors import UnsupportedError
from tvm_mxplan.frontend.torch import converters

_random = np.random.default_rng(4)
X = _random.standard_normal((3, 4, 6)).astype("float32")
P, Q = (
    (_random.standard_normal((3, 4, 6)) + 1j * _random.standard_normal((3, 4, 6))).astype("complex64")
    for _ in range(2)
)


def fft(operator: str, source: np.ndarray, dim: list[int], expected: np.ndarray, **more: Any) -> Any:
    return operator, {"self": source, "dim": dim, "normalization": 0, **more}, expected


CASES = [
    fft("_fft_r2c.default", X, [2], np.fft.fft(X), onesided=False),
    fft("_fft_r2c.default", X, [-1], np.fft.rfft(X), onesided=True),
    fft("_fft_r2c.default", X, [0, 1], np.fft.rfftn(X, axes=(0, 1)), onesided=True),
    fft("_fft_r2c.default", X, [1], np.fft.rfft(X, axis=1, norm="ortho"), onesided=True, normalization=1),
    fft("_fft_c2c.default", P, [1], np.fft.fft(P, axis=1), forward=True),
    fft("_fft_c2c.default", P, [0, 2], np.fft.ifftn(P, axes=(0, 2)), forward=False, normalization=2),
    fft("_fft_c2r.default", P, [2], np.fft.irfft(P, 10), last_dim_size=10, normalization=2),
    fft("_fft_c2r.default", P, [0, 1], np.fft.irfftn(P, (3, 7), (0, 1)), last_dim_size=7, normalization=2),
    ("mul.Tensor", {"self": P, "other": Q}, P * Q),
    ("mul.Tensor", {"self": X, "other": Q[0]}, X * Q[0]),
    ("mul.Scalar", {"self": P, "other": 2 - 1j}, P * (2 - 1j)),
    ("div.Tensor", {"self": P, "other": Q}, P / Q),
    ("div.Tensor", {"self": P, "other": X}, P / X),
    ("add.Tensor", {"self": P, "other": X, "alpha": 1}, P + X),
    ("rsub.Scalar", {"self": P, "other": 3.0, "alpha": 1}, 3 - P),
    ("sub.Tensor", {"self": X, "other": P, "alpha": 1}, X - P),
    ("exp.default", {"self": P}, np.exp(P)),
    ("abs.default", {"self": P}, np.abs(P)),
    ("angle.default", {"self": P}, np.angle(P)),
    ("_conj.default", {"self": P}, P.conj()),
    ("bmm.default", {"self": P, "mat2": Q.transpose(0, 2, 1).copy()}, P @ Q.transpose(0, 2, 1)),
    ("complex.default", {"real": X, "imag": X[::-1].copy()}, X + 1j * X[::-1]),
    ("polar.default", {"abs": X, "angle": X[::-1].copy()}, X * np.exp(1j * X[::-1])),
    ("imag.default", {"self": P}, P.imag),
    ("sum.dim_IntList", {"self": P, "dim": [-1], "keepdim": True}, P.sum(-1, keepdims=True)),
    ("permute.default", {"self": P, "dims": [2, -3, 1]}, P.transpose(2, 0, 1)),
    ("transpose.int", {"self": P, "dim0": -1, "dim1": 0}, P.swapaxes(0, 2)),
    ("view.default", {"self": P, "size": [6, 12]}, P.reshape(6, 12)),
    ("slice.Tensor", {"self": P, "dim": 2, "start": -4, "end": 2**60, "step": 2}, P[..., -4::2]),
    ("select.int", {"self": P, "dim": -2, "index": -1}, P[:, -1]),
    ("flip.default", {"self": P, "dims": [-1, 0]}, P[::-1, :, ::-1]),
    ("cat.default", {"tensors": [pairs(P), pairs(Q)], "dim": -1}, np.concatenate([P, Q], -1)),
    (
        "constant_pad_nd.default",
        {"self": P, "pad": [1, -2, 0, 3], "value": 0},
        np.pad(P[..., :4], ((0, 0), (0, 3), (1, 0))),
    ),
    ("_to_copy.default", {"self": X}, X.astype("complex64")),
    ("index_select.default", {"self": P, "dim": 1, "index": np.array([2, 0])}, P[:, [2, 0]]),
    (
        "expand.default",
        {"self": P[:, :1].copy(), "size": [2, 3, 4, 6]},
        np.broadcast_to(P[:, :1], (2, 3, 4, 6)),
    ),
]


@pytest.fixture(scope="module")
def results() -> list[np.ndarray]:
    """The results of all cases' converters, which run in one module."""
    calls = [
        (operator, operands, (pairs(expected).shape, "float32")) for operator, operands, expected in CASES
    ]
    return run_all(calls, converters.COMPLEX, "dnnl, llvm")


@pytest.mark.slow
@pytest.mark.parametrize("at", range(len(CASES)), ids=[case[0] for case in CASES])
def test_against_numpy(at, results):
    np.testing.assert_allclose(results[at], pairs(CASES[at][2]), rtol=2e-5, atol=3e-6)


def test_the_angle_of_a_real_frequency_is_0_or_pi():
    found = run("_fft_r2c.default", CASES[0][1], ((3, 4, 6, 2), "float32"), converters.COMPLEX)
    assert not found[..., [0, 3], 1].any()


def test_what_is_refused():
    with pytest.raises(UnsupportedError, match="with alpha"):
        run("add.Tensor", {"self": P, "other": Q, "alpha": 2}, (P.shape, "float32"), converters.COMPLEX)
    operands = {"self": X[:1, :1].repeat(20000, 2), "dim": [2], "normalization": 0, "onesided": False}
    with pytest.raises(UnsupportedError, match="a Fourier transform of"):
        run("_fft_r2c.default", operands, ((1, 1, 120000, 2), "float32"), converters.COMPLEX)
