"""Random parameters that leave a skeleton's activations as lively as trained ones.

A check with dead, exploding or constant activations proves nothing, so every parameter is drawn for its role:

- weights are normal with He's variance, 1 / (fan-in * mean square of the input); behind a ReLU a filter has
  a zero sum besides, so that it answers to what varies in its input and not to the mean, which in a deep
  network drowns everything else and makes all images give one answer;
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
"""Filters at least this large sum to zero where their input is rectified."""
RECTIFIED_VARIANCE = 0.5 - 0.5 / math.pi
"""The variance of max(x, 0) for x ~ N(0, 1)."""

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
    """How to draw one parameter: ``gain * N(0, deviation)``, or ``gain * U(low, high)`` if that is 0."""

    low: float = 0.0
    high: float = 0.0
    deviation: float = 0.0
    gain: float = 1.0
    centred_axis: int | None = None
    """Weights sum to zero over all axes but this, which counts the filters."""

    def draw(self, rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
        if self.deviation:
            values = rng.standard_normal(shape, np.float32)
            values *= np.float32(self.deviation * self.gain)
            if self.centred_axis is not None:
                axes = tuple(axis for axis in range(len(shape)) if axis != self.centred_axis)
                values -= values.mean(axis=axes, keepdims=True)
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
    rules: dict[str, Rule] = {}
    for node, index, name in graph.parameter_uses():
        gain = gains.get(node.output[0], 1.0)
        if node.op_type in _WEIGHTED and index == 1:
            rule = _weight_rule(*graph.filters(node, name), graph.is_rectified(node.input[0]), gain)
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


def _weight_rule(fan_in: int, axis: int, rectified: bool, gain: float) -> Rule:
    if rectified and fan_in >= CENTRED_FAN_IN:
        deviation = 1 / math.sqrt(fan_in * RECTIFIED_VARIANCE)
        return Rule(deviation=deviation, gain=gain, centred_axis=axis)
    return Rule(deviation=1 / math.sqrt(fan_in * (0.5 if rectified else 1.0)), gain=gain)


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
