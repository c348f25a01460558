"""Modules of PyTorch as exported programs, and programs taken apart into the operators that are imported."""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Mapping, Sequence
from typing import Any

from ...errors import InvalidInputError
from .dimensions import Axes, Bound, axis_names, named_bounds, with_dimensions

WHOLE = (
    "_scaled_dot_product_flash_attention_for_cpu.default",
    "elu.default",
    "group_norm.default",
    "hardsigmoid.default",
    "hardswish.default",
    "layer_norm.default",
    "leaky_relu.default",
    "linear.default",
    "matmul.default",
    "max_pool1d.default",
    "max_pool2d.default",
    "max_pool3d.default",
    "pixel_shuffle.default",
    "scaled_dot_product_attention.default",
    "select_scatter.default",
    "silu.default",
    "softplus.default",
    "upsample_bicubic2d.vec",
    "upsample_bilinear2d.vec",
    "upsample_linear1d.vec",
    "upsample_nearest1d.vec",
    "upsample_nearest2d.vec",
    "upsample_nearest3d.vec",
    "upsample_trilinear3d.vec",
)
"""Operators of ATen that are not taken apart: what they are made of is slower, or not recognised any more."""
RECURRENT = ("lstm.input", "gru.input", "rnn_tanh.input", "rnn_relu.input")
"""Layers of recurrent cells, which stay whole in programs where none has a projection."""


def exported(
    model: Any, args: Sequence[Any], kwargs: Mapping[str, Any], dynamic_shapes: Any
) -> tuple[Any, Axes]:
    """The module as an exported program, and what the user calls axes of its inputs.

    Raises
    ------
    InvalidInputError : a module in training mode, or one that ``torch.export`` does not take.
    """
    import torch

    if model.training:
        raise InvalidInputError(f"{type(model).__name__} is in training mode; call model.eval() first")
    if not args and not kwargs:
        raise InvalidInputError(
            f"a {type(model).__name__} needs example inputs; pass args=(tensor, ...) or kwargs={{...}}"
        )
    names = axis_names(_arguments(model, args, kwargs), dynamic_shapes)
    shapes = with_dimensions(dynamic_shapes, torch.export.Dim)
    try:
        with torch.no_grad():
            program = torch.export.export(
                model, tuple(args), dict(kwargs), dynamic_shapes=shapes, strict=False
            )
    except Exception as error:
        raise InvalidInputError(
            f"torch.export does not take this {type(model).__name__} ({_summary(error)}); "
            'torch.compile(model, backend="mxplan") compiles the parts that it can'
        ) from error
    return program, names


def decomposed(program: Any) -> Any:
    """The program in ATen's core operators, but for those that stay whole."""
    import torch

    projects = any(map(_is_projected, program.graph.nodes))
    with torch.no_grad():
        return program.run_decompositions(decomposition_table(WHOLE if projects else (*WHOLE, *RECURRENT)))


def _is_projected(node: Any) -> bool:
    """Whether a node is an LSTM whose outputs are projected, which only PyTorch takes apart."""
    if str(node.target) != "aten.lstm.input":
        return False
    _, _, params, has_biases, layers, _, _, bidirectional, _ = node.args
    return len(params) != (4 if has_biases else 2) * layers * (2 if bidirectional else 1)


def decomposition_table(whole: Sequence[str] = WHOLE) -> Any:
    """Returns PyTorch's table of decompositions, without the operators that stay whole."""
    import torch

    table = torch.export.default_decompositions()
    for name in whole:
        operator = whole_operator(name)
        if operator in table:
            del table[operator]
    return table


def whole_operator(name: str) -> Any:
    """ATen's operator of that name."""
    import torch

    packet, overload = name.split(".")
    return getattr(getattr(torch.ops.aten, packet), overload)


def dimensions_of(program: Any, names: Axes) -> dict[str, Bound]:
    """The named dimensions of a program by its symbols."""
    limits = {
        str(symbol): (max(_limit(values.lower) or 0, 0), _limit(values.upper))
        for symbol, values in program.range_constraints.items()
        if getattr(symbol, "is_Symbol", False)
    }
    places = [
        (node.name, axis, str(size.node.expr))
        for node in program.graph.nodes
        if node.op == "placeholder"
        for axis, size in enumerate(getattr(node.meta.get("val"), "shape", ()))
        if not isinstance(size, int) and size.node.expr.is_Symbol
    ]
    return named_bounds(places, limits, names)


def example_arguments(program: Any) -> dict[str, Any]:
    """The inputs that a program was exported with, by the names of the model's parameters."""
    inputs = program.example_inputs
    names = program.module_call_graph[0].signature.forward_arg_names or ()
    args, kwargs = inputs if inputs else ((), {})
    return {**dict(zip(names, args, strict=False)), **kwargs}


def _limit(value: Any) -> int | None:
    """A bound of a symbol; None where there is none."""
    return int(value) if getattr(value, "is_Integer", False) else None


def _arguments(model: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
    try:
        bound = inspect.signature(model.forward).bind(*args, **kwargs)
    except TypeError as error:
        raise InvalidInputError(f"{type(model).__name__}.forward: {error}") from error
    return dict(bound.arguments)


def _summary(error: Exception) -> str:
    """Sums up an error in one line: its first line, and the one that says how to mend it."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    if not lines:
        return type(error).__name__
    fixes = [fix for line, fix in itertools.pairwise(lines) if line.startswith("Suggested fixes")]
    return f"{type(error).__name__}: {'; '.join([lines[0][:300], *fixes])}"
