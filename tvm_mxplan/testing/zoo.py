"""The model zoo: published image networks with random weights, at any batch, in one line.

    model = zoo.load("resnet50", batch=8)
    inputs = zoo.random_inputs(model, seed=1)

`LIGHT` models ship with the `onnx` package (opset 9, without weights); `BUILT` ones are made here (opset 13).
All end in a softmax but densenet121, which ends in logits. Weights come from `randomize`: the same name and
seed give the same weights at every batch. Needs the `onnx` package.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from . import architectures
from .randomize import Randomizer
from .skeleton import Batch, Skeleton, assemble, read_light

if TYPE_CHECKING:
    import onnx

LIGHT = (
    "bvlc_alexnet",
    "densenet121",
    "inception_v1",
    "inception_v2",
    "resnet50",
    "shufflenet",
    "squeezenet",
    "vgg19",
    "zfnet512",
)
BUILT = ("resnet18", "resnet152", "mobilenet_v2", "inception_v3", "inception_v4")
TINY = "tiny"

_LOGITS_GAIN = {
    "bvlc_alexnet": 0.026,
    "inception_v1": 0.02,
    "inception_v2": 0.31,
    "resnet50": 0.7,
    "shufflenet": 1.4,
    "squeezenet": 3.6,
    "vgg19": 0.64,
    "zfnet512": 0.077,
    "resnet18": 1.5,
    "resnet152": 0.44,
    "mobilenet_v2": 3.2,
    "inception_v3": 1.45,
    "inception_v4": 1.35,
    "tiny": 4.0,
}
"""Measured, 1 for the others: a deviation of the logits near 2 makes a softmax neither flat nor a step."""


def names() -> tuple[str, ...]:
    """Every model; all but `TINY` are published networks."""
    return (*LIGHT, *BUILT, TINY)


def load(name: str, batch: Batch = 1, seed: int = 0) -> onnx.ModelProto:
    """The named model with random weights. ``batch`` is a number or the name of a symbolic dimension."""
    if isinstance(batch, int) and batch < 1:
        raise ValueError(f"the batch must be at least 1, not {batch}")
    skeleton = load_skeleton(name)
    return assemble(skeleton, Randomizer(skeleton, seed, _LOGITS_GAIN.get(name, 1.0)), batch)


def load_skeleton(name: str) -> Skeleton:
    """The named model without weights."""
    if name in LIGHT:
        return read_light(name)
    if name in BUILT or name == TINY:
        build: Callable[[], Skeleton] = getattr(architectures, name)
        return build()
    raise ValueError(f"no model {name!r} in the zoo; it has {', '.join(names())}")


@dataclass(frozen=True)
class Input:
    """One input of a model."""

    name: str
    shape: tuple[Batch, ...]
    dtype: np.dtype


def input_of(model: onnx.ModelProto) -> Input:
    """The only input of ``model``."""
    from onnx import helper

    initializers = {tensor.name for tensor in model.graph.initializer}
    values = [value for value in model.graph.input if value.name not in initializers]
    if len(values) != 1:
        raise ValueError(f"expected a model of one input, not of {[value.name for value in values]}")
    tensor = values[0].type.tensor_type
    shape = tuple(dim.dim_param or dim.dim_value for dim in tensor.shape.dim)
    return Input(values[0].name, shape, helper.tensor_dtype_to_np_dtype(tensor.elem_type))


def random_inputs(model: onnx.ModelProto, seed: int = 0, batch: int = 1) -> dict[str, np.ndarray]:
    """Images for ``model``, by input name; ``batch`` is read where the model's own is symbolic."""
    wanted = input_of(model)
    shape = tuple(batch if isinstance(dim, str) else dim for dim in wanted.shape)
    return {wanted.name: random_images(shape, seed).astype(wanted.dtype)}


def random_images(shape: tuple[int, ...], seed: int = 0) -> np.ndarray:
    """NCHW noise of zero mean and unit deviation that, as photographs, has detail at every scale.

    White noise would not do: deep networks average it away, and all inputs then give the same answer.
    """
    rng = np.random.default_rng(seed)
    batch, channels, height, width = shape
    images = np.zeros(shape, np.float32)
    for cell in (1, 4, 16, 64):
        size = (batch, channels, -(-height // cell), -(-width // cell))
        noise = rng.standard_normal(size, np.float32)
        images += noise.repeat(cell, axis=2).repeat(cell, axis=3)[:, :, :height, :width]
    images += rng.standard_normal((batch, channels, 1, 1), np.float32)
    return images / np.float32(np.sqrt(5))
