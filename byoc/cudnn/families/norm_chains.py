"""Norms that a model spreads over several operators: rows of numbers less their mean, over their deviation.

    y = (x - mean(x)) / sqrt(variance(x) + epsilon)       as ONNX's InstanceNormalization comes
    c = x - mean(x);  y = c / sqrt(mean(c * c) + epsilon)

Rows are all of the last axes that the statistics are over.  Scales and shifts behind are other operators.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from tvm import relax
from tvm.relax.dpl import DFPattern, is_const, is_op, wildcard

from tvm_mxplan.byoc.activations import either
from tvm_mxplan.byoc.composite import Composite
from tvm_mxplan.core.program.dims import static_shape
from tvm_mxplan.passes.relax_types import scalar_of, shape_of

_Pattern = tuple[DFPattern, dict[str, DFPattern]]


def by_variance() -> _Pattern:
    x = wildcard()
    mean, variance = is_op("relax.mean")(x), is_op("relax.variance")(x)
    return _over_deviation(is_op("relax.subtract")(x, mean), mean, variance)


def by_squares() -> _Pattern:
    x, two = wildcard(), is_const()
    mean = is_op("relax.mean")(x)
    centred = is_op("relax.subtract")(x, mean)
    power = is_op("relax.power")(centred, two)
    square = power | is_op("relax.multiply")(centred, centred) | is_op("relax.square")(centred)
    root, named = _over_deviation(centred, mean, is_op("relax.mean")(square))
    return root, {**named, "two": two}


def _over_deviation(centred: DFPattern, mean: DFPattern, variance: DFPattern) -> _Pattern:
    epsilon = is_const()
    deviation = is_op("relax.sqrt")(either("relax.add", variance, epsilon))
    named = {"epsilon": epsilon, "mean": mean, "variance": variance}
    return is_op("relax.divide")(centred, deviation), named


def why_not(match: Mapping[str, relax.Expr]) -> str | None:
    if "two" in match and scalar_of(match["two"]) != 2.0:
        return "an exponent that is not 2"
    if scalar_of(match["epsilon"]) is None:
        return "an epsilon that is no number"
    rank = len(shape_of(match["root"]))  # type: ignore[arg-type]
    axes = _axes(match["mean"], rank)
    if axes != list(range(rank - len(axes), rank)):
        return f"axes {axes} are not the last ones"
    if axes != _axes(match["variance"], rank):
        return "mean and variance over different axes"
    kept = all(bool(match[name].attrs.keepdims) for name in ("mean", "variance"))
    return None if kept else "mean or variance without keepdims"


def columns(c: Composite) -> int:
    """The numbers of a row."""
    shape = static_shape(c.shape)
    return math.prod(shape[axis] for axis in _axes(c.find("mean"), len(shape)))


def _axes(call: relax.Call, rank: int) -> list[int]:
    axes = call.attrs.axis
    return list(range(rank)) if axes is None else sorted(int(axis) % rank for axis in axes)
