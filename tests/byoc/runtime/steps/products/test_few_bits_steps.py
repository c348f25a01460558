"""Products with matrices of few bits by the runtime's own kernels, against float64."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from less_instructions import run_again
from program_builder import Builder, check, random

from tvm_mxplan.byoc.onednn import library
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.operators.products.few_bits import pack_words, real_matrix

RANDOM = np.random.default_rng(5)


@dataclass(frozen=True)
class Case:
    """A matrix of ``columns`` x ``depth``; ``zero``: the type of its zero points, '' for none."""

    bits: int
    block: int
    depth: int
    columns: int
    zero: str = ""

    def operands(self) -> dict[str, np.ndarray]:
        blocks = -(-self.depth // self.block)
        numbers = RANDOM.integers(0, 2**self.bits, (self.columns, self.depth)).astype("uint8")
        shape = (1, self.columns, blocks)
        found = {
            "numbers": pack_words(numbers, self.bits)[None],
            "scales": (RANDOM.standard_normal(shape) * 4 / 2**self.bits / self.depth**0.5).astype("float32"),
        }
        if self.zero == "uint8":
            found["zero_points"] = RANDOM.integers(0, 2**self.bits, shape).astype("uint8")
        elif self.zero:
            found["zero_points"] = (RANDOM.random(shape) * (2**self.bits - 1)).astype("float32")
        return found

    def matrix(self, given: dict[str, np.ndarray]) -> np.ndarray:
        """``[columns, depth]`` in float64."""
        return real_matrix(
            given["numbers"], given["scales"], given.get("zero_points"),
            bits=self.bits, block=self.block, depth=self.depth, dtype="float64",
        )  # fmt: skip


def run(case: Case, rows: int, *functions: str) -> str:
    """The implementation of a product that was held against numpy, with a bias, a residual and functions."""
    given, x = case.operands(), random(rows, case.depth)
    b = Builder()
    src, dst = b.input(x.shape), b.output((rows, case.columns))
    expected = x.astype("float64") @ case.matrix(given).T
    post_ops: list[ir.PostOp] = []
    inputs = [x]
    for function in functions:
        if function == "bias":
            shift = random(1, case.columns, seed=1)
            post_ops.append(ir.BinaryPostOp("add", b.constant(shift)))
            expected = expected + shift
        elif function == "residual":
            other = random(rows, case.columns, seed=2)
            post_ops.append(ir.BinaryPostOp("mul", b.input(other.shape)))
            inputs.append(other)
            expected = expected * other
        else:
            alpha, beta, apply = FUNCTIONS[function]
            post_ops.append(ir.EltwisePostOp(function, alpha, beta))
            expected = apply(expected)
    roles = {role: b.constant(array) for role, array in given.items()}
    b.step(ir.FewBitsProduct(case.bits, case.block), post_ops, src=src, dst=dst, **roles)
    check(b.run(*inputs), expected.astype("float32"), case.depth)
    return library.describe(b.build()).steps[-1].implementation


FUNCTIONS = {
    "relu": (0.0, 0.0, lambda x: np.maximum(x, 0)),
    "swish": (1.0, 0.0, lambda x: x / (1 + np.exp(-x))),
    "tanh": (0.0, 0.0, np.tanh),
    "clip": (-0.5, 0.75, lambda x: np.clip(x, -0.5, 0.75)),
}


@pytest.mark.parametrize("bits", [2, 4, 8])
@pytest.mark.parametrize("zero", ["", "uint8", "float32"])
@pytest.mark.parametrize("rows", [1, 2, 3, 4, 5, 13, 64])
def test_bits_zero_points_and_rows(bits: int, zero: str, rows: int, threads: int) -> None:
    assert run(Case(bits, 32, 101, 67, zero), rows).startswith("few_bits:")


@pytest.mark.parametrize("block", [16, 32, 64, 128, 1024])
@pytest.mark.parametrize("depth, columns", [(1, 1), (17, 16), (128, 33), (389, 5), (500, 97)])
@pytest.mark.parametrize("rows", [1, 7])
def test_blocks_and_odd_sizes(block: int, depth: int, columns: int, rows: int) -> None:
    """Also depths beyond what one tile of many rows holds, and those that end within a word."""
    assert run(Case(4, block, depth, columns, "uint8"), rows).startswith("few_bits:")


@pytest.mark.parametrize("rows", range(1, 65))
def test_every_number_of_rows(rows: int) -> None:
    assert run(Case(4, 32, 70, 35), rows, "bias").startswith("few_bits:")


@pytest.mark.parametrize("rows, columns", [(289, 129), (600, 40), (577, 300)])
def test_rows_beyond_one_pass(rows: int, columns: int, threads: int) -> None:
    assert run(Case(4, 32, 200, columns, "uint8"), rows, "bias", "residual").startswith("few_bits:")


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("rows", [1, 3, 9])
def test_post_ops(function: str, rows: int, threads: int) -> None:
    for functions in ([function], ["bias", function], [function, "residual"], ["bias", "residual"]):
        assert run(Case(4, 32, 96, 35, "uint8"), rows, *functions).startswith("few_bits:")


@pytest.mark.parametrize("rows", [1, 30])
def test_threads_share_large_matrices(rows: int, threads: int) -> None:
    assert run(Case(4, 64, 1030, 1000, "uint8"), rows, "bias", "swish").startswith("few_bits:")


def test_results_are_those_of_any_number_of_threads() -> None:
    """A column is summed the same way whoever does it; what is packed is what the bits take."""
    case = Case(4, 32, 512, 320)
    b = Builder()
    src, dst = b.input((1, 512)), b.output((1, 320))
    roles = {role: b.constant(array) for role, array in case.operands().items()}
    b.step(ir.FewBitsProduct(4, 32), src=src, dst=dst, **roles)
    (step,) = library.describe(b.build()).steps
    assert step.weights_bytes == 512 * 320 // 2 + 512 // 32 * 320 * 4


@pytest.mark.slow
@pytest.mark.parametrize("isa", ["AVX2", "SSE41"])
def test_other_instruction_sets(isa: str) -> None:
    run_again(__file__, isa, "bits_zero or odd_sizes or post_ops or one_pass")
