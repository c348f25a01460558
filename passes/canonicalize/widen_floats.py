"""``WidenFloats``: numbers of 16 bits are computed with in float32.

Before   y = R.matmul(x, w);  z = R.nn.relu(y)                                       all of float16
After    a = R.matmul(R.astype(x, "float32"), w);  z = R.astype(R.nn.relu(a), "float16")

TVM's kernels for these types add up in them, and libraries for CPUs take few.  A result keeps the digits of
float32 until the model needs its type: where it is returned, enters a branch, a kernel or another function,
is compared, or decides a whole number.  A cast rounds where its operand is of float32 by the model; one that
follows from numbers of 16 bits goes on with its digits, as other results do.

What selects or moves elements as they were given stays in 16 bits.  Operators that the model states in such a
type say so in their origins, by which ``AssignPrecision`` goes.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Sequence
from typing import Any

import tvm
from tvm import relax

from ..origins import origins_of, with_origins
from ..relax_types import constant_of, dtype_of, is_arithmetic, is_constant, make_constant
from .narrow_operators import (
    DECIDING,
    MOVING,
    NARROW,
    SELECTING,
    WIDE,
    is_aside,
    stated_in,
    widened_attributes,
)


@tvm.transform.module_pass(opt_level=0, name="WidenFloats")
class WidenFloats:
    """Module pass; see the module's text."""

    def transform_module(self, mod: tvm.IRModule, _ctx: tvm.transform.PassContext) -> tvm.IRModule:
        narrow = [
            (gvar, function)
            for gvar, function in mod.functions.items()
            if isinstance(function, relax.Function) and _has_narrow(function)
        ]
        if not narrow:
            return mod
        mod = mod.clone()
        for gvar, function in narrow:
            mod.update_func(gvar, _Widener(mod).visit_expr(function))
        return relax.transform.CanonicalizeBindings()(relax.transform.DeadCodeElimination()(mod))


def _has_narrow(function: relax.Function) -> bool:
    found: list[relax.Expr] = []

    def visit(expr: relax.Expr) -> None:
        if not found and any(dtype in NARROW for dtype in _types(getattr(expr, "ty", None))):
            found.append(expr)

    relax.analysis.post_order_visit(function, visit)
    return bool(found)


def _types(kind: Any) -> list[str]:
    """Element types of a tensor, or of the tensors in a tuple."""
    if isinstance(kind, relax.TensorType):
        return ["" if kind.dtype is None else str(kind.dtype)]
    if isinstance(kind, relax.TupleType):
        return [dtype for field in kind.fields for dtype in _types(field)]
    return []


@relax.expr_functor.mutator
class _Widener(relax.PyExprMutator):
    """Rewrites one function.

    Attributes
    ----------
    wide : what variables of 16 bits are in float32, as far as one may see it.
    exceeding : variables of 16 bits whose counterpart in float32 has more digits than they.
    derived : variables of more bits that follow from numbers of 16 bits.
    """

    def __init__(self, mod: tvm.IRModule) -> None:
        super().__init__(mod)
        self.wide: ChainMap[tvm.ir.Var, relax.Expr] = ChainMap()
        self.exceeding: set[tvm.ir.Var] = set()
        self.derived: set[tvm.ir.Var] = set()
        self._values: dict[tvm.ir.Var, relax.Expr] = {}
        self._constants: dict[int, tuple[relax.Expr, relax.Expr]] = {}
        self._origins: tuple[Any, ...] = ()

    # --- the walk ---------------------------------------------------------------------------------------

    def visit_seq_expr_(self, seq: relax.SeqExpr) -> relax.Expr:
        self.wide = self.wide.new_child()
        seq = super().visit_seq_expr_(seq)
        self.wide = self.wide.parents
        return seq

    def visit_var_(self, var: tvm.ir.Var) -> relax.Expr:
        return self._values.get(var, var)

    def visit_dataflow_var_(self, var: relax.DataflowVar) -> relax.Expr:
        return self._values.get(var, var)

    def visit_call_(self, call: relax.Call) -> relax.Expr:
        return call if is_arithmetic(call) else self.visit_expr_post_order(call)

    def visit_var_binding_(self, binding: relax.VarBinding) -> None:
        if isinstance(binding.value, relax.Function | relax.If | relax.SeqExpr):
            super().visit_var_binding_(binding)
            return
        self._origins = origins_of(binding.value)
        value = self.visit_expr(binding.value)
        if isinstance(value, relax.Call) and isinstance(value.op, tvm.ir.Op):
            value = self._call(value)
        elif isinstance(value, relax.TupleGetItem):
            value = self._field(value)
        self._values[binding.var] = self._bound(binding.var, value)

    def visit_match_cast_(self, binding: relax.MatchCast) -> None:
        """States the shape of what stands for a result in float32."""
        value = self.visit_expr(binding.value)
        if not isinstance(value, tvm.ir.Var) or value not in self.exceeding:
            super().visit_match_cast_(binding)
            return
        kind = binding.ty
        stated = (
            relax.TensorType(dtype=WIDE, ndim=kind.ndim)
            if kind.shape is None
            else relax.TensorType(kind.shape, WIDE)
        )
        matched = self.builder_.match_cast(self.wide[value], stated)
        self._values[binding.var] = self._bound(binding.var, self._narrowed(matched, dtype_of(value)))

    def _bound(self, var: tvm.ir.Var, value: relax.Expr) -> relax.Expr:
        """The stand-in of a variable of the old function; a new variable, where it has to keep its name."""
        if isinstance(value, tvm.ir.GenericConst):
            return value if isinstance(var, relax.DataflowVar) else self._emitted(var, value)
        if isinstance(value, tvm.ir.Var) and isinstance(var, relax.DataflowVar):
            return value
        new = self._emitted(var, value)
        if isinstance(value, tvm.ir.Var):
            if value in self.wide:
                self.wide[new] = self.wide[value]
            for group in (self.exceeding, self.derived):
                if value in group:
                    group.add(new)
        elif any(self._is_derived(part) for part in _read(value)):
            self.derived.add(new)
        return new

    def _emitted(self, var: tvm.ir.Var, value: relax.Expr) -> relax.Expr:
        if not isinstance(var, relax.DataflowVar) and self.builder_.current_block_is_dataflow():
            return self.builder_.emit_output(value, var.name)
        return self.builder_.emit(value, name_hint=var.name)

    def _is_derived(self, expr: relax.Expr) -> bool:
        return expr in self.derived or any(dtype in NARROW for dtype in _types(expr.ty))

    # --- operators --------------------------------------------------------------------------------------

    def _call(self, call: relax.Call) -> relax.Expr:
        """The value in place of an operator's call; a new variable knows its counterpart in float32."""
        if call.op.name == "relax.astype":
            return self._astype(call)
        read = [part for part in _read(call) if dtype_of(part) in NARROW]
        made = [dtype for dtype in _types(call.ty) if dtype in NARROW]
        if not read or is_aside(call):
            return call
        if self._stays(call, read):
            return call
        self._origins = stated_in(self._origins, (made or [dtype_of(part) for part in read])[0])
        wide = self._in_float(call)
        if wide is None:
            return call
        result = self.builder_.emit(wide)
        self.derived.add(result)
        return self._results(result, call.ty) if made else result

    def _stays(self, call: relax.Call, read: Sequence[relax.Expr]) -> bool:
        """Whether a call moves numbers that have no more digits than their type."""
        if call.op.name not in MOVING or any(part in self.exceeding for part in read):
            return False
        return call.op.name in SELECTING or not any(map(is_constant, read))

    def _in_float(self, call: relax.Call) -> relax.Expr | None:
        """The call with operands and attributes of float32; None where Relax has no such call."""
        rounds = call.op.name in DECIDING
        args = [self._operand(arg, rounds) for arg in call.args]
        attrs = widened_attributes(call.attrs)
        wide = relax.Call(call.op, args, attrs, call.ty_args)
        try:
            wide = self.builder_.normalize(with_origins(wide, self._origins))
        except (tvm.error.TVMError, TypeError, ValueError):
            return None
        expected = [WIDE if dtype in NARROW else dtype for dtype in _types(call.ty)]
        return wide if _types(wide.ty) == expected else None

    def _operand(self, arg: relax.Expr, rounds: bool) -> relax.Expr:
        if isinstance(arg, relax.Tuple):
            return relax.Tuple([self._operand(field, rounds) for field in arg.fields])
        if dtype_of(arg) not in NARROW:
            return arg
        if rounds and arg in self.exceeding:
            return self._cast(arg, WIDE)
        return self._widened(arg)

    def _astype(self, call: relax.Call) -> relax.Expr:
        source, of, to = call.args[0], dtype_of(call.args[0]), dtype_of(call)
        if of in NARROW and to == WIDE:
            return self._widened(source)
        if of in NARROW and to == "float64":
            return self._labelled(relax.op.astype(self._widened(source), to))
        if to in NARROW and source in self.exceeding:
            return self._narrowed(self.wide[source], to)
        if to in NARROW and of == WIDE and source in self.derived:
            return self._narrowed(source, to)
        return call

    def _field(self, item: relax.TupleGetItem) -> relax.Expr:
        """A field of a tuple; what the tuple was made of, where that is written."""
        source = item.tuple_value
        while isinstance(source, tvm.ir.Var) and (value := self.lookup_binding(source)) is not None:
            source = value
        return source.fields[item.index] if isinstance(source, relax.Tuple) else item

    def _results(self, result: relax.Expr, kind: Any) -> relax.Expr:
        """Results in the types that the model states: variables, which what follows reads in float32."""
        if isinstance(kind, relax.TensorType):
            return self._narrowed(result, str(kind.dtype))
        fields = [self.builder_.emit(relax.TupleGetItem(result, at)) for at in range(len(kind.fields))]
        self.derived.update(fields)
        return relax.Tuple(
            [
                self._narrowed(field, dtype) if dtype in NARROW else field
                for field, dtype in zip(fields, _types(kind), strict=True)
            ]
        )

    # --- casts ------------------------------------------------------------------------------------------

    def _widened(self, expr: relax.Expr) -> relax.Expr:
        """A tensor of 16 bits in float32; one cast for all that read it."""
        if is_constant(expr):
            return self._wide_constant(expr)
        if expr not in self.wide:
            self.wide[expr] = self._cast(expr, WIDE)
        return self.wide[expr]

    def _wide_constant(self, constant: relax.Expr) -> relax.Expr:
        handle = constant.value.__chandle__()
        if handle not in self._constants:
            array = constant_of(constant)
            assert array is not None
            self._constants[handle] = constant, make_constant(array.astype(WIDE))
        return self._constants[handle][1]

    def _narrowed(self, wide: relax.Expr, dtype: str) -> relax.Expr:
        """A variable of 16 bits with ``wide`` as its counterpart in float32."""
        narrow = self._cast(wide, dtype)
        self.wide[narrow] = wide
        self.exceeding.add(narrow)
        return narrow

    def _cast(self, expr: relax.Expr, dtype: str) -> relax.Expr:
        cast = self.builder_.emit(self._labelled(relax.op.astype(expr, dtype)))
        self.derived.add(cast)
        return cast

    def _labelled(self, call: relax.Call) -> relax.Call:
        return with_origins(call, self._origins)


def _read(value: relax.Expr) -> Sequence[relax.Expr]:
    """Tensors that a binding's value reads, also in tuples."""
    if isinstance(value, relax.TupleGetItem):
        return [value.tuple_value]
    found: list[relax.Expr] = []
    for part in getattr(value, "args", ()) or getattr(value, "fields", ()):
        if isinstance(part, relax.Tuple):
            found += _read(part)
        elif isinstance(part.ty, relax.TensorType | relax.TupleType):
            found.append(part)
    return found
