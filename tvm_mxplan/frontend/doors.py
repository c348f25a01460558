"""Models other than ONNX as Relax modules, each read by what knows its format."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import tvm

from ..errors import InvalidInputError
from .formats import Format
from .relax.relax_file import read_json, read_script, with_parameters
from .relay import json_program, parser
from .relay.importer import import_program


def opened(
    path: Path,
    form: Format,
    shapes: Mapping[str, Sequence[int | str]] | None,
    parameters: Mapping[str, np.ndarray],
) -> tvm.IRModule:
    """The module in a file.

    Parameters
    ----------
    form : what the file holds; not ONNX.
    shapes : shapes of inputs by name, for Relay's models.
    parameters : values by the names of parameters of the function ``main``.

    Raises
    ------
    InvalidInputError, UnsupportedError : what the file's reader says.
    """
    if form in (Format.RELAX_TEXT, Format.RELAX_JSON):
        if shapes:
            raise InvalidInputError(
                f"{path}: shapes are for ONNX and Relay models; a Relax module states its own"
            )
        mod = read_script(path) if form is Format.RELAX_TEXT else read_json(path)
        return bound(mod, parameters, str(path))
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidInputError(
            f"{path}: is no text (byte {error.start:,}); save the module again"
        ) from error
    except OSError as error:
        raise InvalidInputError(
            f"{path}: cannot be read ({error.strerror}); expected a Relay module"
        ) from error
    read = parser.parse if form is Format.RELAY_TEXT else json_program.read
    module, places = read(text, str(path))
    return import_program(module, places, parameters, shapes)


def bound(mod: tvm.IRModule, parameters: Mapping[str, np.ndarray], source: str = "params") -> tvm.IRModule:
    """A Relax module with parameters as constants."""
    if not parameters:
        return mod
    if "main" not in [gvar.name_hint for gvar in mod.functions]:
        raise InvalidInputError(f"{source}: the Relax module has no function main; rename the one to compile")
    return with_parameters(mod, parameters, source)
