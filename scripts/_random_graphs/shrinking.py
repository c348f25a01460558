"""Smaller models that go wrong in the same way: results and nodes are left out while one does."""

from __future__ import annotations

import copy
import json
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
from onnx import helper

from .drawing import Case
from .graph import Array
from .trial import write

Answer = Mapping[str, Any]
Tell = Callable[[str], Answer]


def shrink(case: Case, mode: str, answer: Answer, tell: Tell, seconds: float = 120.0) -> tuple[Case, Answer]:
    """The smallest case found within ``seconds`` that ends like ``answer``; ``tell`` runs one."""
    deadline = time.monotonic() + seconds
    found = True
    while found and time.monotonic() < deadline:
        found = False
        for smaller in filter(None, _smaller(case)):
            again = _tried(smaller, mode, tell)
            if _is_alike(again, answer):
                case, answer, found = smaller, again, True
                break
            if time.monotonic() > deadline:
                break
    return case, answer


def _tried(case: Case, mode: str, tell: Tell) -> Answer:
    with tempfile.TemporaryDirectory(prefix="random_graph_") as folder:
        write(case, Path(folder))
        return tell(json.dumps({"mode": mode, "folder": folder}))


def _is_alike(one: Answer, other: Answer) -> bool:
    """The same status and, of errors, the same first words."""
    if one["status"] != other["status"]:
        return False
    return one["status"] != "error" or one["reason"][:24] == other["reason"][:24]


def _smaller(case: Case) -> Iterator[Case | None]:
    """Smaller cases, the smallest steps last."""
    nodes = case.model.graph.node
    for name in [name for name in case.options if name not in ("cache", "precision")]:
        yield replace(case, options={key: value for key, value in case.options.items() if key != name})
    if len(case.feeds) > 1:
        for feed in case.feeds:
            yield replace(case, feeds=[feed])
    results = [value.name for value in case.model.graph.output]
    if len(results) > 1:
        for name in results:
            yield _cut(case, range(len(nodes)), [name])
    # All behind one node, then a run of nodes, whose results become inputs of the model.
    for share in (2, 4, 8):
        size = len(nodes) // share
        for begin in range(0, len(nodes), size) if size > 1 else ():
            yield from _without(case, range(begin, min(begin + size, len(nodes))))
    for at in range(len(nodes)):
        yield from _without(case, [at])


def reads(node: onnx.NodeProto) -> set[str]:
    """All that a node reads, its subgraphs included."""
    inner = [one for attribute in node.attribute if attribute.HasField("g") for one in attribute.g.node]
    made = {name for one in inner for name in one.output}
    return set(node.input) | {name for one in inner for name in reads(one)} - made


def _without(case: Case, gone: Sequence[int]) -> Iterator[Case | None]:
    """Without these nodes: what others read of them is fed; a result gives way to what they read."""
    nodes = case.model.graph.node
    kept = [at for at in range(len(nodes)) if at not in set(gone)]
    if not kept:
        return
    made = {name for at in kept for name in nodes[at].output}
    read = {name for at in kept for name in reads(nodes[at])}
    results = [value.name for value in case.model.graph.output if value.name in made]
    lost = {name for at in gone for name in reads(nodes[at]) if name in made and name not in read}
    yield _cut(case, kept, [*results, *sorted(lost - set(results))])


def _cut(case: Case, kept: Sequence[int], results: Sequence[str]) -> Case | None:
    """A case of some nodes with these results, as far as they lead there."""
    graph = case.model.graph
    needed, chosen = set(results), []
    for at in sorted(kept, reverse=True):
        if needed & set(graph.node[at].output):
            chosen.append(graph.node[at])
            needed |= reads(graph.node[at])
    chosen.reverse()
    if not chosen:
        return None
    values = _values(case)
    made = {name for node in chosen for name in node.output}
    constants = [tensor for tensor in graph.initializer if tensor.name in needed]
    known = {tensor.name for tensor in constants}
    given = [name for name in dict.fromkeys(n for node in chosen for n in sorted(reads(node))) if name]
    inputs = [name for name in given if name not in made | known]
    stated = {value.name: value for value in (*graph.input, *graph.output)}
    named = any(dim.dim_param for value in graph.input for dim in value.type.tensor_type.shape.dim)

    def declared(name: str, result: bool) -> onnx.ValueInfoProto:
        if name in stated:
            return stated[name]
        array = values[0][name]
        shape: list[Any] = list(array.shape)
        varies = len({one[name].shape[:1] for one in values}) > 1
        if named and shape and varies:
            shape[0] = None if result else "N"
        return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), shape)

    smaller = helper.make_graph(
        [copy.deepcopy(node) for node in chosen],
        "random",
        [declared(name, False) for name in inputs],
        [declared(name, True) for name in results if name in made],
        constants,
    )
    model = helper.make_model(smaller, opset_imports=case.model.opset_import)
    model.ir_version = case.model.ir_version
    feeds = [{name: one[name] for name in inputs} for one in values]
    return replace(case, model=model, feeds=feeds)


def _values(case: Case) -> list[dict[str, Array]]:
    """Every value of the model for each set of inputs."""
    whole = onnx.ModelProto()
    whole.CopyFrom(case.model)
    names = [name for node in whole.graph.node for name in node.output if name]
    del whole.graph.output[:]
    whole.graph.output.extend(onnx.ValueInfoProto(name=name) for name in names)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    inferred = onnx.shape_inference.infer_shapes(whole)
    session = onnxruntime.InferenceSession(inferred.SerializeToString(), options)
    found = []
    for feed in case.feeds:
        made = zip(names, session.run(None, dict(feed)), strict=True)
        found.append({**feed, **{name: np.asarray(array) for name, array in made}})
    return found
