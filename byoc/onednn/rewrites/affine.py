"""Chains of scales and shifts as shorter ones, where that keeps the digits of the result.

Before   x - 1e6;  * 3;  + 0.5;  * 2          (x near 1e6: the difference is exact)
After    x - 1e6;  * 6;  + 1
Never    x * 6 + (1 - 6e6)                    (two numbers near 6e6: seven digits are gone)

Each operation of a chain rounds, and what follows scales its error.  With u for the unit roundoff and y for
the exact results, a chain errs by at most

    u * sum over operations of (|y| + errors of rounded constants / u) * |product of later scales|

which is a function of x made of straight pieces.  A shorter chain is taken where its bound is below
``_WORSE`` times that of the chain in its place *for every x*: at the kinks of both and far out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

_WORSE = 4.0
_UNIT_ROUNDOFF = 2.0**-24
_NEGLIGIBLE = 2.0**-20  # of a unit roundoff: what the bounds themselves are computed with
_TINY, _LARGEST = float(np.finfo("float32").tiny), float(np.finfo("float32").max)


@dataclass(frozen=True)
class Line:
    """``scale * x + shift``, a number of each for every channel, in float64."""

    scale: np.ndarray
    shift: np.ndarray

    def then(self, after: Line) -> Line:
        return Line(self.scale * after.scale, self.shift * after.scale + after.shift)

    @property
    def multiplies(self) -> bool:
        return bool(np.any(self.scale != 1))

    @property
    def adds(self) -> bool:
        return bool(np.any(self.shift != 0))


def scaled(factor: np.ndarray) -> Line:
    """Multiplication alone."""
    return Line(np.asarray(factor, "float64"), np.zeros(np.shape(factor)))


def shifted(summand: np.ndarray) -> Line:
    """Addition alone."""
    return Line(np.ones(np.shape(summand)), np.asarray(summand, "float64"))


def shorter(chain: Sequence[Line]) -> list[Line] | None:
    """Multiplications and additions, fewer than ``chain`` has, in its place; None where it has to stay.

    Either a scale and a shift, or the shifts in front of the first scale, then a scale and a shift.
    """
    whole = product(chain)
    first = next((at for at, line in enumerate(chain) if line.multiplies), len(chain))
    before = product(chain[:first]).shift if first else np.zeros(whole.shift.shape)
    for front in (np.zeros(before.shape), before):
        parts = [shifted(front), scaled(whole.scale), shifted(whole.shift - front * whole.scale)]
        form = [line for line in parts if line.multiplies or line.adds] or [scaled(whole.scale)]
        if len(form) < len(chain) and keeps_digits(form, chain):
            return form
    return None


def product(chain: Sequence[Line]) -> Line:
    """The chain as one line, without rounding."""
    whole, *others = chain
    for line in others:
        whole = whole.then(line)
    return whole


def keeps_digits(form: Sequence[Line], chain: Sequence[Line], *, rounded: bool = False) -> bool:
    """True if ``form``, with constants in float32, errs for no x much more than ``chain``.

    ``rounded``: x is the result of a sum of products, and has an error of its own.
    """
    if not all(representable(line.scale) and representable(line.shift) for line in form):
        return False
    kinks = np.stack([_kink(line) for line in (*_partial(form), *_partial(chain))])
    far = 1e6 * (1 + np.abs(kinks).max(0))  # on the other side sizes are the same there
    points = np.stack([*kinks, far])
    own = np.abs(product(chain).scale * points) if rounded else 0.0
    allowed = _WORSE * (own + _error(chain, points, roundings=1))
    whole = product(form)
    noise = _NEGLIGIBLE * (np.abs(whole.scale * points) + np.abs(whole.shift))
    return bool(np.all(own + _error(form, points, roundings=2) <= allowed + noise))


def representable(numbers: np.ndarray, axis: int | None = None) -> bool:
    """True if float32 holds the numbers to full precision: each, or the largest along each of an axis.

    Infinities and NaN are not: a sum or product with them is another one in another order.
    """
    sizes = np.abs(np.asarray(numbers, "float64"))
    if axis is not None:
        sizes = np.moveaxis(sizes, axis, 0).reshape(sizes.shape[axis], -1).max(1, initial=0.0)
    return bool(np.all(((sizes >= _TINY) & (sizes <= _LARGEST)) | (sizes == 0)))


def _partial(chain: Sequence[Line]) -> list[Line]:
    """x as it is, and what the chain has made of it after each operation."""
    lines = [shifted(np.zeros(chain[0].shift.shape))]
    for line in chain:
        lines.append(lines[-1].then(line))
    return lines


def _kink(line: Line) -> np.ndarray:
    """The point at which the line is 0, and its size has a kink."""
    with np.errstate(all="ignore"):
        return np.nan_to_num(-line.shift / line.scale, nan=0.0, posinf=0.0, neginf=0.0)


def _error(chain: Sequence[Line], points: np.ndarray, roundings: int) -> np.ndarray:
    """The bound of the module's text at ``points`` [n, channels], in units of the unit roundoff.

    ``roundings`` of a line that multiplies and adds: processors differ in whether they round in between.
    """
    error = np.zeros(points.shape)
    for before, line, after in zip(_partial(chain), chain, _partial(chain)[1:], strict=False):
        y = before.scale * points + before.shift
        constants = _rounding(line.scale) * np.abs(y) + _rounding(line.shift)
        error = np.abs(line.scale) * error + constants + np.abs(after.scale * points + after.shift)
        if roundings == 2 and line.multiplies and line.adds:
            error = error + np.abs(line.scale * y)
    return error


def _rounding(numbers: np.ndarray) -> np.ndarray:
    return np.abs(numbers.astype("float32").astype("float64") - numbers) / _UNIT_ROUNDOFF
