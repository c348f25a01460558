"""Rows of 8-bit integers times a constant matrix by the runtime's own kernel, for AVX2 without VNNI.

Every run is held against the float64 reference by ``Builder.run_stored``; the library's own kernel, reference
code there, has the same results but for numbers half way between two integers.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from less_instructions import run_again
from program_builder import Builder
from single_steps import with_and_without

from tvm_mxplan.byoc.onednn import library
from tvm_mxplan.core.description import StepInfo
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.execution.threads import with_threads

OWN = "integers_rows:avx2_words"
U8, S8, F32 = "uint8", "int8", "float32"
GELU = ir.EltwisePostOp("gelu_erf", 0.0, 0.0)


@dataclass(frozen=True)
class Case:
    """Rows times a constant matrix, or samples in a layout times filters."""

    rows: int = 7
    depth: int = 40
    columns: int = 50
    types: tuple[str, str] = (U8, U8)
    zeros: tuple[int, int] = (131, 9)
    each: bool = True
    turned: bool = False
    sample: tuple[int, ...] = ()
    layout: str = "ab"
    added: str = ""
    post_ops: tuple[ir.PostOp, ...] = ()

    @property
    def src(self) -> tuple[int, ...]:
        return (self.rows, *(self.sample or (self.depth,)))

    def builder(self) -> Builder:
        rng, b = np.random.default_rng([self.rows, self.depth, self.columns]), Builder()
        depth = int(np.prod(self.src[1:]))
        weights = rng.integers(-128, 128, (depth, self.columns)).astype("int8")
        scales = rng.uniform(0.5, 2.0, self.columns if self.each else 1) / (74 * 74 * depth**0.5 * 0.02)
        bias = rng.standard_normal(self.columns).astype("float32")
        roles: dict[str, Any] = {"src": b.input(self.src, self.layout, self.types[0])}
        if self.sample:
            roles["weights"] = b.constant(weights.T.reshape(self.columns, *self.sample))
        elif self.turned:
            roles["weights"] = b.view(b.constant(weights.T.copy()), weights.shape, "ba")
            b.values[-1] = replace(b.values[-1], dtype="int8")
        else:
            roles["weights"] = b.constant(weights)
        roles["src_scale"] = b.constant(np.float32([0.02]))
        roles["weights_scale"] = b.constant(scales.astype("float32"))
        roles["src_zero_point"] = b.constant(np.int32([self.zeros[0]]))
        roles["bias"] = b.constant(bias if self.sample else bias.reshape(1, -1))
        if self.types[1] in (U8, S8):
            roles["dst_scale"] = b.constant(np.float32([1 / 64]))
            roles["dst_zero_point"] = b.constant(np.int32([self.zeros[1]]))
        post_ops = list(self.post_ops)
        if self.added:
            post_ops.append(ir.BinaryPostOp("add", b.input((self.rows, self.columns), "ab", self.added)))
        roles["dst"] = b.output((self.rows, self.columns), "ab", self.types[1])
        b.step(ir.InnerProduct() if self.sample else ir.MatMul(), post_ops, **roles)
        return b

    def info(self) -> StepInfo:
        (info,) = library.describe(self.builder().build()).steps
        assert not info.error, info.error
        return info

    def run(self) -> np.ndarray:
        rng = np.random.default_rng(7)

        def drawn(shape: tuple[int, ...], dtype: str) -> np.ndarray:
            if dtype == F32:
                return rng.standard_normal(shape).astype(F32)
            limits = np.iinfo(dtype)
            return rng.integers(limits.min, limits.max + 1, shape).astype(dtype)

        stored = self.src if self.layout[0:2] == "ab" else (self.rows, *self.sample[1:], self.sample[0])
        inputs = [drawn(stored, self.types[0])]
        if self.added:
            inputs.append(drawn((self.rows, self.columns), self.added))
        return self.builder().run_stored(*inputs, shape=(self.rows, self.columns))


needs_words = pytest.mark.skipif(
    Case().info().implementation != OWN,
    reason=f"wants AVX2 and no VNNI, oneDNN generates code for {library.isa()}",
)


def check(case: Case) -> np.ndarray:
    ours, theirs = with_and_without(case, OWN)
    apart = np.abs(ours.astype("float64") - theirs)
    if case.types[1] == F32:
        assert np.all(apart <= 2e-6 * (1 + np.abs(theirs)))
    else:
        assert apart.max(initial=0) <= 1 and np.mean(apart > 0) < 1e-3
    return ours


@needs_words
@pytest.mark.parametrize("types", [(U8, U8), (S8, S8), (U8, F32), (S8, U8)])
@pytest.mark.parametrize("rows", [1, 2, 5, 6, 7, 49, 130])
@pytest.mark.parametrize(("depth", "columns"), [(1, 1), (19, 7), (40, 16), (65, 17), (300, 130)])
def test_any_shape_and_types(depth: int, columns: int, rows: int, types: tuple[str, str]) -> None:
    check(Case(rows, depth, columns, types, (-4 if types[0] == S8 else 131, 5)))


@needs_words
@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("each", [False, True])
def test_orders_and_scales_of_weights(each: bool, turned: bool) -> None:
    check(Case(9, 70, 33, each=each, turned=turned))


@needs_words
@pytest.mark.parametrize("layout", ["abcd", "acdb"])
def test_samples_in_their_order(layout: str) -> None:
    check(Case(4, columns=35, sample=(12, 5, 3), layout=layout))


@needs_words
@pytest.mark.parametrize("added", [U8, S8, F32])
@pytest.mark.parametrize("dst", [U8, S8, F32])
def test_tensors_of_any_type_are_added(dst: str, added: str) -> None:
    check(Case(9, 70, 37, (U8, dst), (3, 5), added=added, post_ops=(GELU,)))


@needs_words
@pytest.mark.parametrize("shape", [(3, 500, 300), (200, 300, 700), (600, 64, 40)])
def test_threads_change_nothing(shape: tuple[int, int, int]) -> None:
    results = []
    for threads in (1, 2, 3, 5):
        with with_threads(threads):
            results.append(Case(*shape).run())
    assert all(np.array_equal(results[0], one) for one in results[1:])


@needs_words
def test_sums_at_the_ends_of_their_types_are_exact() -> None:
    """Instructions for pairs of bytes would cut them off."""
    b, depth, columns = Builder(), 64, 24
    roles: dict[str, Any] = {"src": b.input((3, depth), "ab", U8)}
    roles["weights"] = b.constant(np.full((depth, columns), 127, "int8"))
    roles["src_scale"] = roles["weights_scale"] = b.constant(np.ones(1, "float32"))
    roles["dst"] = b.output((3, columns), "ab", F32)
    b.step(ir.MatMul(), [], **roles)
    assert library.describe(b.build()).steps[0].implementation == OWN
    assert np.all(b.run_stored(np.full((3, depth), 255, U8), shape=(3, columns)) == 255 * 127 * depth)


@pytest.mark.skipif("avx512" not in library.isa(), reason="the tests above run with AVX2 alone")
def test_instructions() -> None:
    """As with a processor that has AVX2 alone."""
    run_again(__file__, "AVX2", "test_orders or test_tensors or test_sums")
