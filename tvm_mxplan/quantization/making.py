"""Quantised models by onnxruntime's tools: static with calibration, or dynamic without."""

from __future__ import annotations

import difflib
import importlib
import logging
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import onnx

from ..errors import InvalidInputError, UnsupportedError
from ..export.files import check_destination, whole_file
from .calibration import Samples

METHODS = {"minmax": "MinMax", "entropy": "Entropy", "percentile": "Percentile"}
"""Ways in which ranges follow from what samples gave, by onnxruntime's names."""
_TYPES = {"u8": "QUInt8", "s8": "QInt8"}
_FORMATS = {"qdq": "QDQ", "qoperator": "QOperator"}
_INTEGER_OPERATORS = {
    "QuantizeLinear",
    "DynamicQuantizeLinear",
    "QLinearConv",
    "QLinearMatMul",
    "MatMulInteger",
}


@dataclass(frozen=True)
class Settings:
    """The choices that a quantised model is made by.

    Attributes
    ----------
    dynamic : scales of activations are worked out in each call, not beforehand from samples.
    activations, weights : u8 or s8.
    per_channel : a scale for each output of a product.
    reduce_range : weights of 7 bits, for processors without VNNI.
    exclude : names of nodes that stay in float32.
    operators : kinds of nodes that are quantised; empty for all that onnxruntime quantises.
    form : ``qdq`` or ``qoperator``, of static models.
    method : one of ``METHODS``.
    """

    dynamic: bool = False
    activations: Literal["u8", "s8"] = "u8"
    weights: Literal["u8", "s8"] = "s8"
    per_channel: bool = False
    reduce_range: bool = False
    exclude: tuple[str, ...] = ()
    operators: tuple[str, ...] = ()
    form: Literal["qdq", "qoperator"] = "qdq"
    method: Literal["minmax", "entropy", "percentile"] = "minmax"


@dataclass(frozen=True)
class Made:
    """A quantised model beside what it was made of.

    Attributes
    ----------
    real : the model in float32 as it was quantised, its batch norms folded, each node with a name.
    integers : the model that was written; ``compared`` is the same with QuantizeLinear and DequantizeLinear
        around nodes, which keep the names of their results.
    """

    real: onnx.ModelProto
    integers: onnx.ModelProto
    compared: onnx.ModelProto
    settings: Settings


def quantize(
    model: str | os.PathLike[str], output: str | os.PathLike[str], samples: Samples, settings: Settings
) -> Made:
    """Write the quantised model of a file.

    Parameters
    ----------
    samples : what ranges are measured on; none are needed for a dynamic model.

    Raises
    ------
    InvalidInputError : no samples, names that are no nodes, a model with integers in it already, a file that
        cannot be read or written.
    UnsupportedError : no onnxruntime.
    """
    tools = _tools()
    check_destination(output, ".onnx")
    if not settings.dynamic and not samples:
        raise InvalidInputError("data: no samples; expected calibration data, or a dynamic model")
    with tempfile.TemporaryDirectory(prefix="mxplan_quantize_") as folder, _silent():
        real = _prepared(Path(model), Path(folder))
        _check_names(Path(model), real, settings)
        made = _made(tools, real, Path(folder), samples, settings, settings.form)
        compared = made
        if not settings.dynamic and settings.form != "qdq":
            compared = _made(tools, real, Path(folder), samples, settings, "qdq")
    with whole_file(Path(output)) as partial:
        onnx.save(made, partial)
    return Made(real, made, compared, settings)


def _tools() -> Any:
    try:
        return importlib.import_module("onnxruntime.quantization")
    except ImportError as error:
        raise UnsupportedError(
            f"onnxruntime, whose tools quantise, is not installed ({error}); pip install onnxruntime"
        ) from error


@contextmanager
def _silent() -> Iterator[None]:
    """Keeps what the tools advise from being printed."""
    root = logging.getLogger()
    level = root.level
    root.setLevel(logging.ERROR)
    try:
        yield
    finally:
        root.setLevel(level)


def _prepared(path: Path, folder: Path) -> onnx.ModelProto:
    """The model with shapes known, batch norms folded and a name for each node."""
    from onnxruntime.quantization.shape_inference import quant_pre_process

    if not path.is_file():
        raise InvalidInputError(f"{path}: no such file; expected an ONNX model")
    try:
        model = onnx.load(path)
    except Exception as error:
        raise InvalidInputError(f"{path}: cannot be read as an ONNX model ({error})") from error
    present = sorted({node.op_type for node in model.graph.node} & _INTEGER_OPERATORS)
    if present:
        raise InvalidInputError(f"{path}: is quantised already (it has {present[0]}); expected float32")
    taken = {node.name for node in model.graph.node}
    for node in model.graph.node:
        if not node.name:
            node.name = f"{node.op_type}_{node.output[0]}"
            while node.name in taken:
                node.name += "_"
            taken.add(node.name)
    named, ready = folder / "named.onnx", folder / "ready.onnx"
    onnx.save(model, named)
    try:
        quant_pre_process(str(named), str(ready), skip_symbolic_shape=True)
    except Exception as error:
        raise InvalidInputError(f"{path}: onnxruntime cannot prepare it ({_line(error)})") from error
    return onnx.load(ready)


def _check_names(path: Path, model: onnx.ModelProto, settings: Settings) -> None:
    names = [node.name for node in model.graph.node]
    for name in settings.exclude:
        if name not in names:
            near = difflib.get_close_matches(name, names, 3, 0.5) or names[:3]
            raise InvalidInputError(f"{path}: no node {name!r} to leave out; there are {', '.join(near)} ...")
    kinds = {node.op_type for node in model.graph.node}
    for kind in settings.operators:
        if kind not in kinds:
            raise InvalidInputError(f"{path}: no node of kind {kind!r}; there are {', '.join(sorted(kinds))}")


def _made(
    tools: Any, real: onnx.ModelProto, folder: Path, samples: Samples, settings: Settings, form: str
) -> onnx.ModelProto:
    ready, made = folder / "ready.onnx", folder / "made.onnx"
    common = {
        "op_types_to_quantize": list(settings.operators) or None,
        "per_channel": settings.per_channel,
        "reduce_range": settings.reduce_range,
        "weight_type": getattr(tools.QuantType, _TYPES[settings.weights]),
        "nodes_to_exclude": list(settings.exclude),
    }
    try:
        if settings.dynamic:
            tools.quantize_dynamic(str(ready), str(made), **common)
        else:
            tools.quantize_static(
                str(ready),
                str(made),
                _reader(tools, samples),
                quant_format=getattr(tools.QuantFormat, _FORMATS[form]),
                activation_type=getattr(tools.QuantType, _TYPES[settings.activations]),
                calibrate_method=getattr(tools.CalibrationMethod, METHODS[settings.method]),
                **common,
            )
    except Exception as error:
        raise InvalidInputError(f"onnxruntime cannot quantise the model ({_line(error)})") from error
    return onnx.load(made)


def _reader(tools: Any, samples: Samples) -> Any:
    class Reader(tools.CalibrationDataReader):
        def __init__(self) -> None:
            self.rewind()

        def get_next(self) -> Any:
            return next(self._rest, None)

        def rewind(self) -> None:
            self._rest = iter([dict(sample) for sample in samples])

    return Reader()


def _line(error: Exception) -> str:
    return next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)
