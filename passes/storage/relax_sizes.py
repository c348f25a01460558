"""Computes the bytes that an allocation of Relax takes: a number, a number times an expression, or unknown.

    R.Tensor((3, 5), "float32")                                    60
    R.Tensor(("n", 5), "float32"), tir_var_upper_bound {"n": 8}    160, with a guard n <= 8
    R.Tensor(("n", 5), "float32")                                  20 * n
    R.Tensor((m,), "float32"), m bound inside the function         None

Only variables of the function's parameters count: an arena is allocated before anything else is known.
An upper bound is the caller's promise; the pass turns it into a check at run time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import tvm
import tvm_ffi
from tvm import relax, sym, tirx

from tvm_mxplan.core.element_types import item_bytes

UPPER_BOUND = "tir_var_upper_bound"
_LARGEST = 2**48


@dataclass(frozen=True)
class Size:
    """``nbytes`` bytes, times ``unit`` where that is an expression.

    Attributes
    ----------
    nbytes : bytes, or the factor of ``unit``.
    unit : an expression over variables of the parameters; None for a plain number.
    bounded : variables with the upper bounds that ``nbytes`` relies on.
    """

    nbytes: int
    unit: tvm.ir.Expr | None = None
    bounded: tuple[tuple[tirx.Var, int], ...] = ()


@dataclass
class Bounds:
    """Known bounds of the symbolic variables of one function.

    Attributes
    ----------
    variables : those in the types of its parameters.
    upper : inclusive upper bounds of some of them.
    """

    variables: list[tirx.Var]
    upper: dict[tirx.Var, int] = field(default_factory=dict)

    @classmethod
    def of(cls, function: relax.Function) -> Bounds:
        variables: list[tirx.Var] = []
        for param in function.params:
            for var in _free_variables(param.ty):
                if not any(var.same_as(other) for other in variables):
                    variables.append(var)
        given = function.attrs.get(UPPER_BOUND) if function.attrs else None
        named = {str(name): int(value) for name, value in (given or {}).items()}
        return cls(variables, {var: named[var.name] for var in variables if var.name in named})

    def size_of(self, shape: Sequence[tvm.ir.Expr], dtype: str) -> Size | None:
        """Bytes of a tensor; None if they can't be known at the function's entry.

        An element takes whole bytes, so that packed types are never underestimated.
        """
        nbytes = item_bytes(dtype)
        symbolic = []
        for dim in shape:
            if isinstance(dim, tirx.IntImm):
                nbytes *= int(dim.value)
            else:
                symbolic.append(dim)
        if not symbolic:
            return _checked(Size(nbytes))
        used = [var for dim in symbolic for var in _free_variables(dim)]
        if not all(any(var.same_as(known) for known in self.variables) for var in used):
            return None
        return _checked(self._bounded(nbytes, symbolic, used) or _factored(nbytes, symbolic))

    def _bounded(self, nbytes: int, symbolic: Sequence[tvm.ir.Expr], used: Sequence[tirx.Var]) -> Size | None:
        if not all(var in self.upper for var in used):
            return None
        analyzer = sym.Analyzer()
        for var in set(used):
            analyzer.bind(var, tvm.ir.Range(0, self.upper[var] + 1))
        for dim in symbolic:
            nbytes *= max(0, int(analyzer.const_int_bound(dim).max_value))
        return Size(nbytes, None, tuple((var, self.upper[var]) for var in dict.fromkeys(used)))


def _factored(nbytes: int, symbolic: Sequence[tvm.ir.Expr]) -> Size:
    """``nbytes`` times the product of the symbolic dimensions, numbers pulled to the front."""
    product = symbolic[0]
    for dim in symbolic[1:]:
        product = product * dim
    product = sym.Analyzer().simplify(product)
    while isinstance(product, tirx.Mul) and isinstance(product.b, tirx.IntImm):
        nbytes *= int(product.b.value)
        product = product.a
    return Size(nbytes, product)


def _checked(size: Size) -> Size | None:
    """The size unless it is beyond what any machine has, which is how unknown bounds show."""
    return size if 0 <= size.nbytes < _LARGEST else None


def _free_variables(value: tvm.ir.Type | tvm.ir.Expr) -> list[tirx.Var]:
    found: list[tirx.Var] = []

    def visit(var: tvm.ir.Var) -> None:
        if not any(var.same_as(other) for other in found):
            found.append(var)

    tvm_ffi.structural_walk(value, (tvm.ir.Var, visit))
    return found
