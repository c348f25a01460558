"""A network by its name, of the published ones or of those of today, with inputs for it."""

from __future__ import annotations

import sys

import numpy as np
import onnx

from tvm_mxplan.testing import zoo

from . import modern


def network(name: str, batch: int) -> tuple[onnx.ModelProto, dict[str, np.ndarray]]:
    """The model and random inputs; those of today are exported where no file is there yet.

    Raises `modern.NotExported` where that cannot be done, and ValueError for a name of neither.
    """
    if name in modern.NAMES["modern"]:
        path = modern.Exports(modern.default_folder(), sys.executable).model(name, batch)
        return onnx.load(path), modern.inputs(name, batch)
    model = zoo.load(name, batch=batch)
    return model, zoo.random_inputs(model)
