"""Draws a case: a random graph with inputs and options, the same for the same mode, seed and number."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import onnx

from . import elementwise, forms, integers, logic, sequences, shape_arithmetic, shapes, structures, windows
from .graph import Array, Graph, Tensor

MODES = ("f32", "bf16", "sym", "host", "int8")
"""Float32; option precision=bf16; a named batch, run with several; target "dnnl, host, llvm"; quantised."""

Move = Callable[[Graph, Tensor], Tensor | list[Tensor] | None]

_IMAGES: dict[Move, int] = {
    windows.convolution: 10,
    windows.deconvolution: 3,
    windows.pooling: 5,
    windows.global_pooling: 1,
    windows.squeeze_and_excite: 1,
    windows.resize: 2,
    windows.channel_shuffle: 1,
    windows.depth_and_space: 1,
    elementwise.batch_normalization: 2,
    elementwise.norm_of_image: 2,
    structures.separable: 2,
    structures.excite_by_rows: 1,
    structures.window_attention: 1,
    structures.pyramid: 2,
    structures.detection: 1,
    structures.patches: 1,
}
_ROWS: dict[Move, int] = {
    sequences.dense: 6,
    sequences.attention: 3,
    sequences.recurrent: 2,
    sequences.einsum: 1,
    sequences.product: 2,
    structures.gated: 1,
    structures.rotated: 1,
    structures.shared_weights: 2,
}
_ANY: dict[Move, int] = {
    elementwise.function: 8,
    elementwise.with_constant: 5,
    elementwise.with_value: 6,
    elementwise.choice: 1,
    elementwise.through_integers: 1,
    elementwise.layer_norm: 2,
    shapes.transpose: 3,
    shapes.reshape: 3,
    shapes.squeeze: 2,
    shapes.concat: 3,
    shapes.split: 2,
    shapes.slice_: 2,
    shapes.pad: 1,
    shapes.gather: 1,
    shapes.repeat: 1,
    shapes.reduction: 2,
    shapes.softmax: 2,
    shapes.indices: 1,
    shapes.running_sum: 1,
    shape_arithmetic.computed_reshape: 1,
    shape_arithmetic.spread: 1,
    shape_arithmetic.scalar: 1,
    shape_arithmetic.empty: 1,
    shape_arithmetic.constant_branch: 1,
    structures.chosen: 1,
    logic.truths: 1,
    logic.whole_numbers: 1,
    logic.places: 1,
    logic.elements: 1,
}
_INTEGERS: dict[Move, int] = {
    integers.activation: 6,
    integers.dynamic: 1,
    integers.linear_operator: 3,
    elementwise.with_value: 8,
    shapes.transpose: 2,
    shapes.reshape: 2,
    shapes.concat: 5,
    shapes.split: 2,
    shapes.slice_: 1,
    shapes.pad: 1,
    shapes.softmax: 1,
    shapes.reduction: 1,
    shapes.gather: 1,
}
_INTEGER_IMAGES: dict[Move, int] = {
    integers.convolution: 12,
    windows.pooling: 6,
    windows.global_pooling: 1,
    windows.channel_shuffle: 1,
    windows.resize: 1,
}
_TRIES = 30
_OPSETS = ((11, 12, 13, 14, 15, 16, 17, 17, 18, 18, 19, 20, 20, 21, 22), (18, 19, 21, 22))
"""Of real numbers, and of integers."""
_SIZES = (1, 2, 3, 5)
"""Of a named batch."""


@dataclass(frozen=True)
class Case:
    """A model, several sets of inputs, and what it is compiled with."""

    model: onnx.ModelProto
    feeds: Sequence[Mapping[str, Array]]
    options: Mapping[str, object]
    target: str | None

    @property
    def name(self) -> str:
        return " ".join(f"{name}={value}" for name, value in self.options.items() if name != "cache")


def draw(mode: str, seed: int, number: int) -> Case:
    """The case of that number."""
    random = np.random.default_rng([MODES.index(mode), seed, number])
    graph = Graph(random, int(random.choice(_OPSETS[mode == "int8"])), named=mode == "sym")
    _begin(graph, mode)
    for _ in range(graph.between(2, 14)):
        _grow(graph, mode)
    if mode == "int8":
        graph.values[:] = [
            integers.rounded(graph, one) if graph.is_free(one) and graph.chance(0.8) else one
            for one in graph.values
        ]
    sizes = [graph.values[0].shape[0]]
    if mode == "sym":
        sizes = [int(one) for one in random.permutation(_SIZES)[:3]]
    feeds = [_feed(graph, size if mode == "sym" else 0) for size in sizes]
    return Case(graph.finish(), feeds, _options(graph, mode), "dnnl, host, llvm" if mode == "host" else None)


def _begin(g: Graph, mode: str) -> None:
    n = g.between(1, 3)
    if g.chance(0.65) or (mode == "int8" and g.chance(0.5)):
        axes = int(g.pick([2, 2, 2, 2, 1, 3]))  # type: ignore[call-overload]
        channels = int(g.pick([1, 3, 3, 4, 8, 16, 17, 24, 32, 35]))  # type: ignore[call-overload]
        image = [g.between(4, (14, 40, 7)[axes - 1 if axes != 1 else 1]) for _ in range(axes)]
        if axes == 2:
            image = [g.between(4, 20) for _ in range(2)]
        x = g.input((n, channels, *image))
        if g.chance(0.2):  # a second input that adds to the first
            g.values.append(g.input(x.shape))
    elif mode != "int8" and g.chance(0.25):
        x = sequences.embedding(g)
    elif mode not in ("int8", "sym") and g.chance(0.08):
        x = g.input((g.between(1, 40),))
    else:
        shape = (n, g.between(2, 20), int(g.pick([4, 16, 17, 32])))  # type: ignore[call-overload]
        x = g.input(shape if g.chance(0.7) else (n, shape[2]))
    if mode == "int8":
        x = integers.rounded(g, x)
    elif g.chance(0.25):
        x = _with_another_input(g, x)
    g.values.append(x)


def _with_another_input(g: Graph, x: Tensor) -> Tensor:
    """A number, a vector or truths that the model is given beside its samples."""
    how = g.pick(["number", "vector", "mask"])
    if how == "mask":
        mask = g.input(x.shape, "bool")
        return g.node("Where", [mask, x, forms.number(g, 0.1)], x.shape)
    other = g.input(() if how == "number" else x.shape[-1:], single=True)
    return g.node(str(g.pick(["Mul", "Add", "Sub"])), [x, other], x.shape)


def _grow(g: Graph, mode: str) -> None:
    """Adds one move to a value, mostly to a late one that nothing reads yet."""
    for _ in range(_TRIES):
        late = [value for value in g.values[-3:] if g.is_free(value)]
        x = g.pick(late if late and g.chance(0.75) else g.values)
        assert isinstance(x, Tensor)
        moves = _moves(x, mode)
        weights = np.array(list(moves.values()), float)
        move = list(moves)[int(g.random.choice(len(moves), p=weights / weights.sum()))]
        mark = g.mark()
        made = move(g, x)
        if made is None and not g.has_kept(mark):
            g.restore(mark)
            continue
        found = made if isinstance(made, list) else [made] if made is not None else []
        if mode == "int8":
            found = [integers.rounded(g, one) if g.chance(0.8) else one for one in found]
        g.values.extend(found)
        return


def _moves(x: Tensor, mode: str) -> dict[Move, int]:
    if mode == "int8":
        moves = dict(_INTEGERS)
        if x.rank in (3, 4):
            moves |= _INTEGER_IMAGES
        if x.rank in (2, 3):
            moves |= {integers.dense: 8}
        return {move: weight for move, weight in moves.items() if x.rank > 1 or move in _INTEGERS}
    moves = dict(_ANY)
    if 3 <= x.rank <= 5:
        moves |= _IMAGES
    if x.rank >= 2:
        moves |= _ROWS
    if mode == "host":
        moves |= {elementwise.choice: 5, elementwise.through_integers: 5, shapes.gather: 5, shapes.slice_: 6}
        moves |= {logic.truths: 3, logic.whole_numbers: 4, logic.places: 2}
        if 3 <= x.rank <= 5:
            moves |= {windows.resize: 6}
    return moves


def _feed(g: Graph, samples: int) -> dict[str, Array]:
    feed: dict[str, Array] = {}
    for name, (tensor, below) in g.inputs.items():
        shape = tensor.shape
        if samples and name not in g.single:
            shape = (samples, *shape[1:])
        if tensor.dtype == "bool":
            feed[name] = g.random.random(shape) < 0.5
        elif below:
            feed[name] = g.random.integers(0, below, shape).astype(tensor.dtype)
        else:
            feed[name] = g.random.standard_normal(shape).astype("float32")
    return feed


def _options(g: Graph, mode: str) -> dict[str, object]:
    """The options of a case: mostly none, as users have it."""
    options: dict[str, object] = {"cache": "disabled"}
    if mode == "bf16":
        options["precision"] = "bf16"
    if g.chance(0.3):
        options["layouts"] = g.pick(["any", "channels_last", "blocked", "plain"])
    if g.chance(0.15):
        options["convolutions"] = g.pick(["winograd_f2", "winograd_f4"])
    if g.chance(0.1):
        options["memory"] = "no_reuse"
    if g.chance(0.15):
        options["order"] = "memory"
    if g.chance(0.1):
        options["tune"] = "off"
    return options
