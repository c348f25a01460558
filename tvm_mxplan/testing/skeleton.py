"""A network without its weights: what the zoo's architectures are before `randomize` fills them.

The light models that ship with `onnx` and the models built here both become a `Skeleton`; `assemble` makes
the ONNX model from it and the parameter values. A skeleton holds for every batch: no constant names it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import onnx

IR_VERSION = 8
"""From 4 on an initializer need not be a graph input as well; all engines we compare with read 8."""

Batch = int | str
"""A number, or the name of a symbolic dimension."""


@dataclass(frozen=True)
class Skeleton:
    """Nodes in execution order, one image input, one output, and the shapes of the float parameters."""

    name: str
    nodes: tuple[onnx.NodeProto, ...]
    input: tuple[str, tuple[int, ...]]
    """Name and shape without the batch."""
    output: tuple[str, tuple[int, ...]]
    parameters: Mapping[str, tuple[int, ...]]
    constants: Mapping[str, np.ndarray]
    opset: int


def assemble(
    skeleton: Skeleton, value_of: Callable[[str, tuple[int, ...]], np.ndarray], batch: Batch
) -> onnx.ModelProto:
    """The ONNX model of ``skeleton`` at ``batch``; ``value_of(name, shape)`` gives each parameter in turn."""
    from onnx import TensorProto, helper, numpy_helper

    def value_info(named: tuple[str, tuple[int, ...]]) -> onnx.ValueInfoProto:
        return helper.make_tensor_value_info(named[0], TensorProto.FLOAT, [batch, *named[1]])

    graph = helper.make_graph(
        skeleton.nodes, skeleton.name, [value_info(skeleton.input)], [value_info(skeleton.output)]
    )
    for name, constant in skeleton.constants.items():
        graph.initializer.append(numpy_helper.from_array(constant, name))
    for name, shape in skeleton.parameters.items():  # one at a time: VGG-19 has half a gigabyte of them
        values = value_of(name, shape).astype(np.float32, copy=False)
        graph.initializer.append(numpy_helper.from_array(values, name))
    return helper.make_model(
        graph,
        producer_name="tvm_mxplan.testing.zoo",
        ir_version=IR_VERSION,
        opset_imports=[helper.make_opsetid("", skeleton.opset)],
    )


def read_light(name: str) -> Skeleton:
    """A light model of the `onnx` package: a published network whose weights are constant fills."""
    import onnx
    from onnx import numpy_helper

    model = onnx.load(_light_directory() / f"light_{name}.onnx")
    graph = model.graph
    initializers = {tensor.name: tensor for tensor in graph.initializer}
    parameters = {
        tensor.name: tuple(tensor.dims)
        for tensor in graph.initializer
        if tensor.data_type == onnx.TensorProto.FLOAT
    }
    nodes = []
    for node in graph.node:
        if node.op_type == "ConstantOfShape":
            parameters[node.output[0]] = tuple(numpy_helper.to_array(initializers[node.input[0]]).tolist())
        else:
            nodes.append(node)
    used = {name for node in nodes for name in node.input}
    parameters = {name: shape for name, shape in parameters.items() if name in used}

    constants = {
        name: numpy_helper.to_array(tensor)
        for name, tensor in initializers.items()
        if name in used and name not in parameters
    }
    for node in nodes:
        if node.op_type == "Reshape" and node.input[0] not in parameters:
            shape = constants[node.input[1]]
            constants[node.input[1]] = np.array([0, *shape[1:]], shape.dtype)  # 0: as in the input

    (data,) = [value for value in graph.input if value.name not in initializers]
    (result,) = graph.output
    for node in nodes:
        if node.op_type == "Dropout":
            del node.output[1:]  # the mask, which nobody reads
    return Skeleton(
        name=name,
        nodes=tuple(nodes),
        input=(data.name, _dims(data)[1:]),
        output=(result.name, _dims(result)[1:]),
        parameters=parameters,
        constants=constants,
        opset=model.opset_import[0].version,
    )


def _light_directory() -> Path:
    from onnx.backend import test

    return Path(test.__file__).parent / "data" / "light"


def _dims(value: onnx.ValueInfoProto) -> tuple[int, ...]:
    return tuple(dim.dim_value for dim in value.type.tensor_type.shape.dim)
