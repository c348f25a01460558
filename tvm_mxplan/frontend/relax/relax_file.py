"""Relax modules from files: what ``mod.script(show_meta=True)`` prints, and JSON of ``tvm.ir.save_json``.

TVM's own readers do both.  Its reader of TVMScript evaluates Python, so ``script_checks`` looks at the text
first; its reader of JSON makes objects of TVM and executes nothing.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import tvm
from tvm import relax, tirx
from tvm.script.parser import ir
from tvm.script.parser import relax as relax_script
from tvm.script.parser import tirx as tirx_script

from ...errors import InvalidInputError
from ...operators import attention, quantized, recurrent
from ..constants import constant
from .script_checks import checked_script

_NAMES = {
    "I": ir,
    "R": relax_script,
    "T": tirx_script,
    "ir": ir,
    "relax": relax_script,
    "tirx": tirx_script,
    "tir": tirx_script,
}
_FAULT = re.compile(r"error: (?P<message>.*?)\n\s*--> [^\n:]*:(?P<line>\d+):(?P<column>\d+)", re.S)


def read_script(path: Path) -> tvm.IRModule:
    """The module that a file of TVMScript describes.

    Raises
    ------
    InvalidInputError : no TVMScript, constants without their metadata, or what TVM's parser says.
    UnsupportedError : Python beside it, which would be executed.
    """
    text = _text(path)
    script = checked_script(text, str(path), _NAMES)
    names: dict[str, object] = {**_NAMES, "float": float}
    if script.metadata:
        names["metadata"] = _loaded(script.metadata, f"{path}: metadata")
    elif script.reads_metadata:
        raise InvalidInputError(
            f"{path}: its constants stand in the metadata, which this file leaves out; "
            "print it with mod.script(show_meta=True), or save it with tvm.ir.save_json"
        )
    try:
        found = tvm.script.from_source(script.text, extra_vars=names)
    except Exception as error:  # TVM's parser raises what the evaluated expressions do
        raise InvalidInputError(f"{_place(path, error)}; expected what mod.script() prints") from error
    return _module(found, path)


def read_json(path: Path) -> tvm.IRModule:
    """The module in a file that ``tvm.ir.save_json`` of this TVM wrote; InvalidInputError for any other."""
    return _module(_loaded(_text(path), str(path)), path)


def with_parameters(mod: tvm.IRModule, parameters: Mapping[str, np.ndarray], source: str) -> tvm.IRModule:
    """The module with parameters of ``main`` as constants; InvalidInputError for one that does not fit."""
    main = mod["main"]
    by_name = {param.name: param for param in main.params}
    bound: dict[relax.Var, relax.Expr] = {}
    for name, value in parameters.items():
        param = by_name.get(name, by_name.get(re.sub(r"\W", "_", name)))
        if param is None:
            raise InvalidInputError(
                f"{source}: no parameter {name!r} in main; expected one of {', '.join(by_name)}"
            )
        expr = constant(np.asarray(value))
        stated = param.ty
        shape = stated.shape if isinstance(stated, relax.TensorType) else None
        dims = list(shape.values) if isinstance(shape, relax.ShapeExpr) else list(expr.ty.shape.values)
        fits = len(dims) == value.ndim and all(
            int(dim) == extent
            for dim, extent in zip(dims, value.shape, strict=True)
            if isinstance(dim, tirx.IntImm)
        )
        if not fits or str(getattr(stated, "dtype", "")) != str(value.dtype):
            raise InvalidInputError(
                f"{source}: parameter {name!r}: expected {stated}, got {value.dtype}{list(value.shape)}"
            )
        bound[param] = expr
    return relax.transform.BindParams("main", {param.name: expr for param, expr in bound.items()})(mod)


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidInputError(
            f"{path}: is no text (byte {error.start:,}); save the module again"
        ) from error
    except OSError as error:
        raise InvalidInputError(
            f"{path}: cannot be read ({error.strerror}); expected a Relax module"
        ) from error


def _loaded(text: str, what: str) -> object:
    try:
        json.loads(text)
        attention.register()  # what a module of ours may call
        recurrent.register()
        quantized.register()
        return tvm.ir.load_json(text)
    except Exception as error:  # by its types TVM tells what a node should have been
        reason = next(
            (line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__
        )
        raise InvalidInputError(
            f"{what}: cannot be read ({reason}); save it again with tvm.ir.save_json of TVM {tvm.__version__}"
        ) from error


def _module(found: object, path: Path) -> tvm.IRModule:
    if isinstance(found, relax.Function):
        return tvm.IRModule({"main": found.with_attr("global_symbol", "main")})
    if not isinstance(found, tvm.IRModule):
        raise InvalidInputError(f"{path}: holds a {type(found).__name__}; expected a Relax module")
    return found


def _place(path: Path, error: Exception) -> str:
    fault = _FAULT.search(str(error))
    if fault is not None:
        return f"{path}:{fault['line']}:{fault['column']}: {' '.join(fault['message'].split())}"
    reason = next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)
    return f"{path}: is no TVMScript ({reason})"
