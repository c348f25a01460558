"""``NumbersInOrder``: NaN has a place in the kernels that look for extremes or sort.

Before   i = R.argmax(x);  s = R.topk(x, k)      to TVM's kernels NaN is neither less nor more
After    key = R.call_tir(ordered_bits, (x,))    whole numbers in the order of the real ones
         i = R.argmax(key);  places = R.topk(key, k, "indices");  values = R.gather_elements(x, places)

NaN stands behind infinity where elements are sorted, and is farther out than all numbers where one is looked
for, as in numpy and PyTorch.  The two zeros are equal.
"""

from __future__ import annotations

import tvm
from tvm import relax, te, tirx

from ..canonicalize.rewriter import is_call_to
from .replace_calls import REAL_TYPES, is_tensor_of, replace_calls


@tvm.transform.module_pass(opt_level=0, name="NumbersInOrder")
class NumbersInOrder:
    """Module pass; see the module's text."""

    def transform_module(self, mod: tvm.IRModule, _ctx: tvm.transform.PassContext) -> tvm.IRModule:
        return replace_calls(mod, _by_keys)


def _by_keys(builder: relax.BlockBuilder, call: relax.Call) -> relax.Expr | None:
    if not is_call_to(call, "argmax", "argmin", "topk", "sort", "argsort"):
        return None
    source, attrs = call.args[0], call.attrs
    if not is_tensor_of(REAL_TYPES, source):
        return None
    keys = builder.emit(
        builder.call_te(_ordered_bits, source, is_call_to(call, "argmin"), primfunc_name_hint="ordered_bits")
    )
    if is_call_to(call, "argmax", "argmin", "argsort"):
        return relax.Call(call.op, [keys], attrs, call.ty_args)
    axis = int(attrs.axis) % source.ty.ndim
    if is_call_to(call, "sort"):
        places = builder.emit(relax.op.argsort(keys, axis, bool(attrs.descending), "int64"))
        return relax.op.gather_elements(source, places, axis)
    kind = str(attrs.ret_type)
    dtype = str(attrs.dtype) if kind != "values" else "int64"
    places = builder.emit(relax.op.topk(keys, attrs.k, axis, "indices", bool(attrs.largest), dtype))
    if kind == "indices":
        return places
    wide = places if dtype == "int64" else builder.emit(relax.op.astype(places, "int64"))
    values = relax.op.gather_elements(source, wide, axis)
    return values if kind == "values" else relax.Tuple([builder.emit(values), places])


def _ordered_bits(data: te.Tensor, nan_first: bool) -> te.Tensor:
    """Whole numbers in the order of the elements, NaN behind them all or in front."""
    wide = "float64" if data.dtype == "float64" else "float32"
    whole = "int64" if wide == "float64" else "int32"
    most = tirx.max_value(whole)
    outside = -most if nan_first else most
    zero = tirx.const(0, whole)

    def key(*index: tirx.Var) -> tirx.Expr:
        element = data(*index).astype(wide)
        bits = tirx.reinterpret(whole, element)
        # numbers below 0 are their size with the sign's bit in front: the larger, the less
        ordered = tirx.Select(bits < zero, zero - (bits & most), bits)
        return tirx.Select(tirx.isnan(element), outside, ordered)

    return te.compute(data.shape, key, "ordered_bits")
