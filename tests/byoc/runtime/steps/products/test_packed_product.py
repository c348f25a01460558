"""Products with a packed matrix by the runtime's own kernel, which processors with AVX2 alone take.

Every run is held against the float64 reference by ``Builder.run_stored``.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from less_instructions import run_again
from program_builder import Array, Builder
from single_steps import with_and_without

from tvm_mxplan.byoc.onednn import library
from tvm_mxplan.core.description import StepInfo
from tvm_mxplan.core.layout.layout import parse_layout
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.execution.threads import with_threads

OWN = "packed_product:avx2"
RELU, GELU = ir.EltwisePostOp("relu", 0.0, 0.0), ir.EltwisePostOp("gelu_erf", 0.0, 0.0)


@dataclass(frozen=True)
class Case:
    """Rows times a constant matrix, or samples of a layout times filters."""

    rows: int = 7
    depth: int = 40
    columns: int = 50
    bias: bool = True
    post_ops: tuple[ir.PostOp, ...] = ()
    added: str = ""
    sample: tuple[int, ...] = ()
    layout: str = "ab"

    @property
    def src(self) -> tuple[int, ...]:
        return (self.rows, *(self.sample or (self.depth,)))

    def builder(self) -> Builder:
        rng, b = np.random.default_rng([self.rows, self.depth, self.columns]), Builder()
        depth = int(np.prod(self.src[1:]))
        weights = (rng.standard_normal((depth, self.columns)) / depth**0.5).astype("float32")
        dst_shape = (self.rows, self.columns)
        roles = {"src": b.input(self.src, self.layout)}
        bias = rng.standard_normal(self.columns).astype("float32")
        if self.sample:
            roles["weights"] = b.constant(weights.T.reshape(self.columns, *self.sample))
        else:
            roles["weights"] = b.constant(weights)
            bias = bias.reshape(1, -1)
        if self.bias:
            roles["bias"] = b.constant(bias)
        post_ops = list(self.post_ops)
        if self.added == "sum":
            held = b.view(b.output(dst_shape, "ab"), dst_shape, "ab")
            b.step(ir.Reorder(), src=b.input(dst_shape, "ab"), dst=held)
            roles["dst"] = b.view(held, dst_shape, "ab")
            post_ops.insert(0, ir.SumPostOp(0.5))
        else:
            if self.added:
                shape = dst_shape if self.added == "like dst" else (1, self.columns)
                post_ops.insert(0, ir.BinaryPostOp("add", b.input(shape, "ab")))
            roles["dst"] = b.output(dst_shape, "ab")
        b.step(ir.InnerProduct() if self.sample else ir.MatMul(), post_ops, **roles)
        return b

    def info(self) -> StepInfo:
        info = library.describe(self.builder().build()).steps[-1]
        assert not info.error, info.error
        return info

    def run(self) -> Array:
        rng, b = np.random.default_rng(7), self.builder()
        inputs = [
            rng.standard_normal(parse_layout(value.layout).physical_shape(value.shape)).astype("float32")
            for value in b.build().values
            if value.kind == "input"
        ]
        return b.run_stored(*inputs, shape=(self.rows, self.columns))


def has_instructions() -> bool:
    return Case().info().implementation == OWN


needs_avx2_alone = pytest.mark.skipif(
    not has_instructions(), reason=f"wants AVX2 and no AVX-512, oneDNN generates code for {library.isa()}"
)


def check(case: Case) -> None:
    """The kernel runs, and gives what the library gives, which sums in another order."""
    ours, theirs = with_and_without(case, OWN)
    np.testing.assert_allclose(ours, theirs, rtol=2e-5, atol=2e-5)


@needs_avx2_alone
@pytest.mark.parametrize("columns", [1, 7, 8, 9, 16, 23, 24, 25, 47, 48, 49, 200])
@pytest.mark.parametrize("rows", [2, 3, 4, 5, 123, 124, 125, 251])
def test_any_rows_and_columns(rows: int, columns: int) -> None:
    check(Case(rows, 19, columns))


@needs_avx2_alone
@pytest.mark.parametrize("depth", [1, 2, 3, 255, 256, 257, 511, 512, 1030])
def test_any_depth(depth: int) -> None:
    check(Case(9, depth, 53))
    check(Case(130, depth, 24, post_ops=(RELU,)))


@needs_avx2_alone
@pytest.mark.parametrize("added", ["", "like dst", "a row", "sum"])
@pytest.mark.parametrize("depth", [30, 700])
def test_post_ops(depth: int, added: str) -> None:
    for post_ops in ((), (RELU,), (GELU, ir.EltwisePostOp("linear", 0.5, 1.0))):
        check(Case(13, depth, 61, post_ops=post_ops, added=added))
        check(Case(13, depth, 61, bias=False, post_ops=post_ops, added=added))


@needs_avx2_alone
@pytest.mark.parametrize(("sample", "layout"), [((70,), "ab"), ((5, 3, 4), "abcd"), ((5, 3, 4), "acdb")])
def test_inner_products_of_samples_in_their_order(sample: tuple[int, ...], layout: str) -> None:
    check(Case(11, columns=37, sample=sample, layout=layout, post_ops=(RELU,)))


@needs_avx2_alone
@pytest.mark.parametrize("shape", [(200, 300, 700), (250, 300, 30), (5, 900, 900), (256, 300, 20)])
def test_every_number_of_threads_gives_the_same(shape: tuple[int, int, int]) -> None:
    results = []
    for threads in (1, 2, 3, 5, 8):
        with with_threads(threads):
            case = Case(*shape, post_ops=(GELU,))
            assert case.info().implementation == OWN
            results.append(case.run())
    for result in results[1:]:
        assert np.array_equal(result, results[0])


def test_one_row_is_a_row_product() -> None:
    assert Case(rows=1).info().implementation == "row_product"


def test_others_are_left_to_the_library() -> None:
    unknown = Case(post_ops=(ir.EltwisePostOp("mish", 1.0, 0.0),))
    assert unknown.info().implementation != OWN
    assert Case(rows=257).info().implementation != OWN


def test_instructions() -> None:
    """As with a processor that has AVX2 alone."""
    if library.isa().removeprefix("cpu_isa_") == "avx2":
        assert has_instructions()
    if "avx512" in library.isa():
        assert not has_instructions()
        run_again(__file__, "AVX2", "test_any_depth or test_post_ops")
