"""Networks beside the zoo, in Relax, with random weights: kinds of layers that the zoo has none of.

regnet       grouped convolutions of 3x3, squeeze-and-excite      after arXiv 2003.13678, RegNetY-800MF
mobilenet3   depthwise of 3x3 and 5x5, squeeze-and-excite, hard swish         arXiv 1905.02244, large
efficientnet the same with swish                                               arXiv 1905.11946, B0
resnext      grouped convolutions in 32 groups                                 arXiv 1611.05431, 50
encoder      attention, layer norms, GELU: see ``encoder``
unet         convolutions of 3x3, transposed convolutions, concatenations      arXiv 1505.04597, narrow
convnext     depthwise of 7x7, layer norms over channels, GELU                 arXiv 2201.03545, tiny
darknet      leaky ReLU, 1x1 and 3x3 in turns                                  arXiv 1804.02767, 53
shuffle2     halves of channels, depthwise, shuffles                           arXiv 1807.11164, 1x
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import tvm
from tvm import relax
from tvm.relax import op

from .encoder import encoder

_CLASSES = 1000


class Builder:
    """A function ``main`` of one image, layer by layer."""

    def __init__(self, batch: int, size: int = 224, channels: int = 3) -> None:
        self.block = relax.BlockBuilder()
        self.image = relax.Var("x", relax.TensorType((batch, channels, size, size), "float32"))
        self._random = np.random.default_rng(0)

    def weights(self, *shape: int) -> relax.Constant:
        scale = np.float32(np.sqrt(2 / max(np.prod(shape[1:]), 1)))
        return relax.const(self._random.standard_normal(shape, np.float32) * scale)

    def emit(self, expr: relax.Expr) -> relax.Expr:
        return self.block.emit(expr)

    def channels(self, x: relax.Expr) -> int:
        return int(x.ty.shape[1])

    def conv(
        self, x: relax.Expr, outputs: int, kernel: int = 1, stride: int = 1, groups: int = 1
    ) -> relax.Expr:
        weights = self.weights(outputs, self.channels(x) // groups, kernel, kernel)
        pad = (kernel - 1) // 2
        y = self.emit(op.nn.conv2d(x, weights, strides=stride, padding=pad, groups=groups))
        return self.emit(op.add(y, self.weights(1, outputs, 1, 1)))

    def depthwise(self, x: relax.Expr, kernel: int, stride: int = 1) -> relax.Expr:
        return self.conv(x, self.channels(x), kernel, stride, self.channels(x))

    def relu(self, x: relax.Expr) -> relax.Expr:
        return self.emit(op.nn.relu(x))

    def silu(self, x: relax.Expr) -> relax.Expr:
        return self.emit(op.nn.silu(x))

    def leaky(self, x: relax.Expr) -> relax.Expr:
        return self.emit(op.nn.leakyrelu(x, 0.1))

    def hard_sigmoid(self, x: relax.Expr) -> relax.Expr:
        six = self.emit(op.clip(self.emit(op.add(x, relax.const(np.float32(3)))), 0.0, 6.0))
        return self.emit(op.multiply(six, relax.const(np.float32(1 / 6))))

    def hard_swish(self, x: relax.Expr) -> relax.Expr:
        return self.emit(op.multiply(x, self.hard_sigmoid(x)))

    def add(self, left: relax.Expr, right: relax.Expr) -> relax.Expr:
        return self.emit(op.add(left, right))

    def excite(
        self,
        x: relax.Expr,
        narrow: int,
        inner: Callable[[relax.Expr], relax.Expr],
        gate: Callable[..., relax.Expr],
    ) -> relax.Expr:
        """Squeeze-and-excite: ``x`` times a gate for each channel, made of the averages of all channels."""
        pooled = self.emit(op.mean(x, [2, 3], keepdims=True))
        scale = self.conv(inner(self.conv(pooled, narrow)), self.channels(x))
        return self.emit(op.multiply(x, gate(scale)))

    def sigmoid(self, x: relax.Expr) -> relax.Expr:
        return self.emit(op.sigmoid(x))

    def classifier(self, x: relax.Expr) -> relax.Expr:
        pooled = self.emit(op.mean(x, [2, 3]))
        return self.emit(op.matmul(pooled, self.weights(self.channels(x), _CLASSES)))

    def module(self, body: Callable[[Builder, relax.Expr], relax.Expr]) -> tvm.IRModule:
        with self.block.function("main", [self.image]):
            with self.block.dataflow():
                result = self.block.emit_output(body(self, self.image))
            self.block.emit_func_output(result)
        return self.block.get()


def _regnet(b: Builder, x: relax.Expr) -> relax.Expr:
    x = b.relu(b.conv(x, 32, 3, 2))
    for width, depth in ((64, 1), (144, 3), (320, 8), (784, 2)):
        for at in range(depth):
            stride = 2 if at == 0 else 1
            y = b.relu(b.conv(x, width))
            y = b.relu(b.conv(y, width, 3, stride, width // 16))
            y = b.excite(y, max(b.channels(x) // 4, 8), b.relu, b.sigmoid)
            short = b.conv(x, width, 1, stride) if at == 0 else x
            x = b.relu(b.add(b.conv(y, width), short))
    return b.classifier(x)


def _resnext(b: Builder, x: relax.Expr) -> relax.Expr:
    x = b.relu(b.conv(x, 64, 7, 2))
    x = b.emit(op.nn.max_pool2d(x, 3, 2, 1))
    for stage, depth in enumerate((3, 4, 6, 3)):
        width = 128 << stage
        for at in range(depth):
            stride = 2 if at == 0 and stage else 1
            y = b.relu(b.conv(x, width))
            y = b.relu(b.conv(y, width, 3, stride, 32))
            short = b.conv(x, 2 * width, 1, stride) if at == 0 else x
            x = b.relu(b.add(b.conv(y, 2 * width), short))
    return b.classifier(x)


_MOBILE = (
    # kernel, inner width, outputs, excited, hard swish, stride
    *((3, 16, 16, 0, 0, 1), (3, 64, 24, 0, 0, 2), (3, 72, 24, 0, 0, 1), (5, 72, 40, 1, 0, 2)),
    *((5, 120, 40, 1, 0, 1), (5, 120, 40, 1, 0, 1), (3, 240, 80, 0, 1, 2), (3, 200, 80, 0, 1, 1)),
    *((3, 184, 80, 0, 1, 1), (3, 184, 80, 0, 1, 1), (3, 480, 112, 1, 1, 1), (3, 672, 112, 1, 1, 1)),
    *((5, 672, 160, 1, 1, 2), (5, 960, 160, 1, 1, 1), (5, 960, 160, 1, 1, 1)),
)


def _mobilenet3(b: Builder, x: relax.Expr) -> relax.Expr:
    x = b.hard_swish(b.conv(x, 16, 3, 2))
    for kernel, inner, outputs, excited, swish, stride in _MOBILE:
        act = b.hard_swish if swish else b.relu
        y = act(b.depthwise(act(b.conv(x, inner)), kernel, stride))
        if excited:
            y = b.excite(y, inner // 4, b.relu, b.hard_sigmoid)
        y = b.conv(y, outputs)
        x = b.add(y, x) if stride == 1 and outputs == b.channels(x) else y
    return b.classifier(b.hard_swish(b.conv(x, 960)))


def _efficientnet(b: Builder, x: relax.Expr) -> relax.Expr:
    x = b.silu(b.conv(x, 32, 3, 2))
    rows = ((1, 16, 1, 1, 3), (6, 24, 2, 2, 3), (6, 40, 2, 2, 5), (6, 80, 3, 2, 3), (6, 112, 3, 1, 5))
    for expand, outputs, depth, first, kernel in (*rows, (6, 192, 4, 2, 5), (6, 320, 1, 1, 3)):
        for at in range(depth):
            stride, inputs = (first if at == 0 else 1), b.channels(x)
            y = b.silu(b.conv(x, expand * inputs)) if expand > 1 else x
            y = b.silu(b.depthwise(y, kernel, stride))
            y = b.conv(b.excite(y, max(inputs // 4, 1), b.silu, b.sigmoid), outputs)
            x = b.add(y, x) if stride == 1 and inputs == outputs else y
    return b.classifier(b.silu(b.conv(x, 1280)))


def _unet(b: Builder, x: relax.Expr) -> relax.Expr:
    def twice(x: relax.Expr, width: int) -> relax.Expr:
        return b.relu(b.conv(b.relu(b.conv(x, width, 3)), width, 3))

    kept = []
    for width in (32, 64, 128, 256):
        x = twice(x, width)
        kept.append(x)
        x = b.emit(op.nn.max_pool2d(x, 2, 2))
    x = twice(x, 512)
    for before in reversed(kept):
        width = b.channels(before)
        up = op.nn.conv2d_transpose(x, b.weights(2 * width, width, 2, 2), strides=2)
        x = twice(b.emit(op.concat([before, b.emit(up)], 1)), width)
    return b.conv(x, 2)


def _convnext(b: Builder, x: relax.Expr) -> relax.Expr:
    def norm(x: relax.Expr) -> relax.Expr:
        width = int(x.ty.shape[-1])
        return b.emit(op.nn.layer_norm(x, b.weights(width), b.weights(width), [-1], 1e-6))

    def image(x: relax.Expr) -> relax.Expr:
        return b.emit(op.permute_dims(x, [0, 3, 1, 2]))

    def rows(x: relax.Expr) -> relax.Expr:
        return b.emit(op.permute_dims(x, [0, 2, 3, 1]))

    def down(x: relax.Expr, width: int, size: int) -> relax.Expr:
        weights = b.weights(width, b.channels(x), size, size)
        return b.emit(op.nn.conv2d(x, weights, strides=size))

    for stage, depth in enumerate((3, 3, 9, 3)):
        width = 96 << stage
        x = down(x, width, 4) if stage == 0 else down(image(norm(rows(x))), width, 2)
        for _ in range(depth):
            y = norm(rows(b.depthwise(x, 7)))
            y = b.emit(op.add(b.emit(op.matmul(y, b.weights(width, 4 * width))), b.weights(4 * width)))
            y = b.emit(op.matmul(b.emit(op.nn.gelu(y)), b.weights(4 * width, width)))
            x = b.add(x, image(b.emit(op.add(y, b.weights(width)))))
    return b.classifier(x)


def _darknet(b: Builder, x: relax.Expr) -> relax.Expr:
    x = b.leaky(b.conv(x, 32, 3))
    for width, depth in ((64, 1), (128, 2), (256, 8), (512, 8), (1024, 4)):
        x = b.leaky(b.conv(x, width, 3, 2))
        for _ in range(depth):
            x = b.add(x, b.leaky(b.conv(b.leaky(b.conv(x, width // 2)), width, 3)))
    return b.classifier(x)


def _shuffle2(b: Builder, x: relax.Expr) -> relax.Expr:
    def shuffled(left: relax.Expr, right: relax.Expr) -> relax.Expr:
        x = b.emit(op.concat([left, right], 1))
        batch, channels, *size = (int(extent) for extent in x.ty.shape)
        split = b.emit(op.reshape(x, (batch, 2, channels // 2, *size)))
        return b.emit(op.reshape(b.emit(op.permute_dims(split, [0, 2, 1, 3, 4])), (batch, channels, *size)))

    x = b.emit(op.nn.max_pool2d(b.relu(b.conv(x, 24, 3, 2)), 3, 2, 1))
    for width, depth in ((116, 4), (232, 8), (464, 4)):
        for at in range(depth):
            half = width // 2
            if at == 0:
                left = b.relu(b.conv(b.depthwise(x, 3, 2), half))
                right = b.relu(b.conv(b.depthwise(b.relu(b.conv(x, half)), 3, 2), half))
            else:
                left = b.emit(op.strided_slice(x, [1], [0], [half]))
                right = b.emit(op.strided_slice(x, [1], [half], [width]))
                right = b.relu(b.conv(b.depthwise(b.relu(b.conv(right, half)), 3), half))
            x = shuffled(left, right)
    return b.classifier(b.relu(b.conv(x, 1024)))


_BODIES: dict[str, Callable[[Builder, relax.Expr], relax.Expr]] = {
    "regnet": _regnet,
    "mobilenet3": _mobilenet3,
    "efficientnet": _efficientnet,
    "resnext": _resnext,
    "unet": _unet,
    "convnext": _convnext,
    "darknet": _darknet,
    "shuffle2": _shuffle2,
}
NAMES = (*_BODIES, "encoder")
UNSEEN = ("convnext", "darknet", "shuffle2")
"""Those that the model of costs was not fitted to."""


def network(name: str, batch: int) -> tvm.IRModule:
    """The module of that name; ValueError where there is none."""
    if name == "encoder":
        return encoder(batch)
    if name not in _BODIES:
        raise ValueError(f"no network {name!r}; there are {', '.join(NAMES)}")
    size = {"unet": 128}.get(name, 224)
    return Builder(batch, size).module(_BODIES[name])
