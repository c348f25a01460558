"""Converters of PyTorch's operators on nodes that are written by hand: what runs them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from tvm import relax

import tvm_mxplan
from tvm_mxplan.frontend.origins import OriginBuilder
from tvm_mxplan.frontend.torch import converters
from tvm_mxplan.frontend.torch.node import Emitter, Node, Stated

Case = tuple[str, dict[str, Any], np.ndarray]
"""An operator, its operands, and what numpy says of it."""


def run(
    operator: str,
    operands: dict[str, Any],
    stated: tuple[tuple[int, ...], str],
    table: dict[str, converters.Converter] = converters.TABLE,
    target: str = "llvm",
) -> np.ndarray:
    """The result of a converter's Relax; arrays among the operands, and in lists of them, are inputs."""
    (found,) = run_all([(operator, operands, stated)], table, target)
    return found


def pairs(numbers: np.ndarray) -> np.ndarray:
    """Complex numbers as pairs along a last axis; real ones as they are."""
    if not np.iscomplexobj(numbers):
        return numbers
    return np.stack([numbers.real, numbers.imag], -1)


def _is_complex(value: Any) -> bool:
    return isinstance(value, np.ndarray) and np.iscomplexobj(value)


def run_all(
    calls: Sequence[tuple[str, dict[str, Any], tuple[tuple[int, ...], str]]],
    table: dict[str, converters.Converter],
    target: str,
) -> list[np.ndarray]:
    """Results of several operators, each with operands of its own, in one module."""
    arrays: list[np.ndarray] = []
    params: list[relax.Var] = []

    def given(value: Any) -> Any:
        if isinstance(value, list):
            return [given(one) for one in value]
        if not isinstance(value, np.ndarray):
            return value
        if np.iscomplexobj(value):
            value = pairs(value)
        arrays.append(value)
        params.append(relax.Var(f"p{len(params)}", relax.TensorType(value.shape, str(value.dtype))))
        return params[-1]

    nodes = [
        Node(
            operator if operator.count(".") == 2 else f"aten.{operator}",
            {name: given(value) for name, value in operands.items()},
            [Stated(*stated)],
            frozenset(name for name, value in operands.items() if _is_complex(value)),
        )
        for operator, operands, stated in calls
    ]
    builder = OriginBuilder()
    with builder.function("main", params):
        with builder.dataflow():
            found = [table[node.operator](Emitter(builder), node) for node in nodes]
            tensors = [one[0] if isinstance(one, list) else one for one in found]
            results = builder.emit_output(relax.Tuple(tensors) if len(tensors) > 1 else tensors[0])
        builder.emit_func_output(results)
    executable = tvm_mxplan.compile(builder.get(), target, options={"cache": "disabled"})
    actual = [result.numpy() for result in executable(*arrays)]
    assert [(one.shape, str(one.dtype)) for one in actual] == [
        (tuple(shape), dtype) for _, _, (shape, dtype) in calls
    ]
    return actual
