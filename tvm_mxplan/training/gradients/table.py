"""Gradients by operator, and ``ours``: TVM's pass ``Gradient`` uses them for a while.

@gradient_of("nn.relu")
def _relu(call: Backward) -> list[relax.Expr]:
    return [...]                    # one for each operand
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import tvm
from tvm import relax

from ...core.decisions.origin import Origins
from ...errors import UnsupportedError
from ...operators.registration import dtype_of, shape_of

ATTRIBUTE = "FPrimalGradient"


@dataclass(frozen=True)
class Backward:
    """A call whose operands want gradients.

    Attributes
    ----------
    result : the variable that holds what the call gave.
    grad : the gradient of the result.
    """

    result: relax.Var
    call: relax.Call
    grad: relax.Expr
    builder: relax.BlockBuilder

    @property
    def operands(self) -> list[relax.Expr]:
        return list(self.call.args)

    @property
    def dtype(self) -> str:
        return dtype_of(self.call.args[0])

    def shape(self, operand: int = 0) -> tuple[int, ...]:
        return shape_of(self.call.args[operand])

    def number(self, value: float) -> relax.Expr:
        """A constant of the first operand's type."""
        return relax.const(value, self.dtype)

    def emit(self, expr: relax.Expr) -> relax.Expr:
        return self.builder.emit(expr)

    def reshaped(self, value: relax.Expr, shape: Sequence[int]) -> relax.Expr:
        return relax.op.reshape(self.emit(value), shape)

    def collapsed(self, grad: relax.Expr, operand: int) -> relax.Expr:
        """The gradient summed along the axes along which an operand was repeated."""
        grad = self.builder.normalize(grad)
        wanted = self.shape(operand)
        if shape_of(grad) == wanted:
            return grad
        return relax.op.collapse_sum_to(grad, relax.ShapeExpr(wanted))

    def none(self, operand: int) -> relax.Expr:
        """Stands for the gradient of an operand that has none."""
        return relax.op.grad.no_grad(self.call.args[operand])


Gradient = Callable[[Backward], list[relax.Expr]]
TABLE: dict[str, Gradient] = {}


def gradient_of(*operators: str) -> Callable[[Gradient], Gradient]:
    """Adds a function to the table under the operators' names behind ``relax.``."""

    def put(function: Gradient) -> Gradient:
        for name in operators:
            TABLE[f"relax.{name}"] = function
        return function

    return put


def differentiable(operator: tvm.ir.Op) -> bool:
    """Whether an operator has a gradient, ours or TVM's."""
    return str(operator.name) in TABLE or operator.get_attr(ATTRIBUTE) is not None


_LOCK = threading.Lock()


@contextmanager
def ours(names: Mapping[str, Origins] | None = None) -> Iterator[None]:
    """Has TVM's pass use our gradients inside, and those that were there before again afterwards.

    Parameters
    ----------
    names : origins of calls by the names of their variables, for errors: the pass hands calls over without.
    """
    known = set(map(str, tvm.ir.Op.list_op_names()))
    with _LOCK:
        before = {}
        for name, function in TABLE.items():
            if name in known:
                operator = tvm.ir.Op.get(name)
                before[name] = operator.get_attr(ATTRIBUTE)
                operator.reset_attr(ATTRIBUTE)
                operator.set_attr(ATTRIBUTE, _as_tvm_calls(function, names or {}))
        try:
            yield
        finally:
            for name, function in before.items():
                operator = tvm.ir.Op.get(name)
                operator.reset_attr(ATTRIBUTE)
                if function is not None:
                    operator.set_attr(ATTRIBUTE, function)


def _as_tvm_calls(function: Gradient, names: Mapping[str, Origins]):  # type: ignore[no-untyped-def]
    def called(
        result: relax.Var, call: relax.Call, grad: relax.Var, builder: relax.BlockBuilder
    ) -> list[relax.Expr]:
        try:
            return function(Backward(result, call, grad, builder))
        except UnsupportedError as error:
            where = "".join(f" ({origin})" for origin in names.get(str(result.name), ())[:1])
            raise UnsupportedError(f"{call.op.name}{where}: {error}") from error

    return called
