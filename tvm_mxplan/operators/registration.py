"""Makes operators that TVM lacks known to it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import tvm
from tvm import relax

PREFIX = "relax.mxplan."


@dataclass(frozen=True)
class Operator:
    """An operator of Relax, of our own.

    Attributes
    ----------
    name : behind ``relax.mxplan.``.
    infer : the type of a call's result.
    legalize : the expression that TVM runs where no library takes a call.
    """

    name: str
    about: str
    infer: Callable[[relax.Call], tvm.ir.Type]
    legalize: Callable[[relax.BlockBuilder, relax.Call], relax.Expr]

    @property
    def full_name(self) -> str:
        return PREFIX + self.name

    def register(self) -> None:
        """Make the operator known to TVM; more than once does no harm."""
        name = self.full_name
        if name in _REGISTERED:
            return
        tvm.ir._ffi_api.RegisterOp(name, self.about)
        tvm.ir.register_op_attr(name, "FInferType", lambda call, _builder: self.infer(call))
        tvm.ir.register_op_attr(name, "FPurity", True)
        tvm.ir.register_op_attr(name, "FLegalize", self.legalize)
        _REGISTERED.add(name)

    def call(self, *operands: relax.Expr, **attributes: Any) -> relax.Call:
        """A call of the operator, which TVM knows from then on."""
        self.register()
        name = self.full_name
        attrs = tvm.ir.make_node("ir.DictAttrs", **attributes)
        return relax.Call(tvm.ir.Op.get(name), list(operands), attrs)

    def is_called(self, expr: relax.Expr) -> bool:
        """Whether an expression is a call of the operator."""
        called = isinstance(expr, relax.Call) and isinstance(expr.op, tvm.ir.Op)
        return called and str(expr.op.name) == self.full_name


_REGISTERED: set[str] = set()


def numbers(values: Any) -> tuple[int, ...]:
    """Whole numbers of an attribute or a shape."""
    return tuple(int(value) for value in values)


def shape_of(expr: relax.Expr) -> tuple[int, ...]:
    """The extents of a tensor, all of which are known."""
    return numbers(expr.ty.shape.values)


def dtype_of(expr: relax.Expr) -> str:
    return str(getattr(expr.ty.dtype, "dtype", expr.ty.dtype))


def same_type(expr: relax.Expr) -> relax.TensorType:
    """The type of a tensor like ``expr``."""
    return relax.TensorType(shape_of(expr), dtype_of(expr))
