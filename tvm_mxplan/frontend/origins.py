"""``OriginBuilder``: a block builder that notes on each call what in the model it comes from.

    builder = OriginBuilder()
    with builder.importing(Origin("/layer1/conv", "Conv")):
        builder.emit(...)

TVM flattens nested calls and drops their spans, so they are emitted one by one here.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import tvm
from tvm import relax, tirx

from ..core.decisions.origin import Origin
from ..passes.origins import origins_of, with_origins


class OriginBuilder(relax.BlockBuilder):
    """Emits calls with the origin that is being imported.

    Attributes
    ----------
    root : the builder whose module holds the kernels that this one makes.
    """

    def __init__(self, mod: tvm.IRModule | None = None, root: OriginBuilder | None = None) -> None:
        super().__init__(mod)
        self.root = root or self
        self._importing: list[Origin] = []
        self._emitted: list[dict[int, tuple[relax.Expr, relax.Var]]] = []

    @contextmanager
    def importing(self, origin: Origin) -> Iterator[None]:
        """Gives ``origin`` to calls emitted inside; its name stands behind those of enclosing ones."""
        outer = self._importing[-1] if self._importing else None
        if outer is not None:
            # A call without a name of its own goes by the part of the model that it stands in.
            name = f"{outer.name}/{origin.name}" if origin.name else outer.name
            origin = Origin(name, origin.kind if origin.name else outer.kind)
        self._importing.append(origin)
        self._emitted.append({})
        try:
            yield
        finally:
            self._importing.pop()
            self._emitted.pop()

    @property
    def origin(self) -> Origin | None:
        """The origin of calls that are emitted now; None outside of all."""
        return self._importing[-1] if self._importing else None

    def another(self, to_be_kept: bool) -> OriginBuilder:
        """A builder of another function of the model; what it makes has the same origin.

        Parameters
        ----------
        to_be_kept : whether kernels that the function calls go into this builder's module.
        """
        builder = OriginBuilder(root=self.root if to_be_kept else None)
        builder._importing, builder._emitted = list(self._importing), [{} for _ in self._importing]
        return builder

    def _exit_function_scope(self, exc_type: Any, exc_val: Any, exc_tb: Any) -> None:
        """Leaves a function; the block that an error has left open is ended, or TVM prints a warning."""
        is_open = not self._func._is_emit_func_output_called
        super()._exit_function_scope(exc_type, exc_val, exc_tb)
        if exc_type is not None and is_open:
            self._end_block()
            self.end_scope()

    def add_func(self, func: tvm.ir.BaseFunc, func_name: str) -> tvm.ir.GlobalVar:
        if self.root is not self and isinstance(func, tirx.PrimFunc):
            return self.root.add_func(func, func_name)
        return super().add_func(func, func_name)

    def emit(self, expr: relax.Expr, name_hint: str = "") -> relax.Var:
        return super().emit(self._labelled(self._normalize_python_tuple(expr)), name_hint)

    def emit_output(self, output: relax.Expr, name_hint: str = "") -> relax.Var:
        return super().emit_output(self._labelled(self._normalize_python_tuple(output)), name_hint)

    def match_cast(self, value: relax.Expr, ty: tvm.ir.Type, name_hint: str = "") -> relax.Var:
        return super().match_cast(self._labelled(value), ty, name_hint)

    def normalize(self, expr: relax.Expr) -> relax.Expr:
        return super().normalize(self._labelled(expr))

    def _labelled(self, expr: relax.Expr) -> relax.Expr:
        """The expression with its origin, nested calls emitted before it."""
        if not self._importing:
            return expr
        if isinstance(expr, relax.Tuple):
            stated = list(expr.fields)
            fields = [self._operand(field) for field in stated]
            return expr if _same(fields, stated) else relax.Tuple(fields)
        if isinstance(expr, relax.TupleGetItem):
            source = self._operand(expr.tuple_value)
            return expr if source.same_as(expr.tuple_value) else relax.TupleGetItem(source, expr.index)
        if not _is_call(expr):
            return expr
        given = list(expr.args)
        args = [self._operand(arg) for arg in given]
        if not _same(args, given):
            expr = relax.Call(expr.op, args, expr.attrs, expr.ty_args, expr.span)
        return expr if origins_of(expr) else with_origins(expr, (self._importing[-1],))

    def _operand(self, expr: relax.Expr) -> relax.Expr:
        """The operand, a variable where it is a call: one, however many expressions have the call inside."""
        if not _is_call(expr) or expr.op.name == _NONE:
            return self._labelled(expr)
        emitted = self._emitted[-1]
        if expr.__chandle__() not in emitted:
            emitted[expr.__chandle__()] = expr, super().emit(self._labelled(expr))
        return emitted[expr.__chandle__()][1]


_NONE = "relax.null_value"
"""Stands for an operand that is not there, which operators look for where they stand."""


def _is_call(expr: relax.Expr) -> bool:
    """True for calls of Relax's operators; TIR writes arithmetic on dimensions as calls too."""
    return (
        isinstance(expr, relax.Call) and isinstance(expr.op, tvm.ir.Op) and expr.op.name.startswith("relax.")
    )


def _same(new: list[relax.Expr], old: list[relax.Expr]) -> bool:
    return all(one.same_as(other) for one, other in zip(new, old, strict=True))
