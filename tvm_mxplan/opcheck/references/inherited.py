"""Numbers with the error that they inherit, for what goes on for many steps.

A state is off by what the row it is made of is off by, through the slope of its activation.  Errors of many
units that meet in one product are of either sign, as roundings are: they add up by their squares, like the
terms of a sum do in ``estimate.py``.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import special

from ..estimate import UNIT_ROUNDOFF, Array, gamma
from .elementwise import FUNCTIONS


class Off(NamedTuple):
    """Numbers, and how far off they may be."""

    value: Array
    error: Array

    def __add__(self, other: Off) -> Off:  # type: ignore[override]
        value = self.value + other.value
        return Off(value, self.error + other.error + UNIT_ROUNDOFF * np.abs(value))

    def times(self, other: Off) -> Off:
        value = self.value * other.value
        error = np.abs(self.value) * other.error + np.abs(other.value) * self.error
        return Off(value, error + self.error * other.error + UNIT_ROUNDOFF * np.abs(value))

    def from_one(self) -> Off:
        return Off(1 - self.value, self.error + UNIT_ROUNDOFF)


def exactly(value: Array) -> Off:
    return Off(value, np.zeros_like(value))


def product(features: Array, weights: Array) -> Off:
    """Of rows without errors, and weights [units, columns]."""
    size = np.abs(features) @ np.abs(weights)
    return Off(features @ weights, gamma(weights.shape[0] + 1) * size)


def product_of(rows: Off, weights: Array) -> Off:
    """Of rows with errors."""
    value, rounding = product(rows.value, weights)
    return Off(value, rounding + np.sqrt(np.square(rows.error) @ np.square(weights)))


def sigmoid(x: Off) -> Off:
    near = special.expit(np.maximum(np.abs(x.value) - x.error, 0))
    value = special.expit(x.value)
    return Off(value, near * (1 - near) * x.error + FUNCTIONS["logistic"].relative * value)


def tanh(x: Off) -> Off:
    near = np.tanh(np.maximum(np.abs(x.value) - x.error, 0))
    value = np.tanh(x.value)
    return Off(value, (1 - near * near) * x.error + FUNCTIONS["tanh"].relative * np.abs(value))
