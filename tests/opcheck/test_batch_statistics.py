"""Batch norms of numbers far from 0, whose statistics or distances took too little care in float32."""

from __future__ import annotations

import numpy as np
import pytest

from tvm_mxplan.core.program import program as ir
from tvm_mxplan.core.program.attributes import BatchNormalizationBackward, BatchNormalizationTraining
from tvm_mxplan.opcheck.compare import differ
from tvm_mxplan.opcheck.estimate import Estimate
from tvm_mxplan.opcheck.references import evaluate

EPSILON, CHANNELS = 1e-5, 8
STEP = ir.Step("", BatchNormalizationTraining(EPSILON), ())
ROWS = (1, CHANNELS, 1, 1)


def image(mean: float) -> np.ndarray:
    random = np.random.default_rng(1)
    return (mean + random.standard_normal((16, CHANNELS, 112, 112)) / 4).astype("float32")


def expected(x: np.ndarray) -> dict[str, Estimate]:
    given = {"src": x, "scale": np.ones(CHANNELS, "float32"), "shift": np.zeros(CHANNELS, "float32")}
    return evaluate(STEP, x.shape, {role: [array] for role, array in given.items()}, ())


def running(numbers: np.ndarray) -> np.ndarray:
    """The mean of each row, of numbers that are added up one after another in float32."""
    return np.cumsum(numbers, axis=1, dtype="float32")[:, -1] / np.float32(numbers.shape[1])


def chunked(numbers: np.ndarray) -> np.ndarray:
    """The same of numbers of which 32 are added up so, and such sums in pairs."""
    parts = np.cumsum(numbers.reshape(len(numbers), -1, 32), axis=2, dtype="float32")[..., -1]
    while parts.shape[1] > 1:
        parts = np.pad(parts, ((0, 0), (0, parts.shape[1] % 2)))
        parts = parts[:, ::2] + parts[:, 1::2]
    return parts[:, 0] / np.float32(numbers.shape[1])


def results(x: np.ndarray, mean_of) -> dict[str, np.ndarray]:
    """Results of a step in float32 whose means are made so."""
    rows = x.swapaxes(0, 1).reshape(CHANNELS, -1)
    mean = mean_of(rows)
    variance = mean_of(np.square(rows - mean[:, None]))
    factor = 1 / np.sqrt(variance + np.float32(EPSILON))
    normal = (x - mean.reshape(ROWS)) * factor.reshape(ROWS)
    return {"dst": normal, "batch_mean": mean, "batch_variance": variance}


@pytest.mark.parametrize("role", ["dst", "batch_mean"])
def test_running_sums_are_found(role: str) -> None:
    x = image(1.0)
    finding, _ = differ(role, results(x, running)[role], expected(x)[role])
    assert finding is not None


@pytest.mark.parametrize("mean", [0.0, 1.0, 30.0])
def test_sums_made_of_parts_pass(mean: float) -> None:
    x = image(mean)
    found, estimates = results(x, chunked), expected(x)
    for role, estimate in estimates.items():
        finding, share = differ(role, found[role], estimate)
        assert finding is None, str(finding)
        assert share > 0


def gradients(x: np.ndarray, gradient: np.ndarray, normal: np.ndarray, inverse: np.ndarray) -> np.ndarray:
    """The gradient of what a batch norm reads, in float32, by what it normalised."""
    terms, axes = np.float32(x.size // CHANNELS), (0, 2, 3)
    along, total = ((part).sum(axes, keepdims=True) / terms for part in (gradient * normal, gradient))
    return (gradient - total - normal * along) * inverse


@pytest.mark.parametrize("careful", [True, False])
def test_gradients_go_by_distances_from_the_mean(careful: bool) -> None:
    random = np.random.default_rng(2)
    x = (1000 + random.standard_normal((2, CHANNELS, 7, 5)) / 4).astype("float32")
    wide = x.astype("float64")
    mean, variance = (part.astype("float32") for part in (wide.mean((0, 2, 3)), wide.var((0, 2, 3))))
    inverse = (1 / np.sqrt(variance + np.float32(EPSILON))).reshape(ROWS)
    gradient = ((wide - 1000) + random.standard_normal(x.shape) / 4).astype("float32")
    row = mean.reshape(ROWS)
    normal = (x - row) * inverse if careful else x * inverse - row * inverse
    given = {"src": x, "gradient": gradient, "mean": mean, "variance": variance, "scale": np.ones_like(mean)}
    step = ir.Step("", BatchNormalizationBackward(EPSILON), ())
    estimate = evaluate(step, x.shape, {role: [array] for role, array in given.items()}, ())["dst"]
    finding, share = differ("dst", gradients(x, gradient, normal, inverse), estimate)
    assert (finding is None) == careful and share > 0


def test_one_by_the_deviation_stands_for_the_variance() -> None:
    """Forward and backward say the same of either."""
    x = image(0.5)[:4, :, :9, :7]
    random = np.random.default_rng(3)
    scale = random.standard_normal(CHANNELS).astype("float32")
    given = {"src": [x], "scale": [scale], "shift": [np.zeros(CHANNELS, "float32")]}
    by_variance = evaluate(STEP, x.shape, given, ())
    inverse = ir.Step("", BatchNormalizationTraining(EPSILON, inverse=True), ())
    by_inverse = evaluate(inverse, x.shape, given, ())
    factor = 1 / np.sqrt(by_variance["batch_variance"].value + EPSILON)
    np.testing.assert_allclose(by_inverse["batch_variance"].value, factor, rtol=1e-12)
    assert (np.asarray(by_inverse["batch_variance"].error) > 0).all()
    np.testing.assert_array_equal(by_inverse["dst"].value, by_variance["dst"].value)
    backward = {
        "src": [x], "gradient": [random.standard_normal(x.shape)], "scale": [scale],
        "mean": [by_variance["batch_mean"].value], "variance": [by_variance["batch_variance"].value],
    }  # fmt: skip
    step = ir.Step("", BatchNormalizationBackward(EPSILON), ())
    right = evaluate(step, x.shape, backward, ())
    step = ir.Step("", BatchNormalizationBackward(EPSILON, inverse=True), ())
    found = evaluate(step, x.shape, {**backward, "variance": [factor]}, ())
    for role, one in right.items():
        np.testing.assert_allclose(found[role].value, one.value, rtol=1e-9, atol=1e-12)
