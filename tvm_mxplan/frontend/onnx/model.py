"""ONNX models as Relax modules, with the names that their users know kept beside them."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import onnx
import tvm
from tvm import relax

from ...errors import InvalidInputError, UnsupportedError
from ..origins import OriginBuilder
from ..stated_inputs import Shape
from .checks.check_tensors import check_files
from .checks.checks import check_model
from .dimensions.checks_first import with_checks_first
from .dimensions.dims import Bounds, Dim, expression, within
from .dimensions.open_dimensions import check_bounds, dims_of, open_dimensions
from .importer import Importer, Source
from .names import first_line
from .node import Emitter
from .values import Scope, Value
from .weights import load_small


def read_model(path: str | os.PathLike[str]) -> onnx.ModelProto:
    """Read a model file but for large weights in other files, which ``import_model`` reads from its folder.

    Raises
    ------
    InvalidInputError : the file is missing, truncated or no ONNX model.
    """
    path = Path(path)
    try:
        model = onnx.load(path, load_external_data=False)
    except FileNotFoundError:
        raise InvalidInputError(f"{path}: no such file; expected an ONNX model") from None
    except IsADirectoryError:
        raise InvalidInputError(f"{path}: is a directory; expected an ONNX model") from None
    except Exception as error:
        raise InvalidInputError(f"{path}: not an ONNX model or truncated ({first_line(error)})") from error
    if not model.graph.node or not model.opset_import:
        raise InvalidInputError(f"{path}: not an ONNX model or truncated (no operators or no opset)")
    check_files(model, path)
    try:
        load_small(model, path.parent)
    except Exception as error:
        raise InvalidInputError(f"{path}: its external data cannot be read ({first_line(error)})") from error
    return model


def input_names(model: onnx.ModelProto) -> list[str]:
    """Names of the inputs that are no parameters, in order."""
    parameters = {tensor.name for tensor in model.graph.initializer}
    return [value.name for value in model.graph.input if value.name not in parameters]


def output_names(model: onnx.ModelProto) -> list[str]:
    """Names of the outputs, in order."""
    return [value.name for value in model.graph.output]


def import_model(
    model: onnx.ModelProto,
    shapes: Mapping[str, Shape] | None = None,
    source: str = "model",
    folder: Path | None = None,
    bounds: Bounds | None = None,
) -> tvm.IRModule:
    """The model as a Relax module with its parameters as constants.

    Parameters
    ----------
    shapes : shapes of inputs by name, in place of those in the model; names are open dimensions.
    source : what messages call the model.
    folder : where the model's file stood, if ``read_model`` read it.
    bounds : the smallest and largest extents of open dimensions.

    Raises
    ------
    InvalidInputError : a name in ``shapes`` that is no input, or a model that contradicts itself.
    UnsupportedError : an operator that TVM's importer does not know.
    """
    names = input_names(model)
    for name, shape in (shapes or {}).items():
        if name not in names:
            raise InvalidInputError(f"{source}: no input {name!r}; the inputs are {', '.join(names)}")
        _check_shape(model, name, shape, source)
    check_model(model, source, shapes or {}, files_checked=folder is not None)
    dims = open_dimensions(model.graph, shapes or {})
    check_bounds(bounds or {}, dims, source)
    local = {(function.domain, function.name): function for function in model.functions}
    opsets = {
        "" if opset.domain == "ai.onnx" else opset.domain: opset.version for opset in model.opset_import
    }
    with within(bounds or {}):
        return _imported(model, Source(source, opsets, local, folder, dims))


def _imported(model: onnx.ModelProto, source: Source) -> tvm.IRModule:
    graph, dims = model.graph, source.inputs
    builder = OriginBuilder()
    importer = Importer(builder, source)
    parameters = {
        value.name: _parameter(value, dims[value.name], source.name)
        for value in graph.input
        if value.name in dims
    }
    control = any(map(has_control_flow, [graph, *model.functions]))
    with builder.function("main", list(parameters.values())):
        with contextlib.nullcontext() if control else builder.dataflow():
            values = importer.graph(graph, Scope(parameters))
            emitter = Emitter(importer)
            tensors = [
                _result(emitter, value, output, source.name)
                for value, output in zip(values, graph.output, strict=True)
            ]
            result = tensors[0] if len(tensors) == 1 else relax.Tuple(tensors)
            if not control:
                result = builder.emit_output(result)
        builder.emit_func_output(result)
    mod = with_checks_first(builder.get())
    mod["main"] = mod["main"].with_attr("num_input", len(parameters))
    return mod


def has_control_flow(graph: onnx.GraphProto | onnx.FunctionProto) -> bool:
    """Whether a graph, or a function of the model, has nodes with graphs inside."""
    return any(
        attribute.HasField("g") or attribute.graphs for node in graph.node for attribute in node.attribute
    )


def _result(emitter: Emitter, value: Value, output: onnx.ValueInfoProto, source: str) -> relax.Expr:
    """A result as a tensor, or as a tuple where it is a sequence."""
    if value is None:
        raise UnsupportedError(f"{source}: output {output.name!r} is an optional without a value")
    if isinstance(value, list):
        return relax.Tuple([_result(emitter, part, output, source) for part in value])
    return emitter.tensor(value)


def _tensor_type(value: onnx.ValueInfoProto) -> onnx.TypeProto.Tensor:
    """The type of a tensor, also of one that is optional."""
    kind = value.type
    return kind.optional_type.elem_type.tensor_type if kind.HasField("optional_type") else kind.tensor_type


def _parameter(value: onnx.ValueInfoProto, dims: Sequence[Dim] | None, source: str) -> relax.Var:
    name = re.sub(r"\W", "_", value.name)
    name = f"_{name}" if name[:1].isdigit() else name
    if value.type.HasField("sequence_type"):
        raise UnsupportedError(f"{source}: input {value.name!r} is a sequence; expected a tensor")
    if dims is None:
        raise InvalidInputError(f"{source}: input {value.name!r} has no shape in the model; state one")
    dtype = str(np.dtype(onnx.helper.tensor_dtype_to_np_dtype(_tensor_type(value).elem_type)))
    return relax.Var(name, relax.TensorType([expression(dim) for dim in dims], dtype))


def _check_shape(model: onnx.ModelProto, name: str, shape: Shape, source: str) -> None:
    text = f"[{', '.join(map(str, shape))}]"
    if not all(isinstance(dim, str) or (isinstance(dim, int) and dim > 0) for dim in shape):
        raise InvalidInputError(f"{source}: input {name!r}: expected positive numbers as shape, got {text}")
    declared = next(dims_of(value) for value in model.graph.input if value.name == name)
    if declared is not None and len(declared) != len(shape):
        raise InvalidInputError(f"{source}: input {name!r}: expected {len(declared)} dimensions, got {text}")
