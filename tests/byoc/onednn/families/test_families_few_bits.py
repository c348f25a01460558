"""Products with matrices of few bits: the pattern, operands in their roles, and what the kernels lack."""

from __future__ import annotations

import numpy as np
import pytest
from composites import tensor, typed
from tvm import relax, tirx

from tvm_mxplan.byoc.composite import Composite
from tvm_mxplan.byoc.onednn.families import few_bits as family
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.core.program.builder import ProgramBuilder
from tvm_mxplan.operators.products.few_bits import FewBits, pack_words
from tvm_mxplan.passes.relax_types import shape_of

N = tirx.Var("n", "int64")
DEPTH, COLUMNS, BITS, BLOCK = 64, 3, 4, 32


def matrix(points: str = "") -> FewBits:
    random = np.random.default_rng(0)
    shape = (COLUMNS, DEPTH // BLOCK)
    return FewBits(
        random.integers(0, 16, (COLUMNS, DEPTH)).astype("uint8"),
        random.standard_normal(shape).astype("float32"),
        random.integers(0, 16, shape).astype(points) if points else None,
        BITS,
        BLOCK,
    )


class Product:
    """Rows times the transpose of a matrix of few bits, each operator bound to a variable."""

    def __init__(self, src: relax.Var, points: str = "", axes: tuple[int, int] = (1, 0)) -> None:
        self.src, self.matrix = src, matrix(points)
        self.of = typed(self.matrix.expression())
        unpacked = relax.Var("unpacked", self.of.ty)
        self.transpose = typed(relax.op.permute_dims(unpacked, list(axes)))
        turned = relax.Var("turned", self.transpose.ty)
        self.root = relax.op.matmul(src, turned)
        self.definitions = {unpacked: self.of, turned: self.transpose}

    def refusal(self) -> str | None:
        return family.check({"root": typed(self.root), "transpose": self.transpose})


@pytest.mark.parametrize("points", ["", "uint8", "float32"])
def test_the_step_reads_words_scales_and_zero_points(points: str) -> None:
    product = Product(tensor("x", 2, 5, DEPTH), points)
    builder = ProgramBuilder("region")
    params = {product.src: builder.port("input", "x", shape_of(product.src), "float32")}
    dst = family.translate(Composite(builder, params, product.definitions, typed(product.root)))
    (step,) = builder.steps
    assert step.attrs == ir.FewBitsProduct(BITS, BLOCK)
    assert builder.values[dst].shape == (2, 5, COLUMNS)
    read = {operand.role: operand.value for operand in step.operands}
    assert read.pop("dst") == dst and read.pop("src") == params[product.src]
    found = {role: builder.constants[builder.values[value].index] for role, value in read.items()}
    expected = {"numbers": pack_words(product.matrix.numbers, BITS), "scales": product.matrix.scales}
    if product.matrix.zero_points is not None:
        expected["zero_points"] = product.matrix.zero_points
    assert found.keys() == expected.keys()
    for role, array in expected.items():
        assert found[role].dtype == array.dtype
        np.testing.assert_array_equal(found[role][0], array)


@pytest.mark.parametrize(
    ("src", "reason"),
    [
        (tensor("x", 5, DEPTH), None),
        (tensor("x", N, DEPTH), None),
        (tensor("x", 1, 1, 1, 2, 5, DEPTH), None),
        (tensor("x", DEPTH), "a source of shape (64,)"),
        (tensor("x", 1, 1, 1, 1, 1, 5, DEPTH), "a source of shape"),
        (tensor("x", 0, DEPTH), "a source of shape (0, 64)"),
        (tensor("x", 5, DEPTH, dtype="float16"), "rows of float16, expected float32"),
        (relax.Var("x", relax.TensorType(dtype="float32", ndim=2)), "not known at compile time"),
    ],
)
def test_what_the_kernels_multiply(src: relax.Var, reason: str | None) -> None:
    product = Product(src)
    if src.ty.dtype == "float16":  # a product of both types is none
        product.root = relax.op.matmul(src, tensor("w", DEPTH, COLUMNS, dtype="float16"))
    answer = product.refusal()
    assert answer is None if reason is None else reason in str(answer)


def test_a_matrix_as_it_is_stays_with_others() -> None:
    product = Product(tensor("x", 5, COLUMNS), axes=(0, 1))
    assert product.refusal() == "not a transposed matrix"


def matched(left: relax.Expr | None, points: str) -> bool:
    """Whether the pattern finds a product with the matrix: as the second operand, or as it is by ``left``."""
    x = tensor("x", 5, DEPTH)
    builder = relax.BlockBuilder()
    with builder.function("main", [x]):
        with builder.dataflow():
            numbers = builder.emit(matrix(points).expression())
            turned = builder.emit(relax.op.permute_dims(numbers, [1, 0]))
            last = relax.op.matmul(x, turned) if left is None else relax.op.matmul(numbers, left)
            y = builder.emit_output(last)
        builder.emit_func_output(y)
    pattern, _ = family.pattern()
    block = builder.get()["main"].body.blocks[0]
    names = {binding.var: binding.value for binding in block.bindings}
    return bool(pattern.match(block.bindings[-1].value, names))


@pytest.mark.parametrize("points", ["", "uint8"])
def test_rows_times_a_transposed_matrix_are_found(points: str) -> None:
    assert matched(None, points)
    assert not matched(relax.const(np.ones((DEPTH, 2), "float32")), points)
