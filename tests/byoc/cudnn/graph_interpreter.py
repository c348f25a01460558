"""Region programs of cuDNN worked out in float64 by what their operation graphs say: strides, nodes."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np

from tvm_mxplan.byoc.cudnn.graphs import graph_of
from tvm_mxplan.byoc.cudnn.layout_rules import operands
from tvm_mxplan.core.layout.layout import parse_layout
from tvm_mxplan.core.program import program as ir

Array = np.ndarray[Any, Any]


def run_program(program: ir.Program, constants: Sequence[Array], inputs: Sequence[Array]) -> list[Array]:
    """The outputs of a program, by their number; all layouts of inputs and outputs are plain."""
    memory: dict[int, Array] = {}
    for kind, arrays in (("constant", constants), ("input", inputs)):
        for number, array in zip(program.of_kind(kind), arrays, strict=True):  # type: ignore[arg-type]
            memory[number] = np.array(array, "float64").reshape(-1)
    for number, value in enumerate(program.values):
        if value.alias_of < 0 and number not in memory:
            memory[number] = np.full(int(np.prod(value.shape)), np.nan)  # type: ignore[arg-type]

    def flat(number: int) -> Array:
        assert program.values[number].alias_offset == 0
        return memory[program.root(number)]

    def seen(number: int) -> Array:
        value = program.values[number]
        shape: tuple[int, ...] = value.shape  # type: ignore[assignment]
        return _strided(flat(number), shape, parse_layout(value.layout).strides(shape))

    for step in program.steps:
        if isinstance(step.attrs, ir.Reorder):
            seen(step.dst)[...] = seen(step.operand("src")).copy()
        else:
            stored = [flat(value) for _, value in operands(step)]
            run_graph(graph_of(program, step), stored)
    outputs = program.of_kind("output")
    return [memory[number].reshape(program.values[number].shape) for number in outputs]  # type: ignore[arg-type]


def run_graph(graph: dict[str, Any], stored: Sequence[Array]) -> None:
    """Run the nodes of a graph; tensor ``uid`` stands in ``stored[uid - 1]`` unless it is virtual."""
    tensors = {one["uid"]: one for one in graph["tensors"]}
    made: dict[int, Array] = {}

    def read(uid: int) -> Array:
        if uid in made:
            return made[uid]
        return _strided(stored[uid - 1], tuple(tensors[uid]["dim"]), tuple(tensors[uid]["stride"]))

    for node in graph["nodes"]:
        result = _node(node, [read(uid) for uid in node["in"]])
        assert result.shape == tuple(tensors[node["out"]]["dim"])
        made[node["out"]] = result
        if not tensors[node["out"]]["virtual"]:
            one = tensors[node["out"]]
            _strided(stored[node["out"] - 1], tuple(one["dim"]), tuple(one["stride"]))[...] = result


def _strided(flat: Array, shape: tuple[int, ...], strides: tuple[int, ...]) -> Array:
    last = sum((extent - 1) * stride for extent, stride in zip(shape, strides, strict=True))
    assert last < flat.size, "a tensor reaches behind its bytes"
    return np.lib.stride_tricks.as_strided(flat, shape, [8 * stride for stride in strides])


def _node(node: dict[str, Any], inputs: list[Array]) -> Array:
    if node["kind"] == "convolution":
        return _convolution(node, *inputs)
    assert node["kind"] == "pointwise"
    functions = {
        "ADD": np.add,
        "RELU_FWD": lambda x: np.maximum(x, 0),
        "SIGMOID_FWD": lambda x: 1 / (1 + np.exp(-x)),
        "TANH_FWD": np.tanh,
    }
    return functions[node["mode"]](*inputs)


def _convolution(node: dict[str, Any], image: Array, filters: Array) -> Array:
    """Window by window; groups are what the filters' channels say, as cuDNN has it."""
    before, after, stride, dilation = (
        node[name] for name in ("pre_padding", "post_padding", "stride", "dilation")
    )
    groups = image.shape[1] // filters.shape[1]
    padded = np.pad(image, [(0, 0), (0, 0), *zip(before, after, strict=True)])
    windows = filters.shape[2:]
    extents = [
        (padded.shape[2 + at] - dilation[at] * (windows[at] - 1) - 1) // stride[at] + 1
        for at in range(len(windows))
    ]
    parts = []
    for group in range(groups):
        inputs = np.split(padded, groups, 1)[group]
        own = np.split(filters, groups, 0)[group]
        total = np.zeros((image.shape[0], own.shape[0], *extents))
        for at in product(*map(range, windows)):
            box = tuple(
                slice(
                    dilation[axis] * at[axis],
                    dilation[axis] * at[axis] + stride[axis] * (extents[axis] - 1) + 1,
                    stride[axis],
                )
                for axis in range(len(windows))
            )
            total += np.einsum("nihw,oi->nohw", inputs[(..., *box)], own[(..., *at)])
        parts.append(total)
    return np.concatenate(parts, 1)
