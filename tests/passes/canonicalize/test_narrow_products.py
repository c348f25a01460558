"""``NarrowProducts``: products that importers wrote with sums in float32, as operators of 16 bits again."""

from __future__ import annotations

import numpy as np
import pytest
import tvm
from tvm import relax

from tvm_mxplan.passes.canonicalize import NarrowProducts
from tvm_mxplan.passes.canonicalize.narrow_products import PRODUCTS


def module(
    *operands: relax.Expr, operator: str = "matmul", result: str = "float16", wide: bool = False
) -> tvm.IRModule:
    """A product of operands, of which variables are parameters, in float32, and a cast of it."""
    builder = relax.BlockBuilder()
    parameters = [one for one in operands if isinstance(one, relax.Var)]
    make = relax.op
    for part in operator.split("."):
        make = getattr(make, part)
    with builder.function("main", parameters):
        with builder.dataflow():
            read = [
                one
                if str(one.ty.dtype) == "float32" or not wide
                else builder.emit(relax.op.astype(one, "float32"))
                for one in operands
            ]
            product = builder.emit(make(*read, out_dtype="float32"))
            out = builder.emit_output(relax.op.astype(product, result))
        builder.emit_func_output(out)
    return builder.get()


def calls(mod: tvm.IRModule) -> list[tuple[str, str]]:
    """Operators and types of results, in their order."""
    (block,) = NarrowProducts()(mod)["main"].body.blocks
    return [(one.value.op.name.removeprefix("relax."), str(one.value.ty.dtype)) for one in block.bindings]


def tensor(name: str, *shape: int, dtype: str = "float16") -> relax.Var:
    return relax.Var(name, relax.TensorType(shape, dtype))


SHAPES = {
    name: ((2, 5, 8), (2, 8, 3)) if name == "matmul" else ((2, 6, *(9,) * rank), (6, 6, *(3,) * rank))
    for name in PRODUCTS
    for rank in [int(name[len("nn.conv")]) if name != "matmul" else 0]
}


@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("operator", PRODUCTS)
def test_a_product_with_wide_sums_is_one_operator(operator: str, dtype: str, wide: bool) -> None:
    operands = [tensor(name, *shape, dtype=dtype) for name, shape in zip("xw", SHAPES[operator], strict=True)]
    assert calls(module(*operands, operator=operator, result=dtype, wide=wide)) == [(operator, dtype)]


def test_a_constant_without_more_digits_is_narrowed() -> None:
    numbers = np.random.default_rng(1).standard_normal((8, 3)).astype("float16").astype("float32")
    x = tensor("x", 5, 8)
    assert calls(module(x, relax.const(numbers), wide=True)) == [("matmul", "float16")]
    more = numbers.copy()
    more[1, 1] += 1e-6
    assert ("matmul", "float32") in calls(module(x, relax.const(more), wide=True))
    numbers[1, 1] = 1e9  # no number of 16 bits
    assert ("matmul", "float32") in calls(module(x, relax.const(numbers), wide=True))


def test_what_the_model_computes_in_float32_stays() -> None:
    x, w = tensor("x", 5, 8, dtype="float32"), tensor("w", 8, 3, dtype="float32")
    assert calls(module(x, w)) == [("matmul", "float32"), ("astype", "float16")]
    narrow = tensor("x", 5, 8), tensor("w", 8, 3)
    assert calls(module(*narrow, result="float32"))[0] == ("matmul", "float32")
