"""FusedConv and FusedGemm: a product with the activation that onnxruntime's optimiser took behind it.

FusedConv(x, w, b, z), activation Relu      Relu(Conv(x, w, b) + z)
FusedGemm(a, b, c), activation LeakyRelu    LeakyRelu(Gemm(a, b, c))
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx

from .....errors import UnsupportedError
from ...node import Emitter, Node
from ...values import Scope, Value, dtype_of
from ..table import converts

_OPSETS = {"": 13}
"""The version of ONNX whose operators the nodes are made of."""
_PARAMETERS: Mapping[str, Sequence[str]] = {
    "Relu": (),
    "Tanh": (),
    "Sigmoid": (),
    "LeakyRelu": ("alpha",),
    "HardSigmoid": ("alpha", "beta"),
    "Clip": ("min", "max"),
}
"""Activations, and what their parameters are called, in their order."""


@converts("FusedConv", domain="com.microsoft")
def _fused_convolution(emitter: Emitter, node: Node) -> Value:
    return _activated(emitter, node, "Conv", list(node.attribute("activation_params", [])))


@converts("FusedGemm", domain="com.microsoft")
def _fused_product(emitter: Emitter, node: Node) -> Value:
    stated = [node.attribute(f"activation_{name}") for name in ("alpha", "beta", "gamma")]
    return _activated(emitter, node, "Gemm", [number for number in stated if number is not None])


def _activated(emitter: Emitter, node: Node, operator: str, numbers: Sequence[float]) -> Value:
    """The operator of ONNX, the fourth operand added to its result, and the activation."""
    activation = node.text("activation")
    if activation and activation not in _PARAMETERS:
        raise UnsupportedError(
            f"{emitter.importer.called(node)}: activation {activation}; expected one of "
            f"{', '.join(_PARAMETERS)}; give the model as it was before onnxruntime optimised it"
        )
    names = ["a", "b", "c", "z"]
    scope = Scope({"": None, **dict(zip(names, node.inputs, strict=False))})
    given = [name if node.input(at) is not None else "" for at, name in enumerate(names)]
    made = onnx.helper.make_node(operator, given[:3], ["product"])
    made.attribute.extend(one for one in node.proto.attribute if not one.name.startswith("activation"))
    nodes, result = [made], "product"
    if given[3]:
        nodes.append(onnx.helper.make_node("Add", [result, "z"], ["summed"]))
        result = "summed"
    if activation:
        parameters: dict[str, Any] = dict(zip(_PARAMETERS[activation], numbers, strict=False))
        inputs = [result]
        if activation == "Clip":
            dtype = dtype_of(node.input(0))
            scope |= {name: np.asarray(number, dtype) for name, number in parameters.items()}
            inputs, parameters = [result, *parameters], {}
        nodes.append(onnx.helper.make_node(activation, inputs, ["y"], **parameters))
        result = "y"
    emitter.importer.nodes(nodes, scope, _OPSETS, [result])
    return scope[result]
