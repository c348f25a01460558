"""The accuracy that each layer of a quantised model costs, held against the model that it was made of.

Both models name the results of their nodes alike.  Every result of the first is worked out in float32; then
each node of the second gets these as its operands, rounded as it would round them: what its result is off by
is its own doing.  Without its conversions a node is as it was, which tells what leaving it in float32 gains.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import onnx

from ..errors import InvalidInputError
from ..testing.reference import relative_l2
from .calibration import Samples
from .making import Made

_DROPPED = ("Relu", "Clip")
"""Kinds that the quantiser drops where a conversion clips as well."""
_EXACT = 1e-6
"""A relative error of sums in another order."""


@dataclass(frozen=True)
class LayerError:
    """The errors of one node, relative in the L2 norm.

    Attributes
    ----------
    alone : of its result where its operands are right.
    together : of its result in the quantised model.
    without : of the model's results if this node alone is left in float32; None where it was not tried.
    """

    node: str
    kind: str
    alone: float
    together: float
    without: float | None = None


@dataclass(frozen=True)
class Errors:
    """The error of a model's results, and of its layers, those that cost most by themselves first."""

    whole: float
    layers: tuple[LayerError, ...]


def layer_errors(made: Made, samples: Samples, tried: int = 10) -> Errors:
    """Compare the two models on ``samples``.

    Parameters
    ----------
    tried : layers, of those with the largest errors of their own, that are left in float32 one at a time.
    """
    if not samples:
        raise InvalidInputError("data: no samples to compare layers on")
    results = _results(made.real)
    kept = [name for name in results if name in _results(made.compared)]
    outputs = [output.name for output in made.real.graph.output]
    apart, fed = _apart(made, kept)
    seen = _as_seen(made.compared, kept)
    right = _Session(made.real, [*results, *outputs])
    together = _Session(made.compared, [*seen.values(), *outputs])
    alone = _Session(apart, list(seen.values()))
    off: dict[str, tuple[float, float]] = {}
    expected, whole = [], 0.0
    for sample in samples:
        floats, got = right.run(sample), together.run(sample)
        given = {f"{name}{_GIVEN}": floats[name] for name in fed}
        by_itself = alone.run({**sample, **given})
        for name in kept:
            pair = _error(by_itself[seen[name]], floats[name]), _error(got[seen[name]], floats[name])
            before = off.get(name, (0.0, 0.0))
            off[name] = max(before[0], pair[0]), max(before[1], pair[1])
        expected.append({name: floats[name] for name in outputs})
        whole = max(whole, *(_error(got[name], floats[name]) for name in outputs))
    found = [LayerError(node.name, node.op_type, *off[name]) for name, node in _makers(made, kept).items()]
    found = sorted((one for one in found if one.alone > _EXACT), key=lambda one: -one.alone)
    for at, layer in enumerate(found[:tried]):
        session = _Session(_without(made, layer.node), outputs)
        errors = [
            _error(got, right[name])
            for sample, right in zip(samples, expected, strict=True)
            for name, got in session.run(sample).items()
        ]
        found[at] = replace(layer, without=max(errors))
    return Errors(whole, tuple(found))


_GIVEN = ".given"


def _results(model: onnx.ModelProto) -> list[str]:
    """Names of the results of nodes that are computed from what the model gets, in their order."""
    return [name for node in model.graph.node if node.op_type != "Constant" for name in node.output if name]


def _as_seen(model: onnx.ModelProto, names: Sequence[str]) -> dict[str, str]:
    """For each result what stands for it behind its conversion into integers and back, if it has one.

    onnxruntime's quantiser drops a Relu in front of a conversion whose integers begin at 0.
    """
    integers = {
        node.input[0]: node.output[0] for node in model.graph.node if node.op_type == "QuantizeLinear"
    }
    back = {node.input[0]: node.output[0] for node in model.graph.node if node.op_type == "DequantizeLinear"}
    return {name: back.get(integers.get(name, ""), name) for name in names}


def _makers(made: Made, names: Sequence[str]) -> dict[str, onnx.NodeProto]:
    """The nodes of the real model that results come from, by their names in the quantised one."""
    by_name = {node.name: node for node in made.real.graph.node}
    makers = {name: node for node in made.real.graph.node for name in node.output}
    found = {name: node.name for node in made.compared.graph.node for name in node.output}
    return {name: by_name.get(found.get(name, ""), makers[name]) for name in names}


def _error(got: np.ndarray, right: np.ndarray) -> float:
    return relative_l2(got, right) if got.dtype.kind == "f" else 0.0


class _Session:
    """Some tensors of a model as onnxruntime computes them, without fusions."""

    def __init__(self, model: onnx.ModelProto, wanted: Sequence[str]) -> None:
        import onnxruntime

        self._wanted = list(dict.fromkeys(wanted))
        shown = onnx.ModelProto()
        shown.CopyFrom(model)
        del shown.graph.output[:]
        shown.graph.output.extend(onnx.ValueInfoProto(name=name) for name in self._wanted)
        options = onnxruntime.SessionOptions()
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        self._session = onnxruntime.InferenceSession(
            shown.SerializeToString(), options, providers=["CPUExecutionProvider"]
        )
        self._inputs = {one.name for one in self._session.get_inputs()}

    def run(self, feeds: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        given = {name: array for name, array in feeds.items() if name in self._inputs}
        return dict(zip(self._wanted, self._session.run(self._wanted, given), strict=True))


def _apart(made: Made, kept: Sequence[str]) -> tuple[onnx.ModelProto, list[str]]:
    """The quantised model with all that nodes read given from outside; the names of what is given."""
    apart = onnx.ModelProto()
    apart.CopyFrom(made.compared)
    types = {one.name: one for one in onnx.shape_inference.infer_shapes(made.real).graph.value_info}
    given = {name for name in kept if name in types and _is_float(types[name])}
    fed = []
    for node in apart.graph.node:
        for at, name in enumerate(node.input):
            if name in given:
                node.input[at] = f"{name}{_GIVEN}"
                fed.append(name)
    for name in dict.fromkeys(fed):
        port = apart.graph.input.add()
        port.CopyFrom(types[name])
        port.name = f"{name}{_GIVEN}"
    return apart, list(dict.fromkeys(fed))


def _is_float(value: onnx.ValueInfoProto) -> bool:
    return value.type.tensor_type.elem_type == onnx.TensorProto.FLOAT


def _without(made: Made, name: str) -> onnx.ModelProto:
    """The quantised model with one node reading the real numbers that it read before."""
    changed = onnx.ModelProto()
    changed.CopyFrom(made.compared)
    (before,) = [node for node in made.real.graph.node if node.name == name]
    # Conversions may have the names of constants for their results.
    constants = [tensor for tensor in made.real.graph.initializer if tensor.name in before.input]
    names = {tensor.name: f"{tensor.name}{_GIVEN}" for tensor in constants}
    for node in list(changed.graph.node):
        if node.output[:1] == before.output[:1] and node.op_type == "Mul":
            node.CopyFrom(before)  # the last of a dynamic product's parts
            inputs = list(before.input)
        elif node.name == name:
            inputs = [_as_before(made, changed, name) for name in before.input]
        else:
            continue
        del node.input[:]
        node.input.extend(names.get(name, name) for name in inputs)
    for tensor in constants:
        changed.graph.initializer.add().CopyFrom(tensor)
        changed.graph.initializer[-1].name = names[tensor.name]
    return changed


def _as_before(made: Made, changed: onnx.ModelProto, name: str) -> str:
    """The name of a tensor's real numbers in ``changed``; a dropped Relu or Clip is put back for them."""
    maker = next((node for node in made.real.graph.node if name in node.output), None)
    at = next((at for at, node in enumerate(changed.graph.node) if name in node.output), None)
    if (
        maker is None
        or at is None
        or maker.name == changed.graph.node[at].name
        or maker.op_type not in _DROPPED
    ):
        return name
    put_back = onnx.NodeProto()
    put_back.CopyFrom(maker)
    put_back.name, put_back.input[0], put_back.output[0] = f"{maker.name}{_GIVEN}", name, f"{name}{_GIVEN}"
    changed.graph.node.insert(at + 1, put_back)
    return str(put_back.output[0])
