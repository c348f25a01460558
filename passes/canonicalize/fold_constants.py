"""``FoldConstants``: evaluate operators on constants with numpy.

Before   lv = R.reshape(const[64], (1, 64, 1, 1));  gv = R.add(x, lv)
After    gv = R.add(x, const[1, 64, 1, 1])

TVM's own ``FoldConstant`` compiles and runs a function for each binding, which takes most of a minute on
a ResNet.  Only the operators that importers wrap around parameters are folded here.  A transposed matrix is
left alone, since a library reads it as it stands, and so is a broadcast, which operators do themselves.  Rows
that are taken of a table of integers are dequantised by themselves, or else all of the table would be.  TVM
folds the rest later, and with it what has no result that every processor agrees on: integers divided by zero,
and real numbers cast to integers that cannot hold them.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import tvm
from tvm import relax

from tvm_mxplan.core.program.dims import Shape, is_static, static_shape

from ..relax_types import constant_of, dtype_of, is_constant, make_constant, shape_of
from .rewriter import Site, is_call_to, rewrite_bindings

Evaluate = Callable[[relax.Call, list[np.ndarray]], "np.ndarray | None"]


def _to_output_shape(call: relax.Call, args: list[np.ndarray]) -> np.ndarray:
    return args[0].reshape(shape_of(call))  # type: ignore[arg-type]


def _cast(call: relax.Call, args: list[np.ndarray]) -> np.ndarray | None:
    dtype = np.dtype(dtype_of(call))
    if args[0].dtype.kind == "f" and dtype.kind in "iu":
        bounds, whole = np.iinfo(dtype), np.trunc(args[0])
        # As real numbers the bounds are rounded: up to one that the integers lack.
        if not np.all((whole >= float(bounds.min)) & (whole < float(bounds.max))):
            return None
    return args[0].astype(dtype)


def _dequantize(call: relax.Call, args: list[np.ndarray]) -> np.ndarray | None:
    data, scale, zero = args
    axis = int(call.attrs.axis) % max(data.ndim, 1)
    rows = [row.reshape([-1 if at == axis else 1 for at in range(data.ndim)]) for row in (scale, zero)]
    if data.dtype.kind not in "iu" or any(row.size not in (1, data.shape[axis]) for row in rows if data.ndim):
        return None
    return (data.astype("int64") - rows[1]).astype(scale.dtype) * rows[0]


def _divide(_call: relax.Call, args: list[np.ndarray]) -> np.ndarray | None:
    """The quotient in the operands' own type; that of integers is rounded towards zero, as TVM's is."""
    dividend, divisor = args
    if dividend.dtype.kind not in "iu":
        return dividend / divisor
    if not divisor.all():
        return None
    quotient = dividend // divisor
    rounded_down = (quotient * divisor != dividend) & ((dividend < 0) != (divisor < 0))
    return quotient + rounded_down.astype(quotient.dtype)


_EVALUATE: dict[str, Evaluate] = {
    "reshape": _to_output_shape,
    "expand_dims": _to_output_shape,
    "squeeze": _to_output_shape,
    "broadcast_to": lambda call, args: np.broadcast_to(args[0], shape_of(call)),  # type: ignore[arg-type]
    "permute_dims": lambda call, args: np.transpose(
        args[0], None if call.attrs.axes is None else [int(axis) for axis in call.attrs.axes]
    ),
    "astype": _cast,
    "ones_like": lambda call, args: np.ones_like(args[0]),
    "zeros_like": lambda call, args: np.zeros_like(args[0]),
    "isnan": lambda call, args: np.isnan(args[0]),
    "less": lambda call, args: args[0] < args[1],
    "where": lambda call, args: np.where(*args),
    "negative": lambda call, args: -args[0],
    "sqrt": lambda call, args: np.sqrt(args[0]),
    "rsqrt": lambda call, args: 1 / np.sqrt(args[0]),
    "add": lambda call, args: args[0] + args[1],
    "subtract": lambda call, args: args[0] - args[1],
    "multiply": lambda call, args: args[0] * args[1],
    "divide": _divide,
    "dequantize": _dequantize,
}


def _better_left(call: relax.Call) -> bool:
    source, result = shape_of(call.args[0]), shape_of(call)
    if is_call_to(call, "dequantize"):  # libraries compute with the integers of matrices and filters
        return len(source) >= 2 and dtype_of(call.args[0]) in ("uint8", "int8")  # type: ignore[arg-type]
    if is_call_to(call, "broadcast_to"):
        return _grows(source, result)  # type: ignore[arg-type]
    if is_call_to(call, "less"):  # masks of pairs are larger than what they are made of
        return all(_grows(shape_of(arg), result) for arg in call.args)  # type: ignore[arg-type]
    return is_call_to(call, "permute_dims") and len(source) == 2  # type: ignore[arg-type]


def _grows(source: Shape, result: Shape) -> bool:
    return [dim for dim in source if dim != 1] != [dim for dim in result if dim != 1]


def numbers_of(site: Site, expr: relax.Expr) -> np.ndarray | None:
    """The numbers of a constant, or of one that is broadcast, without copying them."""
    if is_constant(expr):
        return constant_of(expr)
    definition = site.definition(expr)
    if is_call_to(definition, "broadcast_to"):
        shape, array = shape_of(definition), constant_of(definition.args[0])
        if shape is not None and is_static(shape) and array is not None:
            return np.broadcast_to(array, static_shape(shape))
    return None


def _taken(site: Site, call: relax.Call) -> relax.Expr | None:
    """Elements of constant integers dequantised behind ``take``, where they have one scale."""
    table = site.definition(call.args[0])
    if not is_call_to(table, "dequantize") or str(call.attrs.mode) == "nan":
        return None
    numbers = [constant_of(number) for number in table.args[1:]]
    if not is_constant(table.args[0]) or any(one is None or one.size != 1 for one in numbers):
        return None
    integers = site.emit(relax.Call(call.op, [table.args[0], call.args[1]], call.attrs))
    numbers = [make_constant(one.reshape(())) for one in numbers]  # type: ignore[union-attr]
    return relax.op.dequantize(integers, *numbers, axis=-1, out_dtype=table.attrs.out_dtype)


def _rule(site: Site, value: relax.Expr) -> relax.Expr | None:
    if is_call_to(value, "take") and not is_constant(value.args[1]):
        return _taken(site, value)
    if not is_call_to(value, *_EVALUATE):
        return None
    tensors = [arg for arg in value.args if not isinstance(arg.ty, relax.ShapeType)]
    shape = shape_of(value)
    if shape is None or not all(isinstance(dim, int) for dim in shape):
        return None
    arrays = [numbers_of(site, arg) for arg in tensors]
    if not arrays or any(array is None for array in arrays) or _better_left(value):
        return None
    try:
        with np.errstate(all="ignore"):
            result = _EVALUATE[value.op.name.removeprefix("relax.")](value, arrays)  # type: ignore[arg-type]
        return None if result is None else make_constant(np.asarray(result, dtype=dtype_of(value)))
    except TypeError:  # a type that numpy does not have, or does not compute in
        return None


@tvm.transform.module_pass(opt_level=0, name="FoldConstants")
class FoldConstants:
    """Module pass; see the module's text."""

    def transform_module(self, mod: tvm.IRModule, _ctx: tvm.transform.PassContext) -> tvm.IRModule:
        return rewrite_bindings(mod, _rule)
