"""From Relax's types to plain Python and ``core``: shapes, element types, constants."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import tvm
from tvm import relax, tirx

from tvm_mxplan.core.program.dims import Dim, Expr, Operator, Shape, Symbol, static_shape

_OPERATORS: dict[type, Operator] = {
    tirx.Add: "+",
    tirx.Sub: "-",
    tirx.Mul: "*",
    tirx.FloorDiv: "//",
    tirx.FloorMod: "%",
    tirx.Max: "max",
    tirx.Min: "min",
}
RESHAPES = ("reshape", "squeeze", "expand_dims", "flatten", "nn.batch_flatten")
"""Operators of Relax that give the same bytes another shape."""
OPERATOR = "mxplan.operator"
"""Attribute of a composite: the name of the operator that it was."""

_NAMED = "mxplan operator "


def dim_of(expr: object) -> Dim | None:
    """A Relax dimension as a core one; None for an expression that core does not know."""
    if isinstance(expr, int):
        return expr
    if isinstance(expr, tirx.IntImm):
        return int(expr.value)
    if isinstance(expr, tirx.Var):
        return Symbol(str(expr.name))
    operator = _OPERATORS.get(type(expr))
    if operator is None:
        return None
    left, right = dim_of(expr.a), dim_of(expr.b)  # type: ignore[attr-defined]
    if left is None or right is None:
        return None
    return Expr(operator, left, right)


def is_arithmetic(call: relax.Call) -> bool:
    """Whether a call computes a number of a shape (``if_then_else``), and so is no operator of Relax.

    Passes meet these inside of types; Relax knows no rule for theirs.
    """
    return isinstance(call.op, tvm.ir.Op) and call.op.get_attr("FInferType") is None


def with_operator_name(call: relax.Call, name: str) -> relax.Call:
    """The call under a name; it is kept in the span, which passes hand on."""
    span = tvm.ir.Span(tvm.ir.SourceName(_NAMED + name), 0, 0, 0, 0)
    return relax.Call(call.op, call.args, call.attrs, call.ty_args, span)


def operator_name(expr: relax.Expr) -> str | None:
    """The name that ``with_operator_name`` gave; None for all others."""
    source = str(expr.span.source_name.name) if isinstance(expr.span, tvm.ir.Span) else ""
    return source.removeprefix(_NAMED) if source.startswith(_NAMED) else None


def values_by_function(mod: tvm.IRModule) -> Iterator[dict[tvm.ir.Var, relax.Expr]]:
    """Of each Relax function of a module, the values of its variables, in the order of their bindings."""
    for function in mod.functions.values():
        if isinstance(function, relax.Function):
            yield dict(relax.analysis.get_var2val(function).items())


def shape_of(expr: relax.Expr) -> Shape | None:
    """Logical shape of a tensor expression; None if it is no tensor or not expressible."""
    shape = getattr(expr.ty, "shape", None)
    if not isinstance(expr.ty, relax.TensorType) or not isinstance(shape, relax.ShapeExpr):
        return None
    dims = [dim_of(dim) for dim in shape.values]
    known = tuple(dim for dim in dims if dim is not None)
    return known if len(known) == len(dims) else None


def static_shape_of(expr: relax.Expr) -> tuple[int, ...]:
    """Logical shape of a tensor that is known at compile time; ValueError where it is not."""
    shape = shape_of(expr)
    if shape is None:
        raise ValueError(f"{expr} of type {expr.ty} has no known shape")
    return static_shape(shape)


def dtype_of(expr: relax.Expr) -> str:
    """Element type of a tensor expression, '' if unknown."""
    dtype = getattr(expr.ty, "dtype", None)
    return str(dtype) if dtype is not None else ""


def is_constant(expr: relax.Expr) -> bool:
    return isinstance(expr, tvm.ir.GenericConst)


def constant_of(expr: relax.Expr) -> np.ndarray | None:
    """The numbers of a constant; None for anything else.

    They are not copied, but for types that numpy has from ``ml_dtypes`` only; None for types it lacks.
    """
    if not is_constant(expr):
        return None
    try:
        return np.from_dlpack(expr.value)
    except (BufferError, RuntimeError, TypeError):
        pass
    try:
        return np.asarray(expr.value.numpy())
    except (RuntimeError, TypeError, ValueError):
        return None


def scalar_of(expr: relax.Expr) -> float | None:
    """The number of a constant with one element; None for anything else."""
    value = constant_of(expr)
    return float(value.reshape(-1)[0]) if value is not None and value.size == 1 else None


def permutation_of(call: relax.Call) -> list[int]:
    """The order of axes that a ``permute_dims`` asks for, written out and not negative."""
    rank, axes = call.ty.ndim, call.attrs.axes
    return list(range(rank))[::-1] if axes is None else [int(axis) % rank for axis in axes]


def slice_ranges(call: relax.Call) -> dict[int, range] | None:
    """The places that a ``strided_slice`` takes, by the axes that it names; negative bounds are resolved.

    None unless bounds are constant numbers, steps are not 0 and the axes are of constant extents.
    """
    source, shape = shape_of(call.args[0]), shape_of(call)
    bounds = [_numbers(arg) for arg in call.args[1:]]
    known = [one for one in bounds if one is not None]
    if source is None or shape is None or len(known) < len(bounds):
        return None
    axes, begins, ends, *given = known
    steps = given[0] if given else (1,) * len(axes)
    found: dict[int, range] = {}
    for axis, first, last, step in zip(axes, begins, ends, steps, strict=True):
        extent = source[axis]
        if not isinstance(extent, int) or step == 0:
            return None
        taken = range(*slice(first, last, step).indices(extent))
        if len(taken) != shape[axis]:
            return None
        found[axis % len(source)] = taken
    return found


def _numbers(expr: relax.Expr) -> tuple[int, ...] | None:
    """The constant numbers of a tuple; None for anything else."""
    if not isinstance(expr, relax.Tuple):
        return None
    dims = [dim_of(field) for field in expr.fields]
    numbers = tuple(dim for dim in dims if isinstance(dim, int))
    return numbers if len(numbers) == len(dims) else None


def slice_begin(call: relax.Call) -> tuple[int, ...] | None:
    """The begin of a ``strided_slice`` of unit steps on each axis; None for others."""
    ranges = slice_ranges(call)
    if ranges is None or any(taken.step != 1 for taken in ranges.values()):
        return None
    return tuple(ranges[axis].start if axis in ranges else 0 for axis in range(call.ty.ndim))


def make_constant(array: np.ndarray) -> tvm.ir.GenericConst:
    """A Relax constant that holds ``array``, of the same element type."""
    return relax.const(np.asarray(array, order="C"), str(array.dtype))  # without one, TVM narrows 64 bits
