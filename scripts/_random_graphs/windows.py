"""Moves on images of one to three axes: convolutions, pooling, sizes, channels."""

from __future__ import annotations

from math import prod

import numpy as np

from . import forms
from .graph import MOST, Graph, Shape, Tensor

_CHANNELS = (1, 3, 5, 8, 12, 16, 17, 19, 24, 32, 33, 48, 64, 67)


def _window(g: Graph, x: Tensor, most: int = 5) -> tuple[list[int], list[int], list[int], list[int]] | None:
    """Kernel, strides, dilations and paddings that leave something of the image."""
    image = x.shape[2:]
    square = g.chance(0.6)
    kernel = [g.between(1, most)] * len(image) if square else [g.between(1, most) for _ in image]
    stride = [g.between(1, 2)] * len(image) if g.chance(0.7) else [g.between(1, 3) for _ in image]
    dilation = [g.between(1, 2) if g.chance(0.2) else 1 for _ in image]
    reach = [(k - 1) * d + 1 for k, d in zip(kernel, dilation, strict=True)]
    if g.chance(0.5):
        begin = [r // 2 for r in reach]
        end = begin
    else:
        begin, end = ([g.between(0, min(2, r - 1)) for r in reach] for _ in range(2))
    if any(size + b + e < r for size, b, e, r in zip(image, begin, end, reach, strict=True)):
        return None
    return kernel, stride, dilation, [*begin, *end]


def _slid(image: Shape, kernel: list[int], stride: list[int], dilation: list[int], pads: list[int]) -> Shape:
    axes = len(image)
    return tuple(
        (image[i] + pads[i] + pads[i + axes] - (kernel[i] - 1) * dilation[i] - 1) // stride[i] + 1
        for i in range(axes)
    )


def _groups(g: Graph, inputs: int, outputs: int) -> int:
    if not g.chance(0.35):
        return 1
    fitting = [n for n in range(1, inputs + 1) if inputs % n == 0 and outputs % n == 0]
    return int(g.pick(fitting))  # type: ignore[call-overload]


def convolution(g: Graph, x: Tensor) -> Tensor | None:
    window = _window(g, x, 3 if x.rank == 5 else 5)
    if window is None:
        return None
    kernel, stride, dilation, pads = window
    inputs = x.shape[1]
    depthwise = g.chance(0.2)
    outputs = inputs * g.between(1, 2) if depthwise else int(g.pick(_CHANNELS))  # type: ignore[call-overload]
    groups = inputs if depthwise else _groups(g, inputs, outputs)
    attributes: dict[str, object] = {"group": groups, "strides": stride, "dilations": dilation}
    if g.chance(0.15) and all(d == 1 for d in dilation):
        attributes["auto_pad"] = g.pick(["SAME_UPPER", "SAME_LOWER"])
        image = tuple(-(-size // s) for size, s in zip(x.shape[2:], stride, strict=True))
    else:
        attributes["pads"] = pads
        image = _slid(x.shape[2:], kernel, stride, dilation, pads)
    if prod(image) * outputs * x.shape[0] > MOST:
        return None
    depth = inputs // groups * prod(kernel)
    operands = [x, g.weights((outputs, inputs // groups, *kernel), depth)]
    if g.chance(0.6):
        operands.append(g.numbers((outputs,), 0.5))
    return g.node("Conv", operands, (x.shape[0], outputs, *image), **attributes)


def deconvolution(g: Graph, x: Tensor) -> Tensor | None:
    window = _window(g, x, 4)
    if window is None or x.rank == 5:
        return None
    kernel, stride, dilation, pads = window
    inputs, outputs = x.shape[1], int(g.pick(_CHANNELS))  # type: ignore[call-overload]
    groups = _groups(g, inputs, outputs)
    extra = [g.between(0, s - 1) if g.chance(0.3) else 0 for s in stride]
    axes = len(kernel)
    image = tuple(
        (x.shape[2 + i] - 1) * stride[i]
        + (kernel[i] - 1) * dilation[i]
        + (1 + extra[i] - pads[i] - pads[i + axes])
        for i in range(axes)
    )
    if min(image) < 1 or prod(image) * outputs * x.shape[0] > MOST:
        return None
    depth = max(1, inputs // groups * prod(kernel) // prod(stride))
    operands = [x, g.weights((inputs, outputs // groups, *kernel), depth)]
    if g.chance(0.6):
        operands.append(g.numbers((outputs,), 0.5))
    return g.node(
        "ConvTranspose", operands, (x.shape[0], outputs, *image), group=groups, strides=stride,
        dilations=dilation, pads=pads, output_padding=extra,
    )  # fmt: skip


def pooling(g: Graph, x: Tensor) -> Tensor | None:
    window = _window(g, x, 4)
    if window is None:
        return None
    kernel, stride, dilation, pads = window
    axes = len(kernel)
    average = g.chance(0.5)
    if average and g.opset < 19:
        dilation = [1] * axes
    reach = [(k - 1) * d + 1 for k, d in zip(kernel, dilation, strict=True)]
    if any(pad >= k for pad, k in zip(pads, kernel * 2, strict=True)):
        return None
    # Ceil mode where no window begins behind the image: there ONNX's versions differ.
    image = _slid(x.shape[2:], kernel, stride, dilation, pads)
    ceil = g.chance(0.3)
    if ceil:
        longer = []
        for i in range(axes):
            room = x.shape[2 + i] + pads[i] + pads[i + axes] - reach[i]
            count = -(-room // stride[i]) + 1
            if (count - 1) * stride[i] >= x.shape[2 + i] + pads[i]:
                return None
            longer.append(count)
        image = tuple(longer)
    if min(image) < 1:
        return None
    attributes: dict[str, object] = {
        "kernel_shape": kernel, "strides": stride, "pads": pads, "ceil_mode": int(ceil),
    }  # fmt: skip
    if not average or g.opset >= 19:
        attributes["dilations"] = dilation
    if average:
        attributes["count_include_pad"] = int(g.chance(0.5))
    return g.node("AveragePool" if average else "MaxPool", [x], (*x.shape[:2], *image), **attributes)


def global_pooling(g: Graph, x: Tensor) -> Tensor:
    operator = str(g.pick(["GlobalAveragePool", "GlobalAveragePool", "GlobalMaxPool"]))
    return g.node(operator, [x], (*x.shape[:2], *(1,) * (x.rank - 2)))


def squeeze_and_excite(g: Graph, x: Tensor) -> Tensor:
    """A weight for each channel, computed from the means of all."""
    channels, fewer = x.shape[1], max(1, x.shape[1] // g.between(2, 4))
    ones = (1,) * (x.rank - 2)
    y = g.node("GlobalAveragePool", [x], (*x.shape[:2], *ones))
    weights = g.weights((fewer, channels, *ones), channels)
    y = g.unary("Relu", g.node("Conv", [y, weights, g.numbers((fewer,))], (x.shape[0], fewer, *ones)))
    weights = g.weights((channels, fewer, *ones), fewer)
    y = g.node("Conv", [y, weights], (x.shape[0], channels, *ones))
    y = g.unary(str(g.pick(["Sigmoid", "HardSigmoid", "Tanh"])), y)
    return g.node("Mul", [x, y] if g.chance(0.5) else [y, x], x.shape)


def resize(g: Graph, x: Tensor) -> Tensor | None:
    if x.rank != 4:
        return None
    factors = [float(g.pick([0.5, 1.5, 2.0, 2.0, 3.0])) for _ in range(2)]  # type: ignore[arg-type]
    image = tuple(int(size * factor) for size, factor in zip(x.shape[2:], factors, strict=True))
    whole = all(size * factor % 1 == 0 for size, factor in zip(x.shape[2:], factors, strict=True))
    if min(image) < 1 or prod(image) * prod(x.shape[:2]) > MOST or (g.named and not whole):
        return None
    mode = str(g.pick(["nearest", "linear", "cubic"]))
    rules = ["half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel"]
    attributes: dict[str, object] = {"mode": mode, "coordinate_transformation_mode": g.pick(rules)}
    if mode == "nearest":
        attributes["nearest_mode"] = g.pick(["floor", "ceil", "round_prefer_floor", "round_prefer_ceil"])
    none = forms.no_region(g)
    if g.named or (whole and g.chance(0.5)):
        operands = [x, none, g.constant(np.array([1, 1, *factors], "float32"))]
    else:
        operands = [x, none, none, g.integers(*x.shape[:2], *image)]
    return g.node("Resize", operands, (*x.shape[:2], *image), **attributes)


def channel_shuffle(g: Graph, x: Tensor) -> Tensor | None:
    divisors = [n for n in range(2, x.shape[1]) if x.shape[1] % n == 0]
    if not divisors:
        return None
    groups = int(g.pick(divisors))  # type: ignore[call-overload]
    split = (x.shape[0], groups, x.shape[1] // groups, *x.shape[2:])
    order = [0, 2, 1, *range(3, x.rank + 1)]
    return g.reshape(g.transpose(g.reshape(x, split), order), x.shape)


def depth_and_space(g: Graph, x: Tensor) -> Tensor | None:
    if x.rank != 4:
        return None
    n, c, h, w = x.shape
    if c % 4 == 0 and g.chance(0.5):
        mode = g.pick(["DCR", "CRD"])
        return g.node("DepthToSpace", [x], (n, c // 4, 2 * h, 2 * w), blocksize=2, mode=mode)
    if h % 2 == 0 and w % 2 == 0:
        return g.node("SpaceToDepth", [x], (n, 4 * c, h // 2, w // 2), blocksize=2)
    return None
