"""A batch's means and variances, where numbers are many and far from 0: within rounding of float64's."""

from __future__ import annotations

import numpy as np
import pytest
from blocks import BLOCKED
from program_builder import Builder, call

from tvm_mxplan.byoc.onednn import library
from tvm_mxplan.core.program import program as ir

MOMENTS = "moments"
SHAPES = [(4, 40, 64, 31), (4, 19, 64, 31), (2, 3, 64, 64), (2, 16, 3, 5), (300, 24, 1, 1), (1, 7, 1, 129)]


def statistics_of(x: np.ndarray, layout: str) -> tuple[np.ndarray, np.ndarray, np.ndarray, str]:
    """The step's results on an image in a layout: normalised numbers, means, variances; who made them."""
    channels = (x.shape[1],)
    b = Builder()
    src = b.reorder(b.input(x.shape), layout)
    dst = b.local(x.shape, layout)
    results = {"batch_mean": b.output(channels), "batch_variance": b.output(channels)}
    given = {"scale": b.input(channels), "shift": b.input(channels)}
    b.step(ir.BatchNormalizationTraining(1e-5), src=src, **given, dst=dst, **results)
    b.finish(dst)
    mean, variance = np.empty(channels, "float32"), np.empty(channels, "float32")
    normal = np.empty(x.shape, "float32")
    module = b.module()
    call(
        module, b.name, x, np.ones(channels, "float32"), np.zeros(channels, "float32"), mean, variance, normal
    )
    (specialization,) = library.stats(module)["specializations"]
    names = [str(step["implementation"]) for step in specialization["steps"]]
    return normal, mean, variance, " ".join(names)


@pytest.mark.parametrize("layout", ["abcd", "acdb", BLOCKED])
@pytest.mark.parametrize("shape", SHAPES)
def test_statistics_of_numbers_far_from_zero(shape: tuple[int, ...], layout: str) -> None:
    random = np.random.default_rng(3)
    near = random.uniform(0.5, 1.5, (1, shape[1], 1, 1))
    x = (near + 0.05 * random.standard_normal(shape)).astype("float32")
    normal, mean, variance, names = statistics_of(x, layout)
    assert MOMENTS in names
    wide = x.astype("float64")
    axes = (0, 2, 3)
    np.testing.assert_allclose(mean, wide.mean(axes), rtol=2e-7)
    np.testing.assert_allclose(variance, wide.var(axes), rtol=2e-6)
    rows = (1, shape[1], 1, 1)
    expected = (wide - wide.mean(axes).reshape(rows)) / np.sqrt(wide.var(axes).reshape(rows) + 1e-5)
    # A digit of x is 1 / 0.05 times as much of what is normalised.
    np.testing.assert_allclose(normal, expected, rtol=0, atol=2e-5)


def test_equal_numbers_have_no_variance() -> None:
    x = np.full((2, 17, 33, 31), 0.1, "float32")
    normal, mean, variance, names = statistics_of(x, "acdb")
    assert MOMENTS in names
    assert (mean == np.float32(0.1)).all() and (variance == 0).all() and (normal == 0).all()
