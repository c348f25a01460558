"""A model of PyTorch's, whatever its kind, as a Relax module."""

from __future__ import annotations

from typing import Any

import tvm

from ...errors import InvalidInputError
from . import Examples
from .dimensions import Axes, axis_names
from .export import decomposed, dimensions_of, example_arguments, exported
from .kinds import is_program, is_scripted
from .program import import_program
from .sizes import guards_of


def relax_module(model: Any, examples: Examples) -> tvm.IRModule:
    """The Relax module of an exported program, or of a module and its example inputs.

    Raises
    ------
    InvalidInputError : no example inputs, training mode, or a model that ``torch.export`` does not take.
    UnsupportedError : the module, the operator and the reason.
    """
    if is_scripted(model):
        raise InvalidInputError(
            f"a {type(model).__name__} is TorchScript; expected the torch.nn.Module that it was made of"
        )
    names: Axes = {}
    source = type(model).__name__
    if is_program(model):
        if examples.args or examples.kwargs:
            raise InvalidInputError("an exported program has its inputs; args and kwargs are for modules")
        names = axis_names(example_arguments(model), examples.dynamic_shapes)
        source = "exported program"
        program = model
    else:
        program, names = exported(model, examples.args, examples.kwargs, examples.dynamic_shapes)
    parts = decomposed(program)
    dimensions = dimensions_of(parts, names)
    called = {symbol: bound.name for symbol, bound in dimensions.items()}
    guards = [guard for of in (program, parts) for guard in guards_of(of, called, source)]
    return import_program(parts, dimensions, source, guards)
