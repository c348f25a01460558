"""The table that converters join, and the operators that are refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..node import Emitter, Node

Converter = Callable[[Emitter, Node], Any]

TABLE: dict[str, Converter] = {}
"""Converters by the names of operators, ``aten.add.Tensor``."""

ROUNDED: dict[str, Converter] = {}
"""Those in their place for numbers that follow from sizes alone, rounded as IEEE asks."""


TRAINING: dict[str, Converter] = {}
"""Those in their place for a graph that is trained."""


COMPLEX: dict[str, Converter] = {}
"""Those for nodes that read or make complex numbers."""


def converts(*operators: str) -> Callable[[Converter], Converter]:
    """Enter a function into the table for these operators, of ``aten`` unless they name another library."""

    def enter(function: Converter) -> Converter:
        for operator in operators:
            name = operator if operator.count(".") == 2 else f"aten.{operator}"
            assert name not in TABLE
            TABLE[name] = function
        return function

    return enter


def converts_complex(*operators: str) -> Callable[[Converter], Converter]:
    """Enter a function into the table of complex numbers for these operators of ``aten``."""

    def enter(function: Converter) -> Converter:
        COMPLEX.update({f"aten.{operator}": function for operator in operators})
        return function

    return enter


_RANDOM = "random numbers differ from call to call; call model.eval() first, or make them an input"
_STATE = "a compiled model cannot tell in advance how many elements there are; compute that part outside"

REFUSED = {
    **{
        f"aten.{name}": _RANDOM
        for name in (
            "bernoulli.default",
            "bernoulli.p",
            "exponential.default",
            "multinomial.default",
            "native_dropout.default",
            "normal.default",
            "normal_functional.default",
            "rand.default",
            "rand_like.default",
            "randint.default",
            "randint.low",
            "randint_like.default",
            "randn.default",
            "randn_like.default",
            "randperm.default",
            "uniform.default",
        )
    },
    **{f"aten.{name}": _STATE for name in ("nonzero.default", "masked_select.default", "unique2.default")},
    "torchvision.nms.default": "the number of boxes depends on scores; call it on the results, or use ONNX",
}
"""Reasons by the names of operators."""

WITHOUT_RESULT = {
    "aten._assert_async.default",
    "aten._assert_async.msg",
    "aten._assert_scalar.default",
    "aten._assert_tensor_metadata.default",
    "aten.sym_constrain_range.default",
    "aten.sym_constrain_range_for_size.default",
}
"""Checks of what PyTorch has assumed: those of sizes are repeated where a function is called."""
