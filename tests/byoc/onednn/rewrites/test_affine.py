"""Chains of scales and shifts: what is merged errs hardly more than its parts, what would is left alone."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from tvm_mxplan.byoc.onednn.rewrites.affine import (
    Line,
    _error,
    _kink,
    keeps_digits,
    product,
    representable,
    scaled,
    shifted,
    shorter,
)


def chain(*operations: float, channels: int = 3) -> list[Line]:
    """Factors and summands in turn, the first one a factor; 0 and 1 leave an operation out."""
    lines = []
    for at, number in enumerate(operations):
        if at % 2 == 0 and number != 1:
            lines.append(scaled(np.full(channels, number)))
        if at % 2 == 1 and number != 0:
            lines.append(shifted(np.full(channels, number)))
    return lines


def run(lines: list[Line], x: np.ndarray) -> np.ndarray:
    """As float32 computes it."""
    y = x.astype("float32")
    for line in lines:
        y = y * line.scale.astype("float32") if line.multiplies else y
        y = y + line.shift.astype("float32") if line.adds else y
    return y


@pytest.mark.parametrize(
    ("operations", "length"),
    [
        ((2.0, 0.5, 3.0, 0.25), 2),
        ((0.3, 0.7, 1.7, -0.2, 0.9, 4.1), 2),
        ((1.5, 0.0, 2.5, 0.0, 0.1), 1),
        ((1.0, -1e6, 3.0, 0.5, 2.0), 3),
        ((1.0, -1e6, 0.5, 0.0, 2.0, 0.3), 2),
        ((1.0, -1e6, 0.5, 0.0, 2.0, 0.5), 1),
        ((1.0, 1e6, 1.0, -1e6 + 0.1, 1.0, 3e-3), 1),
    ],
)
def test_merged_chains(operations, length):
    lines = chain(*operations)
    form = shorter(lines)
    assert form is not None and len(form) == length
    whole = product(lines)
    np.testing.assert_allclose(product(form).scale, whole.scale, rtol=1e-12)
    np.testing.assert_allclose(product(form).shift, whole.shift, rtol=1e-12)


@pytest.mark.parametrize(
    "operations",
    [(1.0, -1e6, 1 / 3, 0.5), (1.0, -100.3, 1 / 3), (1.0, -1e6, 1.0, -0.3), (1e30, 0, 1e30)],
)
def test_chains_that_stay(operations):
    assert shorter(chain(*operations)) is None


def test_random_chains_keep_their_digits():
    """On numbers around those where the result or a part of it cancels, against float64."""
    random, merged = np.random.default_rng(0), 0
    for _ in range(200):
        operations = [
            float(np.float32(sign * 10.0**power))
            for sign, power in zip(random.choice([-1, 1], 6), random.uniform(-4, 4, 6), strict=True)
        ]
        lines = chain(*operations)
        form = shorter(lines)
        if form is None:
            continue
        merged += 1
        kinks = [-line.shift[0] / line.scale[0] for line in (product(lines[:n]) for n in range(1, 7))]
        near = np.concatenate([kink * (1 + random.uniform(-1e-5, 1e-5, 200)) for kink in [*kinks, 1.0]])
        x = near.astype("float32")[:, None]
        exact = product(lines).scale * x.astype("float64") + product(lines).shift
        assert (np.abs(run(form, x) - exact) <= 5 * _bound(lines, x.astype("float64"))).all()
    assert merged > 50


def _bound(lines: list[Line], x: np.ndarray) -> np.ndarray:
    """Half a unit in the last place for each operation, carried through those after it."""
    error, y = np.zeros_like(x), x
    for line in lines:
        y = y * line.scale + line.shift
        error = error * np.abs(line.scale) + np.abs(y) * 2.0**-24
    return error


def test_a_source_with_an_error_of_its_own_lets_more_merge():
    lines = chain(1.0, -1e6, 3.0)
    assert not keeps_digits([product(lines)], lines)
    assert keeps_digits([product(lines)], lines, rounded=True)


def test_one_channel_that_cancels_keeps_all_apart():
    shift = shifted(np.array([0.5, 0.5, -1e6]))
    lines = [shift, scaled(np.array([2.0, 3.0, 4.0])), shifted(np.array([0.5, 0.5, 0.5]))]
    assert shorter(lines) is None


@pytest.mark.parametrize(
    ("numbers", "expected"),
    [([0.0, 1.0], True), ([1e-39, 1.0], False), ([1e39], False), ([np.inf], False), ([np.nan], False)],
)
def test_what_float32_holds(numbers, expected):
    assert representable(np.array(numbers)) is expected


def test_small_weights_beside_large_ones_do_not_count():
    assert representable(np.array([[1e-39, 1.0], [0.0, 0.0]]), axis=0)
    assert not representable(np.array([[1e-39, 1e-39], [1.0, 1.0]]), axis=0)


def test_how_much_worse_a_shorter_chain_may_be() -> None:
    """(x - c) * 2 + 2 errs by 2 units at x = c, x * 2 + (2 - 2c) by 2c + 2, four times that where c is 3."""
    assert len(shorter(chain(1.0, -3.0, 2.0, 2.0)) or ()) == 2
    assert shorter(chain(1.0, -3.0625, 2.0, 2.0)) is None
    for shift, keeps in ((-3.0, True), (-3.0625, False)):
        lines = chain(1.0, shift, 2.0, 2.0)
        assert keeps_digits([product(lines)], lines) is keeps
        assert keeps_digits([product(lines)], lines, rounded=True)


def test_errors_by_hand() -> None:
    """y = 3x, z = y + 0.1 at x = 2: what y rounds, what 0.1 is off by in float32, and what z rounds."""
    off = abs(float(np.float32(0.1)) - 0.1) * 2**24
    points = np.array([[2.0]])
    lines = [scaled(np.array([3.0])), shifted(np.array([0.1]))]
    np.testing.assert_allclose(_error(lines, points, 1), [[6 + off + 6.1]])
    np.testing.assert_allclose(_error(lines[::-1], points, 1), [[3 * (off + 2.1) + 6.3]])
    both = [product(lines)]
    np.testing.assert_allclose(_error(both, points, 1), [[off + 6.1]])
    np.testing.assert_allclose(_error(both, points, 2), [[off + 6.1 + 6.0]])
    third = [scaled(np.array([1 / 3]))]
    off = abs(float(np.float32(1 / 3)) - 1 / 3) * 2**24
    np.testing.assert_allclose(_error(third, points, 2), [[2 * off + 2 / 3]])


def test_kinks() -> None:
    """The place at which a line is 0; a line that is 0 nowhere, or everywhere, has none."""
    line = Line(np.array([2.0, 0.0, 0.0, 0.0, 1.0]), np.array([-3.0, 1.0, -1.0, 0.0, 0.0]))
    np.testing.assert_array_equal(_kink(line), [1.5, 0.0, 0.0, 0.0, 0.0])


@pytest.mark.parametrize("number", [1e-39, 1e39, np.inf])
@pytest.mark.parametrize("place", range(3))
def test_no_number_of_a_form_may_be_beyond_float32(place: int, number: float) -> None:
    """In any of its lines, as a scale or as a shift, of any channel."""
    lines = chain(2.0, 0.5, 3.0, 0.25)
    form = shorter(lines)
    assert form is not None and keeps_digits(form, lines)
    numbers = np.array([1.0, 1.0, 1.0])
    numbers[place] = number
    for wrong in (Line(numbers, np.zeros(3)), Line(np.ones(3), numbers)):
        assert not keeps_digits([form[0], wrong], [form[0], wrong])
        assert not keeps_digits([wrong, form[0]], [wrong, form[0]])


def test_the_ends_of_float32() -> None:
    tiny, largest = float(np.finfo("float32").tiny), float(np.finfo("float32").max)
    assert representable(np.array([tiny, -tiny, largest, -largest]))
    assert not representable(np.array([tiny * 0.999])) and not representable(np.array([largest * 1.001]))
    assert representable(np.zeros((0, 3)), axis=1)


@pytest.mark.parametrize("number", [0.0, 1e-300, np.inf])
def test_scales_of_nothing_and_of_everything_are_weighed_without_a_word(number):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert _kink(Line(np.array([0.0, 2.0]), np.array([number, 3.0])))[1] == -1.5
        assert np.isfinite(_kink(Line(np.full(2, number), np.ones(2)))).all()
