"""Shapes that an ONNX model states or implies: extents below 1, windows that do not fit, sections too many.

``onnx.shape_inference`` follows the shapes, in a copy of the model without its large weights.  What it does
not look at is checked here: channels and groups of convolutions, and extents that a window leaves nothing of.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from ....errors import InvalidInputError
from ...stated_inputs import Shape
from ..names import describe, first_line, shown, standard
from .check_tensors import LARGEST

if TYPE_CHECKING:
    import onnx

Extents = tuple[int | None, ...]
"""None for an extent that is not known."""
_CONVOLUTIONS = ("Conv", "ConvTranspose")
_WINDOWS = (*_CONVOLUTIONS, "MaxPool", "AveragePool", "LpPool")
_LEAST = {"strides": 1, "dilations": 1, "kernel_shape": 1, "group": 1, "pads": 0, "output_padding": 0}
_LARGEST_NUMBER = 2**31 - 1
_KEPT = 1024
"""Elements of weights that are kept for the inference: bounds and factors have fewer."""
_SHAPED_AS_FIRST = ("GroupNormalization", "MeanVarianceNormalization")
"""Operators whose result onnx infers no type of, and which is like the first operand."""
_INSIDE = "Inference error(s)"
_UNTYPED = "expected to have type but instead is null"
"""Of a node that reads what an operator makes that onnx infers nothing of: no contradiction."""
_FAULT = re.compile(r"\(op_type:\w+, node name: (\d+)\): (?:\[\w+\] )?(.*)")


def check_shapes(model: onnx.ModelProto, source: str, shapes: Mapping[str, Shape]) -> None:
    """Say which input has no extent, or which node cannot have the shapes that it gets."""
    graph = model.graph
    parameters = {tensor.name for tensor in graph.initializer}
    for value in graph.input:
        if value.name not in parameters and value.name not in shapes:
            _check_input(value, source)
    for at, node in enumerate(graph.node):
        if node.op_type in _WINDOWS:
            _check_numbers(node, f"{source}: {describe(node, at)}")
    known = _inferred(model, source, shapes)
    for at, node in enumerate(graph.node):
        what = f"{source}: {describe(node, at)}"
        if node.op_type in _CONVOLUTIONS:
            _check_convolution(node, known, what)
        for name in node.output:
            _check_result(node, known.get(name, ()), known, what, name)


def _check_input(value: onnx.ValueInfoProto, source: str) -> None:
    dims = value.type.tensor_type.shape.dim
    for axis, dim in enumerate(dims):
        if dim.HasField("dim_value") and dim.dim_value < -1:  # -1 is an open one
            text = [one.dim_value if one.HasField("dim_value") else one.dim_param or "?" for one in dims]
            raise InvalidInputError(
                f"{source}: input {shown(value.name)}: dimension {axis} is {dim.dim_value} in its shape "
                f"[{', '.join(map(str, text))}]; expected 0 or more, or -1 for an open one; "
                "state its shape when compiling"
            )
    extents = [dim.dim_value for dim in dims if dim.HasField("dim_value") and dim.dim_value >= 0]
    if 8 * math.prod(extents) > LARGEST:
        raise InvalidInputError(f"{source}: input {shown(value.name)}: its shape takes more than 2^63 bytes")


def _check_numbers(node: onnx.NodeProto, what: str) -> None:
    """Strides, dilations, kernels and padding by themselves."""
    for attribute in node.attribute:
        least = {
            "strides": 1,
            "dilations": 1,
            "kernel_shape": 1,
            "group": 1,
            "pads": 0,
            "output_padding": 0,
        }.get(attribute.name)
        if least is None:
            continue
        numbers = [attribute.i] if attribute.name == "group" else list(attribute.ints)
        if any(not least <= number <= _LARGEST_NUMBER for number in numbers):
            raise InvalidInputError(
                f"{what}: {attribute.name} = {numbers[0] if attribute.name == 'group' else numbers}; "
                f"expected numbers from {least} to 2^31 - 1"
            )


def _check_convolution(node: onnx.NodeProto, known: Mapping[str, Extents], what: str) -> None:
    src, weights = (known.get(name) for name in node.input[:2])
    if src is None or weights is None:
        return
    if len(weights) != len(src) or len(src) < 3:
        raise InvalidInputError(
            f"{what}: weights {_text(weights)} for an image {_text(src)}; expected one rank, 3 or more"
        )
    groups = next((attribute.i for attribute in node.attribute if attribute.name == "group"), 1)
    transposed = node.op_type == "ConvTranspose"
    outer, inner = (weights[1], weights[0]) if transposed else (weights[0], weights[1])
    channels = src[1]
    expected = inner if transposed or inner is None else inner * groups
    if None not in (channels, expected) and channels != expected:
        raise InvalidInputError(
            f"{what}: expected {expected} input channels for weights {_text(weights)} in {groups} group(s), "
            f"got {channels}"
        )
    split = inner if transposed else outer
    if split is not None and split % groups:
        raise InvalidInputError(
            f"{what}: weights {_text(weights)} cannot be split into {groups} groups; mend group"
        )
    bias = known.get(node.input[2]) if len(node.input) > 2 else None
    made = outer if not transposed or outer is None else outer * groups
    if bias is not None and made is not None and bias != (made,) and None not in bias:
        raise InvalidInputError(f"{what}: expected a bias of shape [{made}], got {_text(bias)}")


def _check_result(
    node: onnx.NodeProto, shape: Extents, known: Mapping[str, Extents], what: str, name: str
) -> None:
    extents = [extent for extent in shape if extent is not None]
    least = 1 if node.op_type in _WINDOWS else 0
    if any(extent < least for extent in extents):
        sources = " and ".join(_text(known[one]) for one in node.input[:2] if one in known)
        raise InvalidInputError(
            f"{what}: gets {sources} and would make {shown(name)} of shape {_text(shape)}; "
            f"expected extents of {least} or more: a larger input, or smaller kernels, dilations or sections"
        )
    if 8 * math.prod(extents) > LARGEST:
        raise InvalidInputError(
            f"{what}: would make {shown(name)} of shape {_text(shape)}, which takes more than 2^63 bytes"
        )


def _inferred(model: onnx.ModelProto, source: str, shapes: Mapping[str, Shape]) -> dict[str, Extents]:
    """All shapes that are known; InvalidInputError with the first node that contradicts them."""
    from onnx import shape_inference

    light = _without_weights(model, shapes)
    try:
        light = shape_inference.infer_shapes(light, strict_mode=True, data_prop=True)
    except shape_inference.InferenceError as error:
        fault = _FAULT.search(str(error))
        if fault is not None and fault[2].strip().endswith(_UNTYPED):
            light = shape_inference.infer_shapes(light, data_prop=True)
        elif fault is not None and not fault[2].startswith(_INSIDE):
            at = int(fault[1])
            raise InvalidInputError(
                f"{source}: {describe(model.graph.node[at], at)}: {_reason(fault[2])}; "
                "mend the model, or the shapes given for its inputs"
            ) from error
        else:
            return {}  # an operator that onnx knows nothing of, or has only as a function of others
    except (ValueError, RuntimeError):
        return {}  # too large for one message, with constants inside nodes
    values = [*light.graph.input, *light.graph.value_info, *light.graph.output]
    known = {value.name: shape for value in values if (shape := _shape(value)) is not None}
    return known | {tensor.name: tuple(tensor.dims) for tensor in model.graph.initializer}


def _reason(text: str) -> str:
    return first_line(ValueError(text)).rstrip(".;")


def _without_weights(model: onnx.ModelProto, shapes: Mapping[str, Shape]) -> onnx.ModelProto:
    """The model for the inference: nodes named by their number, weights as inputs, results not stated.

    What a model states of its results may be of another batch; what follows from its inputs counts.
    """
    import onnx

    light = onnx.ModelProto(ir_version=model.ir_version)
    for opset in model.opset_import:
        light.opset_import.add(domain=standard(opset.domain), version=opset.version)
    graph = light.graph
    graph.name = "shapes"
    graph.node.extend(model.graph.node)
    for at, node in enumerate(graph.node):
        node.name, node.domain = str(at), standard(node.domain)
        if node.op_type in _SHAPED_AS_FIRST and not node.domain:
            node.CopyFrom(onnx.helper.make_node("Identity", node.input[:1], node.output[:1], node.name))
    graph.input.extend(model.graph.input)
    for value in graph.input:
        if value.name in shapes:
            stated = value.type.tensor_type.shape
            del stated.dim[:]
            for extent in shapes[value.name]:
                dim = stated.dim.add()
                if isinstance(extent, int):
                    dim.dim_value = extent
                else:
                    dim.dim_param = extent
        for at, dim in enumerate(value.type.tensor_type.shape.dim):
            if dim.HasField("dim_value") and dim.dim_value < 0:
                dim.dim_param = f"{value.name}_{at}"
    for value in model.graph.output:
        graph.output.append(value)
        if value.type.HasField("tensor_type"):
            graph.output[-1].type.tensor_type.ClearField("shape")
    given = {value.name for value in graph.input}
    for tensor in model.graph.initializer:
        if math.prod(tensor.dims) <= _KEPT:
            graph.initializer.append(tensor)
        elif tensor.name not in given:  # onnx reads the numbers of integers, so none may stand there empty
            weights = onnx.helper.make_tensor_value_info(tensor.name, tensor.data_type, tensor.dims)
            graph.input.append(weights)
    return light


def _shape(value: onnx.ValueInfoProto) -> Extents | None:
    tensor = value.type.tensor_type
    if not tensor.HasField("shape"):
        return None
    return tuple(dim.dim_value if dim.HasField("dim_value") else None for dim in tensor.shape.dim)


def _text(shape: Extents) -> str:
    return f"[{', '.join('?' if extent is None else str(extent) for extent in shape)}]"
