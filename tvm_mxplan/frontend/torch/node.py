"""A node of PyTorch's graph with its operands as values, and what a converter may emit for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import tvm
from tvm import relax

from ..onnx.dimensions.dims import Dim, expression, same
from ..origins import OriginBuilder


@dataclass(frozen=True)
class Stated:
    """A tensor as PyTorch states it."""

    shape: tuple[Dim, ...]
    dtype: str

    def __str__(self) -> str:
        return f"{self.dtype}[{', '.join(map(str, self.shape))}]"


@dataclass(frozen=True)
class Node:
    """One operator's call.

    Attributes
    ----------
    operator : the operator's name in PyTorch, as ``aten.cumsum.default``.
    operands : by the names in the operator's schema, those left out with their defaults. Tensors are
        expressions of Relax, sizes are numbers or expressions of TVM.
    stated : the results, as PyTorch says what they are.
    complex : the names of operands that are complex, real and imaginary parts along a last axis.
    is_cast_back : the result is cast to another type again, with nothing but moves between.
    sole : the names of operands that nothing else reads.
    """

    operator: str
    operands: Mapping[str, Any]
    stated: Sequence[Stated | None]
    complex: frozenset[str] = frozenset()
    is_cast_back: bool = False
    sole: frozenset[str] = frozenset()

    def __getitem__(self, name: str) -> Any:
        return self.operands[name]

    @property
    def result(self) -> Stated:
        """The only result."""
        (stated,) = self.stated
        assert stated is not None
        return stated


class Emitter:
    """Emits Relax for a node; converters get it together with the node.

    Attributes
    ----------
    trains : the graph is trained.
    made : what several nodes share, by a key of its converter's.
    """

    def __init__(self, builder: OriginBuilder, *, trains: bool = False) -> None:
        self.builder = builder
        self.trains = trains
        self.made: dict[Any, Any] = {}

    def emit(self, expr: relax.Expr) -> relax.Var:
        return self.builder.emit(expr)

    def cast(self, tensor: relax.Expr, dtype: str) -> relax.Expr:
        """The tensor with elements of another type."""
        return tensor if dtype_of(tensor) == dtype else self.emit(relax.op.astype(tensor, dtype))

    def dropped(self, tensor: relax.Expr, rate: float) -> relax.Expr:
        """The tensor of which a share of the elements is dropped when it is trained."""
        return self.emit(relax.TupleGetItem(self.emit(relax.op.nn.dropout(tensor, rate)), 0))

    def scalar(self, value: Any, dtype: str) -> relax.Expr:
        """A number, or an expression over sizes, as a tensor without axes."""
        if isinstance(value, int) and not isinstance(value, bool) and "int" in dtype:
            return relax.const(np.array(value, "int64").astype(dtype), dtype)  # wraps, as in PyTorch
        if isinstance(value, bool | int | float):
            return relax.const(value, dtype)
        tensor = self.emit(relax.op.shape_to_tensor(relax.ShapeExpr([expression(value)])))
        return self.cast(self.emit(relax.op.reshape(tensor, [])), dtype)

    def operand(self, value: Any, dtype: str) -> relax.Expr:
        """A tensor, or a number as one, of an element type."""
        return self.cast(value, dtype) if is_tensor(value) else self.scalar(value, dtype)

    def reshaped(self, tensor: relax.Expr, dims: Sequence[Dim]) -> relax.Expr:
        """The tensor in another shape of as many elements."""
        shape = dims_of(tensor)
        if len(shape) == len(dims) and all(map(same, shape, dims)):
            return tensor
        return self.emit(relax.op.reshape(tensor, relax.ShapeExpr([expression(dim) for dim in dims])))

    def broadcast(self, tensor: relax.Expr, dims: Sequence[Dim]) -> relax.Expr:
        """The tensor repeated along axes of extent 1 and new axes in front."""
        shape = dims_of(tensor)
        if len(shape) == len(dims) and all(map(same, shape, dims)):
            return tensor
        return self.emit(relax.op.broadcast_to(tensor, relax.ShapeExpr([expression(dim) for dim in dims])))


def is_tensor(value: Any) -> bool:
    """Whether a value is a tensor of Relax."""
    return isinstance(value, relax.Expr) and isinstance(value.ty, relax.TensorType)


def has_tensors(value: Any) -> bool:
    """Whether a value is, or may hold, a tensor; sizes are none."""
    return isinstance(value, list) or isinstance(
        getattr(value, "ty", None), relax.TensorType | relax.TupleType
    )


def dtype_of(tensor: relax.Expr) -> str:
    """The element type of a tensor."""
    return str(tensor.ty.dtype.dtype)


def dims_of(tensor: relax.Expr) -> list[Dim]:
    """The dimensions of a tensor whose shape is known."""
    return [int(dim.value) if isinstance(dim, tvm.tirx.IntImm) else dim for dim in tensor.ty.shape.values]


def axes_of(node: Node) -> Any:
    """The axes that a reduction runs over; None for all, as those of a tensor without axes are."""
    stated = node.operands.get("dim")
    return None if stated == [] or not dims_of(node["self"]) else stated
