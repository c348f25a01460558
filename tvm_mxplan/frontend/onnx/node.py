"""A node of an ONNX graph with its operands as values, and what a converter may ask of the import."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from tvm import relax, tirx

from ...errors import UnsupportedError
from ..constants import constant
from .dimensions.dims import Dim, compared, expression, product, same
from .dimensions.ratios import terms
from .dimensions.restate import Demand, met_aside, row_of
from .not_taken import NotTaken
from .values import Symbols, Value, as_symbols, dtype_of, is_float, rank_of, shape_of, value_of

if TYPE_CHECKING:
    import onnx

    from ..origins import OriginBuilder
    from .importer import Importer


@dataclass(frozen=True)
class Node:
    """One node.

    Attributes
    ----------
    inputs : operands; None for one left out, and nothing for those left out at the end.
    attributes : values by name, as ``onnx.helper.get_attribute_value`` gives them.
    outputs : names of the results; an empty one is not wanted.
    opset : version of the operator's domain.
    as_real : whether all that reads a result casts it to float32, so that it may be of that type as it is.
    """

    op_type: str
    domain: str
    name: str
    inputs: Sequence[Value]
    attributes: Mapping[str, Any]
    outputs: Sequence[str]
    opset: int
    proto: onnx.NodeProto = field(repr=False)
    as_real: bool = False

    def input(self, index: int) -> Value:
        """The operand at an index; None where it is left out."""
        return self.inputs[index] if index < len(self.inputs) else None

    def attribute(self, name: str, default: Any = None) -> Any:
        return self.attributes.get(name, default)

    def text(self, name: str, default: str = "") -> str:
        """An attribute that is a string."""
        value = self.attributes.get(name)
        return default if value is None else value.decode()

    def known(self, index: int) -> np.ndarray | None:
        """The operand where its value is known or left out (None).

        Raises
        ------
        NotTaken : an operand that is computed when the model runs.
        """
        value = self.input(index)
        if value is not None and not isinstance(value, np.ndarray):
            raise NotTaken
        return value

    def numbers(self, index: int) -> np.ndarray:
        """The operand where its value is known.

        Raises
        ------
        NotTaken : an operand that is computed when the model runs, or left out.
        """
        value = self.known(index)
        if value is None:
            raise NotTaken
        return value


__all__ = ["Emitter", "Node", "NotTaken"]


class Emitter:
    """Emits Relax for one node; converters get it together with the node."""

    def __init__(self, importer: Importer) -> None:
        self.importer = importer
        self.builder: OriginBuilder = importer.builder

    def emit(self, expr: relax.Expr) -> relax.Var:
        return self.builder.emit(expr)

    def tensor(self, value: Value) -> relax.Expr:
        """The value as a tensor of Relax."""
        if isinstance(value, np.ndarray):
            return constant(value)
        if not isinstance(value, Symbols):
            return value
        if is_float(value):
            return self._quotients(value)
        shape = relax.ShapeExpr([expression(dim) for dim in value.list()])
        tensor = self.emit(relax.op.shape_to_tensor(shape))
        if len(value.shape) != 1:
            tensor = self.emit(relax.op.reshape(tensor, value.shape))
        return tensor if value.dtype == "int64" else self.emit(relax.op.astype(tensor, value.dtype))

    def _quotients(self, value: Symbols) -> relax.Expr:
        """Quotients of dimensions as a tensor of floats."""
        over, under = zip(*map(terms, value.list()), strict=True) if value.elements.size else ((), ())
        above, below = (
            self.emit(relax.op.astype(self.tensor(value_of(row, value.shape)), value.dtype))
            for row in (over, under)
        )
        return self.emit(relax.op.divide(above, below))

    def dims(self, value: Value) -> list[Dim]:
        """The elements of an integer tensor of known length, new named dimensions where they are computed.

        Those are taken to be no less than 0, as dimensions are.

        Raises
        ------
        NotTaken : a tensor whose length is not known.
        """
        symbols = as_symbols(value)
        if symbols is not None:
            return symbols.list()
        value = self.tensor(value)
        shape = shape_of(value)
        if shape is None or len(shape) > 1 or not all(isinstance(dim, int) for dim in shape):
            raise NotTaken
        count = int(shape[0]) if shape else 1
        tensor = value if dtype_of(value) == "int64" else self.emit(relax.op.astype(value, "int64"))
        if not shape:
            tensor = self.emit(relax.op.reshape(tensor, [1]))
        names = self.importer.new_dimensions(count)
        known = self.emit(relax.op.tensor_to_shape(tensor))
        self.builder.match_cast(known, relax.ShapeType([expression(name) for name in names]))
        return names

    def shape(self, value: Value) -> list[Dim]:
        """The dimensions of a tensor, new named ones where Relax does not know them.

        Raises
        ------
        NotTaken : a tensor whose rank is not known.
        """
        known = shape_of(value)
        if known is not None:
            return known
        rank = rank_of(value)
        if rank is None:
            raise NotTaken
        return list(shape_of(self.with_shape(value, self.importer.new_dimensions(rank))) or [])

    def rank(self, value: Value) -> int:
        """The rank of a tensor.

        Raises
        ------
        UnsupportedError : a tensor whose rank is known only when the model runs.
        """
        rank = rank_of(value)
        if rank is None:
            raise UnsupportedError(
                f"{self._called()}: how many dimensions its operand has is known only when the model runs; "
                "state numbers for the open dimensions of the model's inputs (shapes)"
            )
        return rank

    def with_shape(self, value: Value, dims: Sequence[Dim]) -> relax.Var:
        """A tensor of unknown dimensions with these stated, which is checked when the model runs."""
        shape = [expression(dim) for dim in dims]
        return self.builder.match_cast(self.tensor(value), relax.TensorType(shape, dtype_of(value)))

    def reshaped(self, value: Value, dims: Sequence[Dim]) -> Value:
        """The value in another shape of as many elements, which the call checks where it is not certain."""
        self._check_count(value, dims)
        return self.viewed(value, dims)

    def viewed(self, value: Value, dims: Sequence[Dim]) -> Value:
        """The value in another shape, of which is known that it has as many elements."""
        if isinstance(value, np.ndarray) and all(isinstance(dim, int) for dim in dims):
            return value.reshape([int(dim) for dim in dims])
        if isinstance(value, Symbols) and all(isinstance(dim, int) for dim in dims):
            return value_of(value.list(), [int(dim) for dim in dims], value.dtype)
        shape = relax.ShapeExpr([expression(dim) for dim in dims])
        if _is_empty(dims) and _may_be_empty(value):  # to TVM's reshape 0 is the old extent
            return self.emit(relax.op.zeros(shape, dtype_of(value)))
        return self.emit(relax.op.reshape(self.tensor(value), shape))

    def _check_count(self, value: Value, dims: Sequence[Dim]) -> None:
        old = shape_of(value)
        if old is None or -1 in [dim for dim in dims if isinstance(dim, int)] or _only_ones_apart(old, dims):
            return
        have, want = product(old), product(dims)
        if same(have, want) or compared("==", have, want) is not None:  # TVM refuses what no call can be
            return
        words = f"{row_of(old)} has other than as many elements as {row_of(dims)}; mend the inputs' shapes"
        met_aside(self, Demand(tirx.EQ(expression(have), expression(want)), f"{self._called()}: {words}"))

    def _called(self) -> str:
        """The node that is being imported, as messages name it."""
        origin, importer = self.builder.origin, self.importer
        return importer.source.name if origin is None else importer.text_of(origin.name, origin.kind)


def _only_ones_apart(old: Sequence[Dim], new: Sequence[Dim]) -> bool:
    """Whether shapes differ by axes of one element only."""
    wide = [[dim for dim in dims if not (isinstance(dim, int) and dim == 1)] for dims in (old, new)]
    return len(wide[0]) == len(wide[1]) and all(map(same, *wide))


def _is_empty(dims: Sequence[Dim]) -> bool:
    return any(isinstance(dim, int) and dim == 0 for dim in dims)


def _may_be_empty(value: Value) -> bool:
    dims = shape_of(value)
    return dims is None or _is_empty(dims) or not all(isinstance(dim, int) for dim in dims)
