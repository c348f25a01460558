"""Region programs of cuDNN worked out in float64 by what their operation graphs say: strides, nodes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from graph_nodes import run_node

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
        elif isinstance(step.attrs, ir.Concat):
            pieces = [seen(one.value) for one in step.operands if one.role == "src"]
            seen(step.dst)[...] = np.concatenate(pieces, step.attrs.axis)
        elif isinstance(step.attrs, ir.Slice):
            part = seen(step.dst)
            box = zip(step.attrs.begin, part.shape, strict=True)
            part[...] = seen(step.operand("src"))[tuple(slice(at, at + extent) for at, extent in box)]
        elif isinstance(step.attrs, ir.Softmax):
            seen(step.dst)[...] = softmax(seen(step.operand("src")), step.attrs)
        else:
            stored = [flat(value) for _, value in operands(step)]
            run_graph(graph_of(program, step), stored)
    outputs = program.of_kind("output")
    return [memory[number].reshape(program.values[number].shape) for number in outputs]  # type: ignore[arg-type]


def run_graph(graph: dict[str, Any], stored: Sequence[Array]) -> None:
    """Run the nodes of a graph; tensor ``uid`` stands in ``stored[uid - 1]`` unless it is virtual."""
    tensors = {one["uid"]: one for one in graph["tensors"]}
    made = {uid: np.float64(one["number"]) for uid, one in tensors.items() if "number" in one}

    def read(uid: int) -> Array:
        if uid in made:
            return made[uid]
        return _strided(stored[uid - 1], tuple(tensors[uid]["dim"]), tuple(tensors[uid]["stride"]))

    for node in graph["nodes"]:
        out = node["out"] if isinstance(node["out"], list) else [node["out"]]
        found = run_node(node, [read(uid) for uid in node["in"]], tuple(tensors[out[0]]["dim"]))
        for uid, result in zip(out, found if isinstance(found, tuple) else (found,), strict=True):
            one = tensors[uid]
            assert result.shape == tuple(one["dim"])
            made[uid] = result
            if not one["virtual"]:
                _strided(stored[uid - 1], tuple(one["dim"]), tuple(one["stride"]))[...] = result


def _strided(flat: Array, shape: tuple[int, ...], strides: tuple[int, ...]) -> Array:
    last = sum((extent - 1) * stride for extent, stride in zip(shape, strides, strict=True))
    assert last < flat.size, "a tensor reaches behind its bytes"
    return np.lib.stride_tricks.as_strided(flat, shape, [8 * stride for stride in strides])


def softmax(x: Array, attrs: ir.Softmax) -> Array:
    """A step that is a function of cuDNN's, no graph."""
    shifted = x - x.max(attrs.axis, keepdims=True)
    logarithm = shifted - np.log(np.exp(shifted).sum(attrs.axis, keepdims=True))
    return logarithm if attrs.algorithm == "log_softmax" else np.exp(logarithm)
