"""Functions of one real number: integers and booleans become real numbers first, as in PyTorch.

Where a formula of other functions loses digits, C's own function is called: ``log(1 + x)`` and ``exp(x) - 1``
near 0, ``1 - erf(x)`` far from it, logarithms whose results are whole numbers. A graph that is trained takes
the formulas, which have gradients.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeGuard

from tvm import relax, te, tirx

from .....errors import UnsupportedError
from ...node import Emitter, Node, dtype_of
from ..table import converts
from .bits import shifted

_OPERATORS: dict[str, Callable[[relax.Expr], relax.Expr]] = {
    name: getattr(relax.op, name)
    for name in (
        *("acos", "asin", "atan", "cos", "cosh", "erf", "exp", "rsqrt", "sigmoid", "sin", "sqrt", "tan"),
        "tanh",
    )
}


@converts(*(f"{name}.default" for name in _OPERATORS))
def _by_operator(emitter: Emitter, node: Node) -> relax.Expr:
    operator = _OPERATORS[node.operator.split(".")[1]]
    return emitter.emit(operator(emitter.cast(node["self"], node.result.dtype)))


@converts("atan2.default")
def _angle(emitter: Emitter, node: Node) -> relax.Expr:
    return emitter.emit(
        relax.op.atan2(*(emitter.operand(node[name], node.result.dtype) for name in ("self", "other")))
    )


@converts("reciprocal.default")
def _reciprocal(emitter: Emitter, node: Node) -> relax.Expr:
    dtype = node.result.dtype
    return emitter.emit(relax.op.divide(relax.const(1.0, dtype), emitter.cast(node["self"], dtype)))


@converts("pow.Tensor_Scalar", "pow.Scalar", "pow.Tensor_Tensor")
def _power(emitter: Emitter, node: Node) -> relax.Expr:
    dtype, base, exponent = node.result.dtype, node["self"], node["exponent"]
    if "float" in dtype:
        root = {0.5: relax.op.sqrt, -0.5: relax.op.rsqrt}.get(exponent) if _is_number(exponent) else None
        if root is not None:  # C's power has other results of -inf and -0
            return emitter.emit(root(emitter.cast(base, dtype)))
        return emitter.emit(relax.op.power(emitter.operand(base, dtype), emitter.operand(exponent, dtype)))
    if isinstance(base, int) and base == 2:
        return shifted(emitter, emitter.scalar(1, dtype), emitter.cast(exponent, dtype), left=True)
    if not isinstance(exponent, int) or exponent < 0:
        raise UnsupportedError(
            "a power of integers whose exponent is no number from 0 up; expected floating-point numbers, or "
            "the base 2"
        )
    base = emitter.cast(base, dtype)
    found = emitter.emit(relax.op.ones_like(base))
    for bit in f"{exponent:b}":
        found = emitter.emit(relax.op.multiply(found, found))
        if bit == "1":
            found = emitter.emit(relax.op.multiply(found, base))
    return found


def _is_number(value: Any) -> TypeGuard[int | float]:
    return isinstance(value, int | float)


def _number(value: float, tensor: relax.Expr) -> relax.Expr:
    return relax.const(value, dtype_of(tensor))


_FORMULAS: dict[str, Callable[[relax.Expr], relax.Expr]] = {
    "acosh": relax.op.acosh,
    "asinh": relax.op.asinh,
    "atanh": relax.op.atanh,
    "erfc": lambda x: relax.op.subtract(_number(1.0, x), relax.op.erf(x)),
    "exp2": lambda x: relax.op.power(_number(2.0, x), x),
    "expm1": lambda x: relax.op.subtract(relax.op.exp(x), _number(1.0, x)),
    "log10": lambda x: relax.op.multiply(relax.op.log(x), _number(1 / math.log(10), x)),
    "log1p": lambda x: relax.op.log(relax.op.add(x, _number(1.0, x))),
    "log2": lambda x: relax.op.multiply(relax.op.log(x), _number(1 / math.log(2), x)),
    "sinh": relax.op.sinh,
}


@converts(*(f"{name}.default" for name in _FORMULAS))
def _by_c(emitter: Emitter, node: Node) -> relax.Expr:
    name, dtype = node.operator.split(".")[1], node.result.dtype
    source = emitter.cast(node["self"], dtype)
    if emitter.trains:
        return emitter.emit(_FORMULAS[name](source))
    function = name if dtype == "float64" else f"{name}f"

    def kernel(tensor: te.Tensor) -> te.Tensor:
        return te.compute(tensor.shape, lambda *at: tirx.call_pure_extern(dtype, function, tensor(*at)), name)

    return emitter.builder.emit_te(kernel, source, primfunc_name_hint=name)
