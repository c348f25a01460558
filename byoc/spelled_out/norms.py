"""Norms that a model spreads over several operators: rows of numbers less their mean, over their deviation.

    y = (x - mean(x)) / sqrt(variance(x) + epsilon)       as ONNX's InstanceNormalization comes
    c = x - mean(x);  y = c / sqrt(mean(c * c) + epsilon)

Scales and shifts behind are other operators.
"""

from __future__ import annotations

from collections.abc import Sequence

from tvm import relax
from tvm.relax.dpl import DFPattern, is_const, is_op, wildcard

from tvm_mxplan.passes.relax_types import scalar_of, shape_of

from .activations import Match, Pattern, either


def by_variance() -> Pattern:
    x = wildcard()
    mean, variance = is_op("relax.mean")(x), is_op("relax.variance")(x)
    return _over_deviation(x, is_op("relax.subtract")(x, mean), mean, variance)


def by_squares() -> Pattern:
    x, two = wildcard(), is_const()
    mean = is_op("relax.mean")(x)
    centred = is_op("relax.subtract")(x, mean)
    power = is_op("relax.power")(centred, two)
    square = power | is_op("relax.multiply")(centred, centred) | is_op("relax.square")(centred)
    root, named = _over_deviation(x, centred, mean, is_op("relax.mean")(square))
    return root, {**named, "two": two}


def _over_deviation(x: DFPattern, centred: DFPattern, mean: DFPattern, variance: DFPattern) -> Pattern:
    epsilon = is_const()
    deviation = is_op("relax.sqrt")(either("relax.add", variance, epsilon))
    named = {"x": x, "epsilon": epsilon, "mean": mean, "variance": variance}
    return is_op("relax.divide")(centred, deviation), named


def of_last_axes(match: Match) -> str | None:
    """Reason against a norm of rows of the last axes, as many as it states; None for none."""
    rank, axes = len(shape_of(match["root"])), match["mean"].attrs.axis  # type: ignore[arg-type]
    return of_axes(match, list(range(rank - len(axes or ()), rank)), "the last ones")


def of_axes(match: Match, expected: Sequence[int], wording: str) -> str | None:
    """Reason against a norm over the axes ``expected``, which keep their dimensions, and a plain epsilon."""
    if "two" in match and scalar_of(match["two"]) != 2.0:
        return "an exponent that is not 2"
    for name in ("mean", "variance"):
        if axes_of(match[name]) != list(expected):
            return f"{name} over other axes than {wording}"
        if not bool(match[name].attrs.keepdims):
            return f"{name} without keepdims"
    return None if scalar_of(match["epsilon"]) is not None else "an epsilon that is no number"


def axes_of(statistics: relax.Call) -> list[int] | None:
    """The axes that a mean or variance is over, from 0 on; None where it states none."""
    axes, rank = statistics.attrs.axis, len(shape_of(statistics.args[0]))  # type: ignore[arg-type]
    return None if axes is None else sorted(int(axis) % rank for axis in axes)
