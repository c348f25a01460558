"""``NarrowProducts``: products that importers wrote with sums in float32, as operators of 16 bits again."""

from __future__ import annotations

import warnings

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


def test_all_products_are_named() -> None:
    convolutions = {f"nn.conv{rank}d{kind}" for rank in (1, 2, 3) for kind in ("", "_transpose")}
    assert set(PRODUCTS) == {"matmul", *convolutions}


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


@pytest.mark.parametrize("operator", ["add", "multiply", "maximum", "subtract"])
def test_other_operators_than_products_stay(operator: str) -> None:
    builder = relax.BlockBuilder()
    x, w = tensor("x", 5, 8), tensor("w", 5, 8)
    with builder.function("main", [x, w]):
        with builder.dataflow():
            wide = [builder.emit(relax.op.astype(one, "float32")) for one in (x, w)]
            result = builder.emit(getattr(relax.op, operator)(*wide))
            out = builder.emit_output(relax.op.astype(result, "float16"))
        builder.emit_func_output(out)
    found = calls(builder.get())
    assert [name for name, _ in found] == ["astype", "astype", operator, "astype"]


def test_constants_that_are_infinite_or_no_number_are_narrowed_without_a_word() -> None:
    numbers = np.ones((8, 3), "float32")
    numbers[0, 0], numbers[1, 1], numbers[2, 2] = np.nan, np.inf, -np.inf
    x = tensor("x", 5, 8)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert calls(module(x, relax.const(numbers), wide=True)) == [("matmul", "float16")]
        numbers[3, 2] = 1e9  # no number of 16 bits
        assert ("matmul", "float32") in calls(module(x, relax.const(numbers), wide=True))


def test_operands_of_another_narrow_type_stay() -> None:
    """The result is of one type of 16 bits, an operand of the other."""
    for types in (("float16", "bfloat16"), ("bfloat16", "float16")):
        x, w = (
            tensor(name, *shape, dtype=of)
            for name, shape, of in zip("xw", ((5, 8), (8, 3)), types, strict=True)
        )
        assert ("matmul", "float32") in calls(module(x, w, wide=True))


def test_a_product_of_a_product_is_no_cast_of_one() -> None:
    """Its result has 16 bits too, and its first operand is a product with wide sums."""
    x, w = tensor("x", 8, 8), tensor("w", 8, 8)
    z = tensor("z", 8, 8, dtype="float32")
    builder = relax.BlockBuilder()
    with builder.function("main", [x, w, z]):
        with builder.dataflow():
            inner = builder.emit(relax.op.matmul(x, w, out_dtype="float32"))
            out = builder.emit_output(relax.op.matmul(inner, z, out_dtype="float16"))
        builder.emit_func_output(out)
    assert calls(builder.get()) == [("matmul", "float32"), ("matmul", "float16")]
