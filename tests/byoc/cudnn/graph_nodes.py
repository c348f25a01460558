"""Nodes of operation graphs in float64, as cuDNN's documentation says what they compute."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product
from typing import Any

import numpy as np
from scipy.special import erf

Array = np.ndarray[Any, Any]
Shape = tuple[int, ...]


def run_node(node: dict[str, Any], inputs: list[Array], shape: Shape) -> Array | tuple[Array, ...]:
    """The result of a node, of the shape that its tensor states; of some kinds, several."""
    return _KINDS[node["kind"]](node, inputs, shape)


# --- elementwise -------------------------------------------------------------------------------------------


def _relu(node: dict[str, Any], x: Array) -> Array:
    return np.where(x < 0, node.get("slope", 0.0) * x, x)


_FUNCTIONS: dict[str, Callable[..., Array]] = {
    "ADD": np.add,
    "SUB": np.subtract,
    "MUL": np.multiply,
    "DIV": np.divide,
    "MAX": np.maximum,
    "MIN": np.minimum,
    "POW": np.power,
    "TANH_FWD": np.tanh,
    "SIGMOID_FWD": lambda x: 1 / (1 + np.exp(-x)),
    "GELU_FWD": lambda x: x * 0.5 * (1 + erf(x / np.sqrt(2))),
    "GELU_APPROX_TANH_FWD": lambda x: x * 0.5 * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3))),
    "EXP": np.exp,
    "LOG": np.log,
    "ABS": np.abs,
    "SQRT": np.sqrt,
    "RSQRT": lambda x: 1 / np.sqrt(x),
    "ERF": erf,
    "FLOOR": np.floor,
    "CEIL": np.ceil,
    "NEG": np.negative,
    "CMP_GT": lambda x, y: np.greater(x, y).astype(np.float64),
    "CMP_GE": lambda x, y: np.greater_equal(x, y).astype(np.float64),
    "CMP_LE": lambda x, y: np.less_equal(x, y).astype(np.float64),
}
_WITH_NUMBERS: dict[str, Callable[[dict[str, Any], Array], Array]] = {
    "RELU_FWD": _relu,
    "ELU_FWD": lambda node, x: np.where(x < 0, node["elu_alpha"] * np.expm1(x), x),
    "SWISH_FWD": lambda node, x: x / (1 + np.exp(-node["swish_beta"] * x)),
    "SOFTPLUS_FWD": lambda node, x: np.logaddexp(0, node["softplus_beta"] * x) / node["softplus_beta"],
}


def _pointwise(node: dict[str, Any], inputs: list[Array], shape: Shape) -> Array:
    if node["mode"] in _WITH_NUMBERS:
        return _WITH_NUMBERS[node["mode"]](node, *inputs)
    return np.broadcast_to(_FUNCTIONS[node["mode"]](*inputs), shape)


# --- windows ------------------------------------------------------------------------------------------------


def _places(node: dict[str, Any], window: Shape, extents: Shape) -> Iterator[tuple[Shape, tuple[slice, ...]]]:
    """Each point of a window, and where in the padded image it lies for all of its places."""
    dilation = node.get("dilation", (1,) * len(window))
    for at in product(*map(range, window)):
        yield (
            at,
            tuple(
                slice(
                    dilation[i] * at[i],
                    dilation[i] * at[i] + node["stride"][i] * (extents[i] - 1) + 1,
                    node["stride"][i],
                )
                for i in range(len(window))
            ),
        )


def _pads(node: dict[str, Any]) -> list[tuple[int, int]]:
    return [(0, 0), (0, 0), *zip(node["pre_padding"], node["post_padding"], strict=True)]


def _convolution(node: dict[str, Any], inputs: list[Array], shape: Shape) -> Array:
    """Window by window; groups are what the filters' channels say, as cuDNN has it."""
    image, filters = inputs
    groups = image.shape[1] // filters.shape[1]
    padded = np.pad(image, _pads(node))
    dilation, stride, window = node["dilation"], node["stride"], filters.shape[2:]
    extents = tuple(
        (padded.shape[2 + i] - dilation[i] * (window[i] - 1) - 1) // stride[i] + 1 for i in range(len(window))
    )
    assert extents == shape[2:]
    result = np.zeros(shape)
    for at, box in _places(node, window, extents):
        for group in range(groups):
            own = _part(filters, groups, group, 0)[(..., *at)]
            result[:, _channels(shape[1], groups, group)] += np.einsum(
                "ni...,oi->no...", _part(padded, groups, group, 1)[(..., *box)], own
            )
    return result


def _data_gradient(node: dict[str, Any], inputs: list[Array], shape: Shape) -> Array:
    """The gradient that a convolution hands back to its image [shape], from the gradient of its result."""
    gradient, filters = inputs
    groups = shape[1] // filters.shape[1]
    pads = _pads(node)
    padded = np.zeros([extent + sum(pad) for extent, pad in zip(shape, pads, strict=True)])
    for at, box in _places(node, filters.shape[2:], gradient.shape[2:]):
        for group in range(groups):
            own = _part(filters, groups, group, 0)[(..., *at)]
            channels = _channels(shape[1], groups, group)
            padded[(slice(None), channels, *box)] += np.einsum(
                "no...,oi->ni...", _part(gradient, groups, group, 1), own
            )
    return padded[tuple(slice(pad[0], pad[0] + extent) for pad, extent in zip(pads, shape, strict=True))]


def _weights_gradient(node: dict[str, Any], inputs: list[Array], shape: Shape) -> Array:
    """The gradient of filters [shape], from that of the convolution's result and its image."""
    gradient, image = inputs
    groups = image.shape[1] // shape[1]
    padded = np.pad(image, _pads(node))
    result = np.zeros(shape)
    for at, box in _places(node, shape[2:], gradient.shape[2:]):
        for group in range(groups):
            rows = _part(gradient, groups, group, 1)
            read = _part(padded, groups, group, 1)[(..., *box)]
            own = np.einsum("nos,nis->oi", *(one.reshape(*one.shape[:2], -1) for one in (rows, read)))
            result[(_channels(shape[0], groups, group), slice(None), *at)] = own
    return result


def _part(array: Array, groups: int, group: int, axis: int) -> Array:
    return np.split(array, groups, axis)[group]


def _channels(channels: int, groups: int, group: int) -> slice:
    return slice(group * (channels // groups), (group + 1) * (channels // groups))


def _resample(node: dict[str, Any], inputs: list[Array], shape: Shape) -> Array:
    (image,) = inputs
    fill = -np.inf if node["padding"] == "NEG_INF_PAD" else 0.0
    padded = np.pad(image, _pads(node), constant_values=fill)
    inside = np.pad(np.ones(image.shape), _pads(node))
    boxes = [box for _, box in _places(node, tuple(node["window"]), shape[2:])]
    values = np.stack([padded[(..., *box)] for box in boxes])
    if node["mode"] == "MAXPOOL":
        return values.max(0)
    counted = np.stack([inside[(..., *box)] for box in boxes]).sum(0)
    return values.sum(0) / (len(boxes) if node["mode"] == "AVGPOOL_INCLUDE_PADDING" else counted)


# --- matrices and rows -------------------------------------------------------------------------------------


def _reduction(node: dict[str, Any], inputs: list[Array], shape: Shape) -> Array:
    axes = tuple(at for at, extent in enumerate(shape) if extent != inputs[0].shape[at])
    function = {"ADD": np.sum, "MAX": np.max, "MIN": np.min}[node["mode"]]
    return function(inputs[0], axis=axes, keepdims=True)


def _layer_norm(_node: dict[str, Any], inputs: list[Array], _shape: Shape) -> Array:
    x, scale, shift, epsilon = inputs
    axes = tuple(range(1, x.ndim))
    centred = x - x.mean(axes, keepdims=True)
    return centred / np.sqrt(x.var(axes, keepdims=True) + epsilon) * scale + shift


def _batch_norm(_node: dict[str, Any], inputs: list[Array], _shape: Shape) -> tuple[Array, ...]:
    """The result, the batch's mean, and 1 / deviation."""
    x, scale, shift, epsilon = inputs
    axes = (0, *range(2, x.ndim))
    mean = x.mean(axes, keepdims=True)
    inverse = 1 / np.sqrt(x.var(axes, keepdims=True) + epsilon)
    return (x - mean) * inverse * scale + shift, mean, inverse


def _batch_norm_gradient(_node: dict[str, Any], inputs: list[Array], _shape: Shape) -> tuple[Array, ...]:
    gradient, x, scale, mean, inverse = inputs
    axes = (0, *range(2, x.ndim))
    normal = (x - mean) * inverse
    of_scale = (gradient * normal).sum(axes, keepdims=True)
    of_shift = gradient.sum(axes, keepdims=True)
    terms = x.size // x.shape[1]
    return scale * inverse * (gradient - (of_shift + normal * of_scale) / terms), of_scale, of_shift


def _attention(node: dict[str, Any], inputs: list[Array], _shape: Shape) -> Array:
    query, key, value, scale, *mask = inputs
    repeats = query.shape[1] // key.shape[1]
    key, value = (np.repeat(one, repeats, 1) for one in (key, value))
    scores = scale * query @ key.swapaxes(2, 3)
    if mask:
        scores = scores + mask[0]
    rows, columns = scores.shape[2:]
    last = {"no": columns, "first": 0, "last": columns - rows}[node["causal"]]
    scores = np.where(np.tril(np.ones((rows, columns), bool), last), scores, -np.inf)
    weights = np.exp(scores - scores.max(3, keepdims=True))
    return weights / weights.sum(3, keepdims=True) @ value


_KINDS: dict[str, Callable[[dict[str, Any], list[Array], Shape], Array | tuple[Array, ...]]] = {
    "batch_norm": _batch_norm,
    "batch_norm_gradient": _batch_norm_gradient,
    "pointwise": _pointwise,
    "convolution": _convolution,
    "data_gradient": _data_gradient,
    "weights_gradient": _weights_gradient,
    "resample": _resample,
    "matmul": lambda _node, inputs, _shape: inputs[0] @ inputs[1],
    "reduction": _reduction,
    "layer_norm": _layer_norm,
    "attention": _attention,
}
