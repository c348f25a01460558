"""The host library's functions of one number, against numpy and scipy."""

from __future__ import annotations

import numpy as np
import pytest
from host_steps import SPECIAL, drawn, ran
from scipy.special import erf

from tvm_mxplan.core.program import program as ir

UNARY = {
    "abs": np.abs, "ceil": np.ceil, "cos": np.cos, "erf": erf, "exp": np.exp, "floor": np.floor,
    "log": np.log, "negative": np.negative, "relu": lambda x: np.where(x < 0, 0, x), "round": np.round,
    "rsqrt": lambda x: 1 / np.sqrt(x), "sign": np.sign, "sin": np.sin, "sqrt": np.sqrt, "square": np.square,
    "trunc": np.trunc,
}  # fmt: skip


@pytest.mark.parametrize("name", UNARY)
def test_functions(name: str) -> None:
    for shape in ((3, 17, 5), (33333,), (), (2, 0)):
        x = drawn(shape)
        x = np.concatenate([x.reshape(-1), SPECIAL]) if len(shape) == 1 else x
        found = ran(ir.Eltwise(name, 0.0, 0.0), [("src", x)], x.shape)
        with np.errstate(all="ignore"):
            expected = UNARY[name](x.astype("float64")).astype("float32")
        np.testing.assert_allclose(found, expected, rtol=4e-7, atol=1e-44)


@pytest.mark.parametrize("name", ["sin", "cos"])
def test_angles_of_any_size(name: str) -> None:
    """Those next to whole quarters of a turn, whose sine or cosine has few digits left, and large ones."""
    quarters = np.arange(-700_000, 700_000, 37) * (np.pi / 2)
    near = quarters.astype("float32")
    x = np.concatenate(
        [near, np.nextafter(near, np.float32(np.inf)), np.logspace(-40, 38, 999, dtype="float32")]
    )
    for part in (x, x[np.abs(x) <= 2.0**20], x[:1]):
        found = ran(ir.Eltwise(name, 0.0, 0.0), [("src", part)], part.shape)
        np.testing.assert_allclose(found, UNARY[name](part.astype("float64")), rtol=2.5e-7)


def test_logarithms_near_1_keep_their_digits() -> None:
    near = 1 + np.concatenate([-np.logspace(-7, -0.3, 500), np.logspace(-7, 0, 500)])
    special = [0.0, -0.0, -1.0, np.inf, np.nan]
    x = np.concatenate([near, np.logspace(-44, 38, 2000), special]).astype("float32")
    found = ran(ir.Eltwise("log", 0.0, 0.0), [("src", x)], x.shape)
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(found, np.log(x.astype("float64")), rtol=2e-7)


@pytest.mark.parametrize("layout", ["abcd", "acdb", "dbca"])
def test_functions_of_other_orders(layout: str) -> None:
    x = drawn((2, 5, 33, 17))
    found = ran(ir.Eltwise("erf", 0.0, 0.0), [("src", x)], x.shape, layouts=[layout, "abcd"])
    np.testing.assert_allclose(found, erf(x.astype("f8")), rtol=4e-7)
