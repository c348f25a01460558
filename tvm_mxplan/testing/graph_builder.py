"""Builds the `Skeleton` of a convolutional network layer by layer, and follows its shapes.

Every method takes and returns names of tensors; ``builder.shape(name)`` is a shape without the batch. Names
follow the order of the layers (``conv3``, ``conv3_weight``), so the same network always gets the same names.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .skeleton import Skeleton

if TYPE_CHECKING:
    import onnx

OPSET = 13
SAME = "same"
VALID = "valid"
Pair = int | tuple[int, int]


class GraphBuilder:
    """One image in, one output; ``finish`` returns the skeleton."""

    def __init__(self, name: str, image: tuple[int, int, int], bn_epsilon: float = 1e-5) -> None:
        self._name = name
        self._input = ("image", image)
        self._bn_epsilon = bn_epsilon
        self._nodes: list[onnx.NodeProto] = []
        self._parameters: dict[str, tuple[int, ...]] = {}
        self._constants: dict[str, np.ndarray] = {}
        self._shapes: dict[str, tuple[int, ...]] = {"image": image}
        self._count: dict[str, int] = {}

    @property
    def input(self) -> str:
        return self._input[0]

    def shape(self, tensor: str) -> tuple[int, ...]:
        return self._shapes[tensor]

    def conv(
        self, src: str, channels: int, kernel: Pair, stride: int = 1, pad: str = SAME, groups: int = 1
    ) -> str:
        """A convolution without bias; `SAME` pads (kernel - 1) // 2 on every side."""
        kernel = _pair(kernel)
        in_channels, height, width = self.shape(src)
        pads = tuple((k - 1) // 2 for k in kernel) if pad == SAME else (0, 0)
        size = _window(height, width, kernel, stride, pads)
        name = self._fresh("conv")
        weight = self._parameter(f"{name}_weight", (channels, in_channels // groups, *kernel))
        attributes = {"kernel_shape": kernel, "strides": (stride, stride), "pads": pads + pads}
        return self._add(name, "Conv", [src, weight], (channels, *size), group=groups, **attributes)

    def batch_norm(self, src: str) -> str:
        name = self._fresh("bn")
        vectors = [
            self._parameter(f"{name}_{role}", self.shape(src)[:1])
            for role in ("scale", "bias", "mean", "variance")
        ]
        return self._add(
            name, "BatchNormalization", [src, *vectors], self.shape(src), epsilon=self._bn_epsilon
        )

    def conv_bn(
        self, src: str, channels: int, kernel: Pair, stride: int = 1, pad: str = SAME, groups: int = 1
    ) -> str:
        return self.batch_norm(self.conv(src, channels, kernel, stride, pad, groups))

    def conv_bn_relu(
        self, src: str, channels: int, kernel: Pair, stride: int = 1, pad: str = SAME, groups: int = 1
    ) -> str:
        return self.relu(self.conv_bn(src, channels, kernel, stride, pad, groups))

    def relu(self, src: str) -> str:
        return self._add(self._fresh("relu"), "Relu", [src], self.shape(src))

    def relu6(self, src: str) -> str:
        bounds = [
            self._constant("zero", np.array(0, np.float32)),
            self._constant("six", np.array(6, np.float32)),
        ]
        return self._add(self._fresh("relu6"), "Clip", [src, *bounds], self.shape(src))

    def add(self, left: str, right: str) -> str:
        if self.shape(left) != self.shape(right):
            raise ValueError(f"add takes equal shapes, not {self.shape(left)} and {self.shape(right)}")
        return self._add(self._fresh("add"), "Add", [left, right], self.shape(left))

    def concat(self, *srcs: str) -> str:
        shapes = [self.shape(src) for src in srcs]
        if len({shape[1:] for shape in shapes}) != 1:
            raise ValueError(f"concat takes equal heights and widths, not {shapes}")
        channels = sum(shape[0] for shape in shapes)
        return self._add(self._fresh("concat"), "Concat", list(srcs), (channels, *shapes[0][1:]), axis=1)

    def max_pool(self, src: str, kernel: int, stride: int, pad: str = SAME) -> str:
        return self._pool("MaxPool", src, kernel, stride, pad)

    def average_pool(self, src: str, kernel: int, stride: int, pad: str = SAME) -> str:
        """Averages over the pixels inside the image: padding does not count."""
        return self._pool("AveragePool", src, kernel, stride, pad)

    def classifier(self, src: str, classes: int) -> str:
        """Global average, one dense layer with bias, softmax."""
        channels = self.shape(src)[0]
        pooled = self._add(self._fresh("global_average"), "GlobalAveragePool", [src], (channels, 1, 1))
        flat = self._add(self._fresh("flatten"), "Flatten", [pooled], (channels,), axis=1)
        name = self._fresh("dense")
        weight = self._parameter(f"{name}_weight", (classes, channels))
        bias = self._parameter(f"{name}_bias", (classes,))
        logits = self._add(name, "Gemm", [flat, weight, bias], (classes,), transB=1)
        return self._add("probabilities", "Softmax", [logits], (classes,), axis=-1)

    def finish(self, output: str) -> Skeleton:
        return Skeleton(
            name=self._name,
            nodes=tuple(self._nodes),
            input=self._input,
            output=(output, self.shape(output)),
            parameters=self._parameters,
            constants=self._constants,
            opset=OPSET,
        )

    def _pool(self, op_type: str, src: str, kernel: int, stride: int, pad: str) -> str:
        channels, height, width = self.shape(src)
        pads = ((kernel - 1) // 2,) * 2 if pad == SAME else (0, 0)
        size = _window(height, width, (kernel, kernel), stride, pads)
        attributes = {"kernel_shape": (kernel, kernel), "strides": (stride, stride), "pads": pads + pads}
        return self._add(self._fresh(op_type.lower()), op_type, [src], (channels, *size), **attributes)

    def _add(
        self, name: str, op_type: str, srcs: list[str], shape: tuple[int, ...], **attributes: Any
    ) -> str:
        from onnx import helper

        self._nodes.append(helper.make_node(op_type, srcs, [name], name=name, **attributes))
        self._shapes[name] = shape
        return name

    def _parameter(self, name: str, shape: tuple[int, ...]) -> str:
        self._parameters[name] = shape
        return name

    def _constant(self, name: str, value: np.ndarray) -> str:
        self._constants[name] = value
        return name

    def _fresh(self, kind: str) -> str:
        self._count[kind] = self._count.get(kind, 0) + 1
        return f"{kind}{self._count[kind]}"


def _pair(value: Pair) -> tuple[int, int]:
    return (value, value) if isinstance(value, int) else value


def _window(
    height: int, width: int, kernel: tuple[int, int], stride: int, pads: tuple[int, ...]
) -> tuple[int, int]:
    return (
        (height + 2 * pads[0] - kernel[0]) // stride + 1,
        (width + 2 * pads[1] - kernel[1]) // stride + 1,
    )
