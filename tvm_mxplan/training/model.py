"""``Model``: a model with its weights as parameters, whatever it came as."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import tvm
from tvm import relax

from ..errors import InvalidInputError, UnsupportedError
from ..execution.signature import Port
from ..frontend.parameters import Parameters, parameters_of
from ..frontend.stated_inputs import Shape
from ..operators.registration import dtype_of, numbers

FLOATS = ("float32", "float64")


@dataclass(frozen=True)
class Model:
    """A function of Relax whose parameters are inputs, then weights.

    Attributes
    ----------
    inputs : with the names that users know.
    weights : first values by the model's names, in the order of the parameters.
    trained : names of the weights that steps change by gradients.
    outputs : names of the results.
    keeps_momentum : the batch norms' momentum is the share of the old statistics that stays, as in ONNX;
        else that of the new ones, as in Relax.
    unbiased : running variances take the batch's, divided by one element less, as in PyTorch.
    kernels : functions beside it that it calls.
    onnx : the model that ``save`` puts trained weights into, where it came as ONNX.
    constants : names of real numbers that it holds and that are no weights; ``trainable=`` may name them.
    """

    function: relax.Function
    inputs: tuple[Port, ...]
    weights: Mapping[str, np.ndarray]
    trained: frozenset[str]
    outputs: tuple[str, ...]
    keeps_momentum: bool = False
    unbiased: bool = False
    kernels: tvm.IRModule = field(default_factory=tvm.IRModule)
    onnx: Any = None
    constants: tuple[str, ...] = ()


@dataclass(frozen=True)
class Wanted:
    """A user's statements on a model beside the model.

    Attributes
    ----------
    inputs : shapes of an ONNX model's inputs; names of a Relax function's.
    params : first values of a Relax function's weights.
    trainable : names of the weights to train, None for all that are told to be weights.
    """

    inputs: Mapping[str, Shape] | Sequence[str] | None = None
    params: Parameters | None = None
    trainable: Sequence[str] | None = None


def model_of(model: Any, wanted: Wanted) -> Model:
    """The model, read and imported.

    Raises
    ------
    InvalidInputError : what cannot be read, or contradicts what is said of it.
    UnsupportedError : shapes that are not numbers.
    """
    made = _imported(model, wanted)
    for port in made.inputs:
        if not all(isinstance(extent, int) for extent in port.shape):
            raise UnsupportedError(
                f"input {port}: training needs shapes that are numbers; state one by inputs="
                f"{{{port.name!r}: [...]}}"
            )
    if not made.trained:
        raise InvalidInputError("the model has no weights to train; name some by trainable=")
    return made


def _imported(model: Any, wanted: Wanted) -> Model:
    from ..frontend.torch import is_program, is_torch

    if isinstance(model, tvm.IRModule):
        return _of_relax(model, wanted)
    if is_program(model):
        from .torch_model import model_of_program

        return model_of_program(model, wanted)
    if is_torch(model):
        raise InvalidInputError(
            f"cannot train a {type(model).__name__} as it is; pass torch.export.export(model.train(), (x,)), "
            "or its export to ONNX"
        )
    from .onnx_model import model_of_onnx

    source, folder = "model", None
    if isinstance(model, str | os.PathLike):
        from ..frontend.onnx import read_model

        source, folder = str(Path(model)), Path(model).parent
        model = read_model(model)
    if not hasattr(model, "graph"):
        raise InvalidInputError(
            f"cannot train a {type(model).__name__}; expected a path, an onnx.ModelProto, an IRModule or an "
            "ExportedProgram"
        )
    return model_of_onnx(model, wanted, source, folder)


def _of_relax(mod: tvm.IRModule, wanted: Wanted) -> Model:
    if "main" not in [gvar.name_hint for gvar in mod.functions]:
        raise InvalidInputError("the Relax module has no function main; rename the one to train")
    if wanted.inputs is None or isinstance(wanted.inputs, Mapping):
        raise InvalidInputError("inputs: expected the names of the Relax function's parameters that are data")
    if wanted.params is None:
        raise InvalidInputError(
            "params: expected first values of the Relax function's weights by their names"
        )
    mod = relax.transform.ConvertToDataflow()(mod)
    function = mod["main"]
    params = {str(param.name): param for param in function.params}
    values = parameters_of(wanted.params)
    for name in wanted.inputs:
        if name not in params:
            raise InvalidInputError(f"inputs: the function has no {name!r}; it has {', '.join(params)}")
    weights = {}
    for name in params:
        if name in wanted.inputs:
            continue
        if name not in values:
            raise InvalidInputError(f"params: no value of {name!r}, which is not among the inputs")
        weights[name] = np.asarray(values[name])
    check_values(params, weights)
    order = [*[params[name] for name in wanted.inputs], *[params[name] for name in weights]]
    function = relax.Function(order, function.body, function.ret_ty, function.is_pure, function.attrs)
    frozen = statistics_of(function)
    learned = [name for name in weights if dtype_of(params[name]) in FLOATS and params[name] not in frozen]
    return Model(
        function,
        tuple(port_of(name, params[name]) for name in wanted.inputs),
        weights,
        chosen(learned, weights, wanted.trainable),
        tuple(f"output{at}" for at in range(count_of(function))),
        kernels=kernels_of(mod),
    )


def check_values(params: Mapping[str, relax.Var], weights: Mapping[str, np.ndarray]) -> None:
    """InvalidInputError for a value that does not fit its parameter."""
    for name, value in weights.items():
        shape = numbers(params[name].ty.shape.values)
        if value.shape != shape or str(value.dtype) != dtype_of(params[name]):
            raise InvalidInputError(
                f"params: {name!r} is {value.dtype}{list(value.shape)}; expected "
                f"{dtype_of(params[name])}{list(shape)}"
            )


def statistics_of(function: relax.Function) -> set[relax.Var]:
    """Parameters that are running means and variances of batch norms."""
    found: set[relax.Var] = set()
    for block in function.body.blocks:
        for binding in block.bindings:
            value = getattr(binding, "value", None)
            if isinstance(value, relax.Call) and value.op == tvm.ir.Op.get("relax.nn.batch_norm"):
                found.update(arg for arg in value.args[3:] if isinstance(arg, relax.Var))
    return found


def chosen(
    learned: Sequence[str], weights: Mapping[str, np.ndarray], trainable: Sequence[str] | None
) -> frozenset[str]:
    """The names to train: those that are asked for, else all that a model learns."""
    if trainable is None:
        return frozenset(learned)
    for name in trainable:
        if name not in weights:
            raise InvalidInputError(f"trainable: the model has no weight {name!r}; it has {shown(weights)}")
        if name not in learned:
            raise InvalidInputError(
                f"trainable: {name!r} is no weight that gradients change; expected some of {shown(learned)}"
            )
    return frozenset(trainable)


def shown(names: Sequence[str] | Mapping[str, Any]) -> str:
    """A few names."""
    few = list(names)[:6]
    return ", ".join(few) + (f" and {len(names) - len(few)} more" if len(names) > len(few) else "")


def port_of(name: str, param: relax.Var) -> Port:
    """A parameter as an input; extents that are no numbers as text."""
    extents = param.ty.shape.values
    shape = tuple(int(n) if type(n).__name__ == "IntImm" else str(n) for n in extents)
    return Port(name, shape, dtype_of(param))


def kernels_of(mod: tvm.IRModule) -> tvm.IRModule:
    """The module without its function ``main``."""
    functions = {gvar: function for gvar, function in mod.functions.items() if gvar.name_hint != "main"}
    return tvm.IRModule(functions)


def count_of(function: relax.Function) -> int:
    """The number of a function's results."""
    result = function.ret_ty
    return len(result.fields) if isinstance(result, relax.TupleType) else 1
