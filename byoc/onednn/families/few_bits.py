"""Products with matrices of few bits: a step of the runtime's own kernels.

Before   v2 = matmul(x, permute_dims(mxplan.few_bits(numbers, scales)))
After    v2 = few_bits_product(x, numbers, scales)
"""

from __future__ import annotations

import numpy as np
from tvm import relax
from tvm.relax.dpl import DFPattern, is_const, is_op, wildcard

from tvm_mxplan.byoc.composite import Composite
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.operators.products.few_bits import FEW_BITS, attributes_of
from tvm_mxplan.passes.relax_types import constant_of, dtype_of, permutation_of, shape_of

from ..checks import MAX_RANK, Match

_ROLES = ("numbers", "scales", "zero_points")


def pattern() -> tuple[DFPattern, dict[str, DFPattern]]:
    """A product of anything with the transpose of a matrix, with zero points or without them."""
    FEW_BITS.register()
    operator = is_op(FEW_BITS.full_name)
    matrix = operator(is_const(), is_const()) | operator(is_const(), is_const(), is_const())
    transpose = is_op("relax.permute_dims")(matrix)
    return is_op("relax.matmul")(wildcard(), transpose), {"transpose": transpose}


def check(match: Match) -> str | None:
    """None, or the part of the product that the kernels lack."""
    source = match["root"].args[0]
    if dtype_of(source) != "float32":
        return f"rows of {dtype_of(source) or 'unknown type'}, expected float32"
    shape = shape_of(source)
    if shape is None or shape_of(match["root"]) is None:
        return "a shape that is not known at compile time"
    if not 2 <= len(shape) <= MAX_RANK or 0 in shape:
        return f"a source of shape {shape}"
    return None if permutation_of(match["transpose"]) == [1, 0] else "not a transposed matrix"


def translate(c: Composite) -> int:
    transpose = c.definition(c.root.args[1])
    matrix = c.definition(transpose.args[0])
    kind = attributes_of(matrix)
    operands = [("src", c.value(c.root.args[0]))]
    operands += [
        (role, c.builder.constant(_array(arg))) for role, arg in zip(_ROLES, matrix.args, strict=False)
    ]
    return c.emit("few_bits_product", ir.FewBitsProduct(kind["bits"], kind["block"]), *operands)


def _array(constant: relax.Expr) -> np.ndarray:
    array = constant_of(constant)
    assert array is not None
    return array
