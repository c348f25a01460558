"""``NarrowProducts``: products of 16 bits as one operator each, on devices that add them up in float32.

Before   a = R.matmul(x, w, out_dtype="float32");                y = R.astype(a, "float16")
         a = R.nn.conv2d(R.astype(x, "float32"), R.astype(w, "float32"));  y = R.astype(a, "float16")
After    y = R.matmul(x, w);  y = R.nn.conv2d(x, w)              x and w of float16

Importers write products so, since TVM's own kernels add up in the type of the result.  Libraries of GPUs add
up in float32 whatever that is; ``passes/kernels/wide_sums.py`` says so again to TVM where it keeps a product.
A constant counts as of 16 bits where it has no more digits.
"""

from __future__ import annotations

import numpy as np
import tvm
from tvm import relax

from tvm_mxplan.core.element_types import numpy_type

from ..relax_types import constant_of, dtype_of, make_constant
from .narrow_operators import NARROW, WIDE
from .rewriter import Site, is_call_to, rewrite_bindings

PRODUCTS = (
    *("matmul", "nn.conv1d", "nn.conv2d", "nn.conv3d"),
    *("nn.conv1d_transpose", "nn.conv2d_transpose", "nn.conv3d_transpose"),
)


@tvm.transform.module_pass(opt_level=0, name="NarrowProducts")
class NarrowProducts:
    """Module pass; see the module's text."""

    def transform_module(self, mod: tvm.IRModule, _ctx: tvm.transform.PassContext) -> tvm.IRModule:
        return rewrite_bindings(mod, _rule)


def _rule(site: Site, value: relax.Expr) -> relax.Expr | None:
    if not is_call_to(value, "astype") or dtype_of(value) not in NARROW:
        return None
    product = site.definition(value.args[0])
    if not is_call_to(product, *PRODUCTS) or dtype_of(product) != WIDE:
        return None
    dtype = str(dtype_of(value))
    operands = [_narrow(site, operand, dtype) for operand in product.args]
    if None in operands:
        return None
    return relax.Call(product.op, operands, with_result_in(product.attrs, None), product.ty_args)


def _narrow(site: Site, operand: relax.Expr, dtype: str) -> relax.Expr | None:
    """An operand in ``dtype``, if it has no more digits than that."""
    if dtype_of(operand) == dtype:
        return operand
    call = site.definition(operand)
    if is_call_to(call, "astype") and dtype_of(call.args[0]) == dtype:
        return call.args[0]
    numbers = constant_of(call)
    if numbers is None or dtype_of(call) != WIDE:
        return None
    with np.errstate(over="ignore"):
        narrow = numbers.astype(numpy_type(dtype))
    return make_constant(narrow) if np.array_equal(narrow.astype(WIDE), numbers, equal_nan=True) else None


def with_result_in(attrs: tvm.ir.Attrs, dtype: str | None) -> tvm.ir.Attrs:
    """A product's attributes with another type of result, None for that of its operands."""
    info = type(attrs).__tvm_ffi_type_info__
    fields = {field.name: getattr(attrs, field.name) for field in info.fields}
    fields["out_dtype"] = None if dtype is None else tvm.DataType(dtype)
    return tvm.ir.make_node(info.type_key, **fields)
