"""Random parameters that leave a skeleton's activations as lively as trained ones.

A check with dead, exploding or constant activations proves nothing, so every parameter is drawn for its role:

- weights are normal with He's variance, 1 / (fan-in * mean square of the input); behind a ReLU a part of each
  filter's mean is taken away, so that it answers to what varies in its input more than to the input's mean,
  which in a deep network drowns everything else and makes all images give one answer. Rounding errors vary
  too, so the deeper the network, the smaller the part;
- batch-norm scales are uniform in [0.5, 1.5], its variances uniform with the same relative width around the
  value that makes scale and variance cancel on average; means and biases are small;
- what ends the branch of a residual sum is scaled down by the number of sums;
- networks with local response normalisation get a large first layer, or it would divide by one.

A value depends on the seed and on the parameter's name alone, not on the order, the batch or the platform.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from .skeleton import Skeleton

if TYPE_CHECKING:
    import onnx

SCALE_RANGE = (0.5, 1.5)
VARIANCE_CENTRE = (13 / 12) * math.log(3)
"""E[scale^2] * E[1 / variance] = 1 for scale ~ U(1/2, 3/2) and variance ~ U(1/2, 3/2) * this."""
OFFSET_DEVIATION = 0.1
RESIDUAL_GROWTH = 2.0
"""Each of n residual branches gets a gain of sqrt(this / n): the variance grows by e^this at most."""
PROJECTION_GAIN = math.sqrt(0.5)
LRN_MODEL_GAIN = 50.0

CENTRED_FAN_IN = 9
"""Filters at least this large lose a part of their mean where their input is rectified."""
CENTRED_GROWTH = 4.0
"""By how much centred filters let differences grow, relative to the values, from the input to the output."""
RECTIFIED_SQUARE = 0.5
RECTIFIED_VARIANCE = 0.5 - 0.5 / math.pi
"""The mean square and the variance of max(x, 0) for x ~ N(0, 1)."""

_WEIGHTED = ("Conv", "Gemm")
_RECTIFIERS = ("Relu", "Clip")
_KEEPS_SIGN = (
    "AveragePool",
    "Concat",
    "Dropout",
    "Flatten",
    "GlobalAveragePool",
    "LRN",
    "MaxPool",
    "Reshape",
    "Transpose",
)


@dataclass(frozen=True)
class Rule:
    """The draw of one parameter: ``gain * N(0, deviation)``, or ``gain * U(low, high)`` if that is 0."""

    low: float = 0.0
    high: float = 0.0
    deviation: float = 0.0
    gain: float = 1.0
    centred: float = 0.0
    """The part of each filter's mean that is taken away."""
    filter_axis: int = 0

    def draw(self, rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
        if self.deviation:
            values = rng.standard_normal(shape, np.float32)
            values *= np.float32(self.deviation * self.gain)
            if self.centred:
                axes = tuple(axis for axis in range(len(shape)) if axis != self.filter_axis)
                values -= np.float32(self.centred) * values.mean(axis=axes, keepdims=True)
            return values
        width = np.float32((self.high - self.low) * self.gain)
        return rng.random(shape, np.float32) * width + np.float32(self.low * self.gain)


class Randomizer:
    """The ``value_of(name, shape)`` of `skeleton.assemble`; ``logits_gain`` multiplies the last layer."""

    def __init__(self, skeleton: Skeleton, seed: int = 0, logits_gain: float = 1.0) -> None:
        self._seed = seed
        self._rules = derive_rules(skeleton, logits_gain)

    def __call__(self, name: str, shape: tuple[int, ...]) -> np.ndarray:
        rng = np.random.default_rng([self._seed, zlib.crc32(name.encode())])
        return self._rules[name].draw(rng, shape)


def derive_rules(skeleton: Skeleton, logits_gain: float = 1.0) -> dict[str, Rule]:
    """The rule of every parameter, from the place where the network uses it."""
    graph = _Graph(skeleton)
    gains = _layer_gains(graph, logits_gain)
    level = LRN_MODEL_GAIN if graph.has("LRN") else 1.0
    last = graph.last_weighted()
    depth = _depth(graph)
    rules: dict[str, Rule] = {}
    for node, index, name in graph.parameter_uses():
        gain = gains.get(node.output[0], 1.0)
        if node.op_type in _WEIGHTED and index == 1:
            rule = _weight_rule(*graph.filters(node, name), graph.is_rectified(node.input[0]), depth, gain)
        elif node.op_type == "Mul" or (node.op_type == "BatchNormalization" and index == 1):
            low, high = SCALE_RANGE
            rule = Rule(low, high, gain=gain)
        elif node.op_type == "BatchNormalization" and index == 4:
            low, high = SCALE_RANGE
            rule = Rule(low * VARIANCE_CENTRE, high * VARIANCE_CENTRE)
        else:  # biases and means
            is_last = node.output[0] == last
            rule = Rule(deviation=OFFSET_DEVIATION, gain=level * min(1.0, logits_gain if is_last else 1.0))
        rules[name] = rule
    return rules


def _weight_rule(fan_in: int, axis: int, rectified: bool, depth: float, gain: float) -> Rule:
    if not rectified:
        return Rule(deviation=1 / math.sqrt(fan_in), gain=gain)
    if fan_in < CENTRED_FAN_IN:
        return Rule(deviation=1 / math.sqrt(fan_in * RECTIFIED_SQUARE), gain=gain)
    # A filter that keeps the part k of its mean sees a mean square of variance + k^2 * mean^2, and
    # differences grow by what it does not see.
    seen = max(RECTIFIED_SQUARE / CENTRED_GROWTH ** (2 / depth), RECTIFIED_VARIANCE)
    kept = math.sqrt((seen - RECTIFIED_VARIANCE) / (RECTIFIED_SQUARE - RECTIFIED_VARIANCE))
    return Rule(deviation=1 / math.sqrt(fan_in * seen), gain=gain, centred=1 - kept, filter_axis=axis)


def _depth(graph: _Graph) -> float:
    """Weighted layers on the way to the output, where a residual branch counts by its share of the sum."""
    sums = graph.residual_sums()
    share = RESIDUAL_GROWTH / (RESIDUAL_GROWTH + len(sums))
    depths: dict[str, float] = {}
    for node in graph.nodes:
        behind = sorted(depths.get(name, 0.0) for name in node.input)
        depth = behind[-1]
        if node in sums:
            depth = behind[0] + (behind[1] - behind[0]) * share
        elif node.op_type in _WEIGHTED:
            depth += 1
        depths.update(dict.fromkeys(node.output, depth))
    return max(depths.values())


def _layer_gains(graph: _Graph, logits_gain: float) -> dict[str, float]:
    """Gains other than one, by the output of the node whose weight or scale takes them."""
    gains: dict[str, float] = {}
    if graph.has("LRN"):
        first = next(node for node in graph.nodes if node.op_type == "Conv")
        gains[first.output[0]] = LRN_MODEL_GAIN
    sums = graph.residual_sums()
    for node in sums:
        ends = [end for name in node.input if (end := graph.linear_layer_before(name))]
        gain = PROJECTION_GAIN if len(ends) == 2 else math.sqrt(RESIDUAL_GROWTH / len(sums))
        gains.update(dict.fromkeys(ends, gain))
    last = graph.last_weighted()
    gains[last] = gains.get(last, 1.0) * logits_gain
    return gains


class _Graph:
    """Questions about the nodes of a skeleton."""

    def __init__(self, skeleton: Skeleton) -> None:
        self.nodes = skeleton.nodes
        self._skeleton = skeleton
        self._producers = {name: node for node in skeleton.nodes for name in node.output}

    def has(self, op_type: str) -> bool:
        return any(node.op_type == op_type for node in self.nodes)

    def parameter_of(self, name: str) -> str | None:
        """The parameter that ``name`` is, or is a reshaped view of."""
        while name not in self._skeleton.parameters:
            node = self._producers.get(name)
            if node is None or node.op_type not in ("Reshape", "Unsqueeze"):
                return None
            name = node.input[0]
        return name

    def parameter_uses(self) -> Iterator[tuple[onnx.NodeProto, int, str]]:
        """(node, operand index, parameter) for every operand that is a parameter; not for mere reshapes."""
        for node in self.nodes:
            if node.op_type in ("Reshape", "Unsqueeze"):
                continue
            for index, name in enumerate(node.input):
                if parameter := self.parameter_of(name):
                    yield node, index, parameter

    def residual_sums(self) -> list[onnx.NodeProto]:
        """Sums of two activations."""
        return [
            node
            for node in self.nodes
            if node.op_type in ("Add", "Sum") and not any(map(self.parameter_of, node.input))
        ]

    def filters(self, node: onnx.NodeProto, weight: str) -> tuple[int, int]:
        """The fan-in of ``weight`` and the axis that counts its filters."""
        shape = self._skeleton.parameters[weight]
        view = self._producers.get(node.input[1])
        seen = shape if view is None else tuple(self._skeleton.constants[view.input[1]].tolist())
        transposed = any(attribute.name == "transB" and attribute.i for attribute in node.attribute)
        filters = seen[0] if node.op_type == "Conv" or transposed else seen[1]
        return math.prod(shape) // filters, shape.index(filters)

    def is_rectified(self, name: str) -> bool:
        """Whether the tensor holds no negative values."""
        node = self._producers.get(name)
        if node is None:
            return False
        if node.op_type in _RECTIFIERS:
            return True
        if node.op_type == "Concat":
            return all(self.is_rectified(source) for source in node.input)
        return node.op_type in _KEEPS_SIGN and self.is_rectified(node.input[0])

    def linear_layer_before(self, name: str) -> str | None:
        """The output of the batch norm, else the convolution, that directly makes ``name``."""
        node = self._producers.get(name)
        if node is not None and node.op_type in ("BatchNormalization", "Conv"):
            return name
        return None

    def last_weighted(self) -> str:
        return next(node.output[0] for node in reversed(self.nodes) if node.op_type in _WEIGHTED)
