"""Describes how a Relax function uses tensors between regions, as plain data for ``border_choice``.

Elementwise operators and calls to regions become the graph; whatever else reads a tensor pins it plain:
other operators, branches, the function's results.  Only calls at the top of a function are looked at.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import tvm
from tvm import relax, tirx

from tvm_mxplan.core.layout.layout import parse_layout
from tvm_mxplan.core.program.dims import Shape, is_static
from tvm_mxplan.core.program.specialize import typical_shape
from tvm_mxplan.errors import InternalError

from ..relax_types import dtype_of, is_constant, shape_of
from .border_choice import BorderGraph, BorderOperator, BorderTensor, Give, Take
from .border_programs import Borders
from .elementwise import OPERATORS, Number, tail_of

CHANNELS = 1
"""The only dimension that layouts of the borders may block."""


@dataclass
class RegionCall:
    """A call to a region: numbers among the graph's takes and gives, by input and result.

    Attributes
    ----------
    whole : something reads the tuple of results as one.
    """

    gvar: tvm.ir.GlobalVar
    takes: list[int]
    gives: list[int]
    whole: bool = False


@dataclass
class FunctionBorders:
    """The graph of one function, and which of its bindings is what.

    Attributes
    ----------
    numbers : tensors by their variable.
    operators, calls : by the variable that they are bound to.
    """

    graph: BorderGraph
    numbers: dict[tvm.ir.Var, int]
    operators: dict[tvm.ir.Var, int]
    calls: dict[tvm.ir.Var, RegionCall]


def analyse(function: relax.Function, borders: Mapping[tvm.ir.GlobalVar, Borders]) -> FunctionBorders:
    """The graph of ``function``; ``borders`` are those of the regions that it may cross into."""
    reader = _Reader(borders)
    for param in function.params:
        reader.tensor(param)
    for block in function.body.blocks:
        for binding in block.bindings:
            reader.binding(binding)
    reader.pin(function.body.body)
    return reader.result()


@dataclass
class _Reader:
    borders: Mapping[tvm.ir.GlobalVar, Borders]
    tensors: list[BorderTensor] = field(default_factory=list)
    shapes: list[Shape] = field(default_factory=list)
    numbers: dict[tvm.ir.Var, int] = field(default_factory=dict)
    operators: list[BorderOperator] = field(default_factory=list)
    operator_of: dict[tvm.ir.Var, int] = field(default_factory=dict)
    takes: list[Take] = field(default_factory=list)
    gives: list[Give] = field(default_factory=list)
    calls: dict[tvm.ir.Var, RegionCall] = field(default_factory=dict)
    pinned: set[int] = field(default_factory=set)

    def result(self) -> FunctionBorders:
        graph = BorderGraph(
            tuple(self.tensors),
            tuple(self.operators),
            tuple(self.takes),
            tuple(self.gives),
            frozenset(self.pinned),
        )
        return FunctionBorders(graph, self.numbers, self.operator_of, self.calls)

    def tensor(self, var: relax.Expr, tail: Number | None = None) -> int | None:
        """The number of a new tensor; None for what is none, or of no known shape or type."""
        shape, dtype = shape_of(var), dtype_of(var)
        if shape is None or not dtype:
            return None
        self.numbers[var] = len(self.tensors)
        self.tensors.append(BorderTensor(typical_shape(shape), dtype, tail))
        self.shapes.append(shape)
        return self.numbers[var]

    def binding(self, binding: relax.Binding) -> None:
        var, value = binding.var, getattr(binding, "value", None)
        if (
            isinstance(value, relax.Call)
            and isinstance(value.op, tvm.ir.GlobalVar)
            and value.op in self.borders
        ):
            self._call(var, value)
        elif isinstance(value, relax.TupleGetItem) and value.tuple_value in self.calls:
            call = self.calls[value.tuple_value]
            self.numbers[var] = self._result(call, int(value.index))
        elif not self._operator(var, value):
            self.pin(binding)
            self.tensor(var)

    def _result(self, call: RegionCall, index: int) -> int:
        return self.gives[call.gives[index]].value

    def pin(self, what: relax.Binding | relax.Expr) -> None:
        """Everything that ``what`` reads has to be plain."""
        for var in _variables(what):
            if var in self.numbers:
                self.pinned.add(self.numbers[var])
            elif var in self.calls:
                call = self.calls[var]
                call.whole = True
                self.pinned |= {self._result(call, index) for index in range(len(call.gives))}

    def _call(self, var: tvm.ir.Var, call: relax.Call) -> None:
        borders = self.borders[call.op]
        record = RegionCall(call.op, [], [])
        tensors = [arg for arg in call.args if isinstance(arg.ty, relax.TensorType)]
        for arg, layouts in zip(tensors, borders.takes, strict=True):
            record.takes.append(len(self.takes))
            self.takes.append(self._take(arg, layouts))
        several = isinstance(var.ty, relax.TupleType)
        results = [relax.Var("result", field) for field in var.ty.fields] if several else [var]
        for result, layout in zip(results, borders.gives, strict=True):
            number = self._number(result, np.float32(0))
            record.gives.append(len(self.gives))
            self.gives.append(Give(number, layout if self._usable(number, layout) else self._plain(number)))
        self.calls[var] = record

    def _take(self, arg: relax.Expr, layouts: tuple[str, ...]) -> Take:
        number = self._number(arg)
        usable = {layout if self._usable(number, layout) else self._plain(number) for layout in layouts}
        return Take(number, tuple(sorted(usable)))

    def _number(self, expr: relax.Expr, tail: Number | None = None) -> int:
        number = self.numbers.get(expr)
        number = self.tensor(expr, tail) if number is None else number
        if number is None:
            raise InternalError(f"a region takes or gives {expr} of type {expr.ty}")
        return number

    def _plain(self, number: int) -> str:
        return self.tensors[number].plain

    def _usable(self, number: int, layout: str) -> bool:
        """True if ``layout`` blocks nothing but channels, and these are known."""
        shape = self.shapes[number]
        return all(dim == CHANNELS and is_static((shape[dim],)) for _, dim in parse_layout(layout).blocks)

    def _operator(self, var: tvm.ir.Var, value: object) -> bool:
        """Note an elementwise operator; False if ``value`` is none that can run on physical buffers."""
        if not isinstance(value, relax.Call) or not isinstance(value.op, tvm.ir.Op):
            return False
        name, shape = value.op.name.removeprefix("relax."), shape_of(var)
        if name not in OPERATORS or shape is None:
            return False
        operands: list[int] = []
        tails: list[Number | None] = []
        for arg in value.args:
            number = self.numbers.get(arg)
            if number is not None and self.shapes[number] == shape:
                operands.append(number)
                tails.append(self.tensors[number].tail)
            elif isinstance(arg, tirx.IntImm | tirx.FloatImm):
                tails.append(np.asarray(arg.value).flat[0])
            elif is_constant(arg) and _broadcasts(arg, shape):
                tails.append(_constant_tail(arg, len(shape)))
            else:
                return False
        result = self.tensor(var, tail_of(name, tails, dtype_of(var))) if operands else None
        if result is None:
            return False
        self.operator_of[var] = len(self.operators)
        self.operators.append(BorderOperator(tuple(operands), result))
        return True


def _broadcasts(constant: tvm.ir.GenericConst, shape: tuple[object, ...]) -> bool:
    extents = tuple(int(extent) for extent in constant.value.shape)
    fits = all(a in (1, b) for a, b in zip(reversed(extents), reversed(shape), strict=False))
    return len(extents) <= len(shape) and fits


def _constant_tail(constant: tvm.ir.GenericConst, rank: int) -> Number | None:
    """Returns the number that a constant holds where the channels of a tensor of ``rank`` are padded."""
    array = constant.value.numpy()
    if array.size == 1:
        return array.flat[0]
    per_channel = array.ndim >= rank - CHANNELS and array.shape[CHANNELS - rank] > 1
    return np.zeros(1, array.dtype)[0] if per_channel else None


def _variables(what: relax.Binding | relax.Expr) -> list[tvm.ir.Var]:
    found: list[tvm.ir.Var] = []
    expr = what if isinstance(what, tvm.ir.Expr) else what.value
    relax.analysis.post_order_visit(
        expr, lambda node: found.append(node) if isinstance(node, tvm.ir.Var) else None
    )
    return found
