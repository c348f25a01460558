"""ONNX models with their weights as parameters.

Initializers that a model learns become inputs of its graph, so that the importer neither folds nor hides
them.  Which they are is told by who reads them (``_ROLES``), through nodes that only move data (``_MOVES``);
``trainable=`` may name other real numbers.  Batch norms
and dropouts that were exported for training, or that inference would leave out, are written so that the
importer keeps them (``nn.batch_norm``, ``nn.dropout``), which ``forward.py`` turns into those of training.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import tvm
from onnx import helper, numpy_helper

from ..errors import InvalidInputError, UnsupportedError
from ..frontend.onnx import import_model, input_names, output_names
from ..frontend.onnx.converters.training import DOMAIN
from ..frontend.onnx.weights import array_of
from ..passes.canonicalize.fold_constants import FoldConstants
from ..passes.canonicalize.name_symbols import NameSymbols
from ..passes.canonicalize.recover_operators import RecoverOperators
from .model import FLOATS, Model, Wanted, chosen, kernels_of, port_of

_EVERY = range(2**31)
_ROLES: dict[str, Sequence[int]] = {
    "Conv": (1, 2),
    "ConvTranspose": (1, 2),
    "Gemm": (0, 1, 2),
    "MatMul": (0, 1),
    "BatchNormalization": (1, 2),
    "InstanceNormalization": (1, 2),
    "LayerNormalization": (1, 2),
    "GroupNormalization": (1, 2),
    "RMSNormalization": (1,),
    "LSTM": (1, 2, 3, 7),
    "GRU": (1, 2, 3),
    "RNN": (1, 2, 3),
    "PRelu": (1,),
    "Gather": (0,),
    "Einsum": _EVERY,
    "Add": _EVERY,
    "Sub": _EVERY,
    "Mul": _EVERY,
    "Div": _EVERY,
    "Pow": _EVERY,
    "Sum": _EVERY,
    "Mean": _EVERY,
    "Max": _EVERY,
    "Min": _EVERY,
    "Where": (1, 2),
}
"""Operands that are weights where they are initializers."""
_ARITHMETIC = ("Add", "Sub", "Mul", "Div", "Pow", "Sum", "Mean", "Max", "Min", "Where")
"""Operators whose single numbers are constants of a formula rather than weights, but for biases."""
_PRODUCTS = ("MatMul", "Gemm", "Conv", "ConvTranspose", "Einsum")
"""Operators to whose results arithmetic adds a bias."""
_STATISTICS = (3, 4)
_CHOICES = ("Pow", "Sum", "Mean", "Max", "Min", "Where")
_VIEWS = ("Identity", "Transpose", "Reshape", "Flatten", "Unsqueeze", "Squeeze")
_MOVES: dict[str, Sequence[int]] = {
    **dict.fromkeys((*_VIEWS, "Cast", "CastLike", "Dropout"), (0,)),
    **dict.fromkeys(("Expand", "Tile", "Pad", "Slice", "Split", "Trilu", "Compress"), (0,)),
    **dict.fromkeys(("DepthToSpace", "SpaceToDepth", "ReverseSequence"), (0,)),
    **dict.fromkeys(("Gather", "GatherElements", "GatherND"), (0,)),
    **dict.fromkeys(("Scatter", "ScatterElements", "ScatterND"), (0, 2)),
    "Concat": _EVERY,
}
"""Operators that only move numbers, and their operands that hold these."""


def model_of_onnx(proto: onnx.ModelProto, wanted: Wanted, source: str, folder: Path | None) -> Model:
    """The model; see :func:`tvm_mxplan.training.model.model_of`."""
    shapes = wanted.inputs or {}
    if not isinstance(shapes, Mapping):
        raise InvalidInputError("inputs: expected shapes by the names of the ONNX model's inputs")
    if wanted.params is not None:
        raise InvalidInputError(
            "params: an ONNX model holds its weights; give others to load_state_dict() of the step"
        )
    plain = onnx.ModelProto()
    plain.CopyFrom(proto)
    stated = _constants_as_initializers(plain.graph)
    arrays = {one.name: array_of(one, folder) for one in plain.graph.initializer}
    floats = _weights_of(plain.graph, arrays, stated)
    asked = [name for name in floats.others if name in (wanted.trainable or ())]
    learned = [*floats.learned, *asked]
    saved = onnx.ModelProto()
    saved.CopyFrom(plain)
    _for_training(plain, source)
    names = input_names(plain)
    weights = {name: arrays[name] for name in [*learned, *floats.statistics]}
    _as_inputs(plain.graph, names, weights)
    mod = import_model(plain, dict(shapes), source, folder)
    # Operators that an importer spread over kernels have gradients as operators alone.
    mod = tvm.transform.Sequential([NameSymbols(), FoldConstants(), RecoverOperators()])(mod)
    function = mod["main"]
    params = dict(zip([*names, *weights], function.params, strict=True))
    return Model(
        function,
        tuple(port_of(name, params[name]) for name in names),
        weights,
        chosen(learned, weights, wanted.trainable),
        tuple(output_names(plain)),
        keeps_momentum=True,
        kernels=kernels_of(mod),
        onnx=(saved, folder),
        constants=tuple(name for name in floats.others if name not in asked),
    )


def with_weights(saved: tuple[onnx.ModelProto, Path | None], weights: Mapping[str, np.ndarray]) -> Any:
    """A model of :attr:`Model.onnx` with other weights, all of them inside."""
    proto, folder = saved
    made = onnx.ModelProto()
    made.CopyFrom(proto)
    for one in made.graph.initializer:
        array = weights.get(one.name)
        array = array_of(one, folder) if array is None else array
        one.CopyFrom(numpy_helper.from_array(np.ascontiguousarray(array), one.name))
    return made


def _constants_as_initializers(graph: onnx.GraphProto) -> set[str]:
    """Makes numbers that nodes state, which may be weights, initializers; the names of the nodes' results."""
    given = {one.name for one in graph.initializer}
    known = {one.name: one for one in graph.initializer}
    kept = []
    for node in graph.node:
        array = _stated(node, known)
        if array is None:
            kept.append(node)
        else:
            graph.initializer.append(numpy_helper.from_array(array, node.output[0]))
            known[node.output[0]] = graph.initializer[-1]
    del graph.node[:]
    graph.node.extend(kept)
    return set(known) - given


def _stated(node: onnx.NodeProto, known: Mapping[str, onnx.TensorProto]) -> np.ndarray | None:
    values = {one.name: helper.get_attribute_value(one) for one in node.attribute}
    if node.op_type == "Constant" and "value" in values:
        return np.array(numpy_helper.to_array(values["value"]))
    if node.op_type == "ConstantOfShape" and node.input[0] in known:
        shape = numpy_helper.to_array(known[node.input[0]])
        fill = numpy_helper.to_array(values["value"]) if "value" in values else np.zeros(1, "float32")
        return np.full(tuple(int(n) for n in shape), fill.reshape(-1)[0], fill.dtype)
    return None


@dataclass(frozen=True)
class _Floats:
    """Names of initializers of real numbers, in the graph's order.

    Attributes
    ----------
    learned : those that a model learns.
    statistics : running means and variances of batch norms.
    others : constants of formulas, and what no operator of a weight reads.
    """

    learned: list[str]
    statistics: list[str]
    others: list[str]


def _weights_of(graph: onnx.GraphProto, arrays: Mapping[str, np.ndarray], stated: set[str]) -> _Floats:
    """Initializers by what reads them.

    Parameters
    ----------
    stated : those that nodes stated, as zeros that fill a tensor up: no weights where numbers are chosen.
    """
    floats = [name for name, array in arrays.items() if str(array.dtype) in FLOATS]
    roots = {name: {name} for name in floats}  # what a value is moved from
    products: set[str] = set()  # results of products with a weight
    learned: set[str] = set()
    statistics: set[str] = set()
    for node in graph.node:
        kind = node.op_type
        for at, name in enumerate(node.input):
            found = roots.get(name, set()) - (stated if kind in _CHOICES else set())
            if kind == "BatchNormalization" and at in _STATISTICS:
                statistics |= found
            elif at in _ROLES.get(kind, ()):
                is_bias = kind == "Add" and not products.isdisjoint(node.input)
                learned |= {
                    root
                    for root in found
                    if kind not in _ARITHMETIC
                    or arrays[root].size > 1
                    or (is_bias and arrays[root].ndim and arrays[root].size)
                }
        if kind in _PRODUCTS and any(roots.get(name) for name in node.input):
            products.update(node.output)
        moved = [node.input[at] for at in range(len(node.input)) if at in _MOVES.get(kind, ())]
        if any(roots.get(name) for name in moved):
            every = set().union(*(roots.get(name, set()) for name in moved))
            every = every if kind in _VIEWS else every - stated
            roots.update(dict.fromkeys(node.output, every))
    return _Floats(
        [name for name in floats if name in learned - statistics],
        [name for name in floats if name in statistics],
        [name for name in floats if name not in learned | statistics],
    )


def _for_training(proto: onnx.ModelProto, source: str) -> None:
    """Batch norms and dropouts as nodes that the importer keeps."""
    constants = {one.name: one for one in proto.graph.initializer}
    read = {name for node in proto.graph.node for name in node.input}
    read |= {value.name for value in proto.graph.output}
    drops = False
    for node in proto.graph.node:
        if node.op_type == "BatchNormalization":
            _check_unread(node, read, source)
            del node.output[1:]
            for one in [one for one in node.attribute if one.name == "training_mode"]:
                node.attribute.remove(one)
        elif node.op_type == "Dropout" and node.domain in ("", "ai.onnx"):
            _check_unread(node, read, source)
            rate = _rate(node, constants, source)
            made = helper.make_node(
                "Dropout", node.input[:1], node.output[:1], name=node.name, domain=DOMAIN, ratio=rate
            )
            node.CopyFrom(made)
            drops = True
    if drops:
        proto.opset_import.append(helper.make_opsetid(DOMAIN, 1))


def _check_unread(node: onnx.NodeProto, read: set[str], source: str) -> None:
    for name in node.output[1:]:
        if name in read:
            raise UnsupportedError(
                f"{source}: node {node.name or node.output[0]!r} ({node.op_type}): its result {name!r} is "
                "read, which a step of training keeps to itself; export the model for inference"
            )


def _rate(node: onnx.NodeProto, constants: Mapping[str, onnx.TensorProto], source: str) -> float:
    """The share of elements that a node drops in training."""
    for one in node.attribute:
        if one.name == "ratio":
            return float(one.f)
    if len(node.input) < 2 or not node.input[1]:
        return 0.5
    if node.input[1] not in constants:
        raise UnsupportedError(
            f"{source}: node {node.name or node.output[0]!r} (Dropout): its ratio is computed; "
            "expected a constant"
        )
    return float(numpy_helper.to_array(constants[node.input[1]]).reshape(-1)[0])


def _as_inputs(graph: onnx.GraphProto, inputs: list[str], weights: Mapping[str, np.ndarray]) -> None:
    """Make inputs of initializers, behind the model's own; those that stay initializers are no inputs."""
    kept = [one for one in graph.initializer if one.name not in weights]
    del graph.initializer[:]
    graph.initializer.extend(kept)
    data = [value for value in graph.input if value.name in inputs]
    del graph.input[:]
    graph.input.extend([*data, *_described(weights)])


def _described(weights: Mapping[str, np.ndarray]) -> Iterator[onnx.ValueInfoProto]:
    for name, array in weights.items():
        kind = helper.np_dtype_to_tensor_dtype(array.dtype)
        yield helper.make_tensor_value_info(name, kind, list(array.shape))
