"""ONNX models as Relax modules, with the names that their users know kept beside them."""

from __future__ import annotations

import re
import traceback
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import tvm

from ..errors import InvalidInputError, UnsupportedError
from .onnx_checks import check_model
from .onnx_names import describe, first_line
from .onnx_tensors import check_files

if TYPE_CHECKING:
    import onnx


def read_model(path: str | Path) -> onnx.ModelProto:
    """Read a model file; InvalidInputError if it is missing, truncated or no ONNX model."""
    import onnx

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
        onnx.load_external_data_for_model(model, str(path.parent))
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
    model: onnx.ModelProto, shapes: Mapping[str, Sequence[int]] | None = None, source: str = "model"
) -> tvm.IRModule:
    """The model as a Relax module with its parameters as constants.

    Parameters
    ----------
    shapes : shapes of inputs by name, in place of those in the model.
    source : what messages call the model.

    Raises
    ------
    InvalidInputError : a name in ``shapes`` that is no input, or a model that contradicts itself.
    UnsupportedError : an operator that TVM's importer does not know.
    """
    from tvm.relax.frontend.onnx import from_onnx

    names = input_names(model)
    for name, shape in (shapes or {}).items():
        if name not in names:
            raise InvalidInputError(f"{source}: no input {name!r}; the inputs are {', '.join(names)}")
        _check_shape(model, name, shape, source)
    check_model(model, source, shapes or {})
    overrides = _symbolic_shapes(model, names)
    overrides |= {name: list(shape) for name, shape in (shapes or {}).items()}
    _check_ranks(model, names, overrides, source)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return from_onnx(model, shape_dict=overrides or None)
    except tvm.error.OpNotImplemented as error:
        raise UnsupportedError(f"{source}: {first_line(error)}") from error
    except Exception as error:
        where = _place(error, model)
        raise InvalidInputError(f"{source}: {where}TVM cannot import this ({first_line(error)})") from error


def _place(error: BaseException, model: onnx.ModelProto) -> str:
    """The node of the model's graph that TVM's importer was at, '' where it was at none."""
    for frame, _ in traceback.walk_tb(error.__traceback__):
        node, inside = frame.f_locals.get("node"), frame.f_code.co_name == "_construct_nodes"
        if inside and node is not None:
            at = next((at for at, other in enumerate(model.graph.node) if other is node), -1)
            return f"{describe(node, at)}: "
    return ""


def _check_shape(model: onnx.ModelProto, name: str, shape: Sequence[int], source: str) -> None:
    text = f"[{', '.join(map(str, shape))}]"
    if not all(isinstance(dim, int) and dim > 0 for dim in shape):
        raise InvalidInputError(f"{source}: input {name!r}: expected positive numbers as shape, got {text}")
    declared = next(_dims(value) for value in model.graph.input if value.name == name)
    if declared is not None and len(declared) != len(shape):
        raise InvalidInputError(f"{source}: input {name!r}: expected {len(declared)} dimensions, got {text}")


def _check_ranks(
    model: onnx.ModelProto, names: Sequence[str], known: Mapping[str, object], source: str
) -> None:
    for value in model.graph.input:
        stated = value.name not in names or value.name in known
        if not stated and value.type.HasField("tensor_type") and _dims(value) is None:
            raise InvalidInputError(f"{source}: input {value.name!r} has no shape in the model; state one")


def _symbolic_shapes(model: onnx.ModelProto, names: Sequence[str]) -> dict[str, list[object]]:
    """Shapes of all inputs if a dimension has no name; the importer would take all such for one symbol."""
    from tvm.relax.frontend.onnx.onnx_frontend import parse_shape_name

    inputs = [value for value in model.graph.input if value.name in names and _dims(value) is not None]
    if all(dim.dim_value or dim.dim_param for value in inputs for dim in _dims(value)):
        return {}
    variables: dict[str, object] = {}
    return {
        value.name: [
            dim.dim_value
            or parse_shape_name(dim.dim_param or re.sub(r"\W", "_", f"{value.name}_{axis}"), variables)
            for axis, dim in enumerate(_dims(value))
        ]
        for value in inputs
    }


def _dims(value: onnx.ValueInfoProto) -> Sequence[onnx.TensorShapeProto.Dimension] | None:
    tensor = value.type.tensor_type
    return tensor.shape.dim if tensor.HasField("shape") else None
