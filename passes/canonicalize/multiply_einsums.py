"""``MultiplyEinsums``: sums over products of several tensors as products of matrices, which libraries run.

Before   y = R.einsum((a, b), "ijkl,bil->bijk")
After    p = R.matmul(R.reshape(a, (i, j * k, l)), R.permute_dims(b, (1, 2, 0)))
         y = R.permute_dims(R.reshape(p, (i, j, k, b)), (3, 0, 1, 2))

Axes that one operand alone has, and nobody reads, are summed over first.  What has no sum over axes of both
is a product of elements.  Three operands and more are multiplied two by two.  Diagonals, axes of extent 1
that are broadcast, and other types than float32 and float64 stay as they are.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Iterable
from dataclasses import dataclass

import tvm
import tvm_ffi
from tvm import relax

from tvm_mxplan.core.einsum import Equation, Label, Labels, Pair, next_pair, pair_of, parse

from ..relax_types import dtype_of, is_constant, shape_of
from .rewriter import Site, is_call_to, rewrite_bindings

_TYPES = ("float32", "float64")
_MOST_BATCH = 3
"""Axes of a batch that products of matrices are given; more become one."""


@tvm.transform.module_pass(opt_level=0, name="MultiplyEinsums")
class MultiplyEinsums:
    """Module pass; see the module's text."""

    def transform_module(self, mod: tvm.IRModule, _ctx: tvm.transform.PassContext) -> tvm.IRModule:
        return rewrite_bindings(mod, _rule)


def _rule(site: Site, value: relax.Expr) -> relax.Expr | None:
    if not is_call_to(value, "einsum"):
        return None
    fields = site.definition(value.args[0])
    if not isinstance(fields, relax.Tuple) or dtype_of(value) not in _TYPES:
        return None
    shapes = [shape_of(field) for field in fields.fields]
    dtypes = {dtype_of(one) for one in (*fields.fields, value)}
    if any(shape is None for shape in shapes) or len(dtypes) > 1:
        return None
    equation = parse(str(value.attrs.subscripts), shapes)  # type: ignore[arg-type]
    return None if equation is None else _Sums(site, equation, list(fields.fields)).result()


@dataclass(frozen=True)
class _Term:
    """A tensor and the labels of its axes."""

    value: relax.Expr
    labels: Labels


class _Sums:
    """One equation on its way into products."""

    def __init__(self, site: Site, equation: Equation, operands: list[relax.Expr]) -> None:
        self._site, self._equation = site, equation
        self._terms = [_Term(*pair) for pair in zip(operands, equation.operands, strict=True)]
        self._dims: dict[Label, tvm.ir.Expr] = {}
        for term in self._terms:
            self._dims.update(zip(term.labels, term.value.ty.shape.values, strict=True))

    def result(self) -> relax.Expr:
        """The equation's result, bound to a variable where anything was emitted."""
        while len(self._terms) > 1:
            labels = [term.labels for term in self._terms]
            first, second = next_pair(labels, self._equation.result, self._equation.extents)
            right, left = self._terms.pop(second), self._terms.pop(first)
            kept = {label for term in self._terms for label in term.labels} | set(self._equation.result)
            left = self._reduced(left, kept | set(right.labels))
            right = self._reduced(right, kept | set(left.labels))
            self._terms.append(self._product(left, right, kept))
        (term,) = self._terms
        return self._ordered(self._reduced(term, set(self._equation.result)), self._equation.result).value

    def _reduced(self, term: _Term, kept: set[Label]) -> _Term:
        """The term without the axes that nobody reads."""
        axes = [axis for axis, label in enumerate(term.labels) if label not in kept]
        if not axes:
            return term
        labels = tuple(label for label in term.labels if label in kept)
        return _Term(self._site.emit(relax.op.sum(term.value, axes)), labels)

    def _ordered(self, term: _Term, labels: Labels) -> _Term:
        if term.labels == labels:
            return term
        axes = [term.labels.index(label) for label in labels]
        return _Term(self._site.emit(relax.op.permute_dims(term.value, axes)), labels)

    def _shaped(self, value: relax.Expr, groups: Iterable[Labels]) -> relax.Expr:
        """The value with an axis for each group of labels that stand side by side; of extent 1 for none."""
        shape = [self._extent(group) for group in groups]
        if len(shape) == value.ty.ndim and all(
            tvm_ffi.structural_equal(one, other)
            for one, other in zip(shape, value.ty.shape.values, strict=True)
        ):
            return value
        return self._site.emit(relax.op.reshape(value, shape))

    def _extent(self, labels: Labels) -> tvm.ir.Expr:
        one = tvm.tirx.IntImm("int64", 1)
        return functools.reduce(operator.mul, (self._dims[label] for label in labels), one)

    def _product(self, left: _Term, right: _Term, kept: set[Label]) -> _Term:
        if is_constant(left.value) and not is_constant(right.value):
            left, right = right, left  # weights stand behind
        pair = pair_of(left.labels, right.labels, kept)
        left = self._ordered(left, (*pair.batch, *pair.rows, *pair.summed))
        if not pair.summed or not (pair.rows or pair.columns):
            return self._by_elements(left, right, pair)
        right = self._ordered(right, (*pair.batch, *pair.summed, *pair.columns))
        single = [(label,) for label in pair.batch]
        batch = single if len(single) <= _MOST_BATCH else [pair.batch]
        rows = self._shaped(left.value, [*batch, pair.rows, pair.summed])
        columns = self._shaped(right.value, [*batch, pair.summed, pair.columns])
        found = self._site.emit(relax.op.matmul(rows, columns))
        return _Term(self._shaped(found, [(label,) for label in pair.result]), pair.result)

    def _by_elements(self, left: _Term, right: _Term, pair: Pair) -> _Term:
        """Products of elements, summed over what both have alone."""
        right = self._ordered(right, (*pair.batch, *pair.columns, *pair.summed))
        every = (*pair.result, *pair.summed)
        values = [
            self._shaped(term.value, [(label,) if label in term.labels else () for label in every])
            for term in (left, right)
        ]
        found = _Term(self._site.emit(relax.op.multiply(*values)), every)
        return self._reduced(found, set(pair.result))
