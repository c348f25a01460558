"""``Composite``: one match of a library's pattern, opened for translation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import tvm
from tvm import relax

from tvm_mxplan.core.program import program as ir
from tvm_mxplan.core.program.builder import ProgramBuilder
from tvm_mxplan.core.program.dims import Dim, Expr, Shape
from tvm_mxplan.passes.relax_types import constant_of, dtype_of, is_constant, scalar_of, shape_of


@dataclass(frozen=True)
class Composite:
    """One call of a composite, and the builder to translate it into."""

    builder: ProgramBuilder
    params: Mapping[tvm.ir.Var, int]
    definitions: Mapping[tvm.ir.Var, relax.Expr]
    result: relax.Expr

    def definition(self, expr: relax.Expr) -> relax.Expr:
        while isinstance(expr, tvm.ir.Var) and expr in self.definitions:
            expr = self.definitions[expr]
        return expr

    @property
    def root(self) -> relax.Call:
        return self.definition(self.result)

    @property
    def shape(self) -> Shape:
        return shape_of(self.result)  # type: ignore[return-value]

    def value(self, expr: relax.Expr) -> int:
        """Value id of a parameter or a constant of the composite."""
        expr = self.definition(expr)
        if is_constant(expr):
            return self.builder.constant(constant_of(expr))  # type: ignore[arg-type]
        return self.params[expr]

    def only_param(self) -> int:
        """The one tensor that a composite of several operators works on."""
        (value,) = set(self.params.values())
        return value

    def find(self, operator: str) -> relax.Call:
        """The composite's call to ``operator``."""
        for expr in self.definitions.values():
            if isinstance(expr, relax.Call) and expr.op.name == f"relax.{operator}":
                return expr
        raise KeyError(operator)

    def find_scalar(self, operator: str) -> float:
        """The constant number among the operands of the composite's call to ``operator``."""
        scalars = [scalar_of(arg) for arg in self.find(operator).args]
        return next(scalar for scalar in scalars if scalar is not None)

    def emit(self, stem: str, attrs: ir.Attributes, *operands: tuple[str, int]) -> int:
        """The value of a step that gives the composite's result."""
        return self.builder.step(stem, attrs, self.shape, operands, dtype_of(self.result))


def ints(array: object) -> tuple[int, ...]:
    return tuple(int(number) for number in array)  # type: ignore[attr-defined]


def product(dims: Shape) -> Dim:
    result: Dim = 1
    for dim in dims:
        if isinstance(result, int) and isinstance(dim, int):
            result = result * dim
        elif result == 1:
            result = dim
        else:
            result = Expr("*", result, dim)
    return result
