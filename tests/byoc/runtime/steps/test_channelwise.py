"""Numbers in bfloat16 that their channel scales and shifts by our own kernel, held against float64.

Every run is held against the reference of steps by ``Builder.run_stored``.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, replace

import numpy as np
import pytest
from less_instructions import run_again
from program_builder import Array, Builder, call
from single_steps import with_and_without

from tvm_mxplan.byoc.onednn import library
from tvm_mxplan.byoc.onednn.backend import OneDNN
from tvm_mxplan.core.description import StepInfo
from tvm_mxplan.core.element_types import numpy_type
from tvm_mxplan.core.layout.layout import parse_layout
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.execution.threads import with_threads

OWN = "channelwise:avx512_bf16"
F32, BF16 = "float32", "bfloat16"
RELU, CLIP = ir.EltwisePostOp("relu", 0.0, 0.0), ir.EltwisePostOp("clip", -0.5, 0.75)
LEAKY, SWISH = ir.EltwisePostOp("relu", 0.1, 0.0), ir.EltwisePostOp("swish", 1.0, 0.0)


@dataclass(frozen=True)
class Case:
    """input -> vectors along ``axis`` -> functions of one -> output."""

    shape: tuple[int, ...] = (2, 40, 7, 9)
    layout: str = "acdb"
    axis: int = 1
    form: str = "mul add"
    types: tuple[str, str] = (BF16, BF16)
    post_ops: tuple[ir.PostOp, ...] = (RELU,)
    constant: bool = True

    @property
    def vector(self) -> tuple[int, ...]:
        return tuple(n if i == self.axis else 1 for i, n in enumerate(self.shape))

    @property
    def stored(self) -> tuple[int, ...]:
        return tuple(self.shape[i] for i in parse_layout(self.layout).order)

    def builder(self) -> Builder:
        rng, b = np.random.default_rng([3, *self.shape]), Builder()
        src = b.input(self.shape, self.layout, self.types[0])
        first, *rest = self.form.split()

        def operand() -> int:
            if not self.constant:
                return b.input(self.vector, "abcdef"[: len(self.shape)], F32)
            return b.constant(rng.uniform(-2, 2, self.vector).astype(F32))

        second = operand()
        post_ops = [*(ir.BinaryPostOp(name, operand()) for name in rest), *self.post_ops]
        b.step(
            ir.Binary(first),
            post_ops,
            src=src,
            src1=second,
            dst=b.output(self.shape, self.layout, self.types[1]),
        )
        return b

    def info(self) -> StepInfo:
        (found,) = library.describe(self.builder().build()).steps
        assert not found.error, found.error
        return found

    def run(self) -> Array:
        rng = np.random.default_rng(7)
        inputs = [rng.standard_normal(self.stored).astype(numpy_type(self.types[0]))]
        if not self.constant:
            vectors = len(self.form.split())
            inputs += [rng.uniform(-2, 2, self.vector).astype(F32) for _ in range(vectors)]
        return self.builder().run_stored(*inputs, shape=self.stored)


needs_bfloat16 = pytest.mark.skipif(bool(OneDNN().lacks(BF16)), reason=OneDNN().lacks(BF16))
needs_instructions = pytest.mark.skipif(
    bool(OneDNN().lacks(BF16)) or Case().info().implementation != OWN,
    reason="kernels of bfloat16 want AVX-512 with instructions for it",
)


def check(case: Case) -> None:
    """Beside float64, what the library gives but for one rounding of the result."""
    ours, theirs = (one.astype("float64") for one in with_and_without(case, OWN))
    one = 2.0**-7 if case.types[1] == BF16 else 2.0**-22
    assert np.all(np.abs(ours - theirs) <= one * (1e-2 + np.abs(theirs)) + 1e-6)


@needs_instructions
@pytest.mark.parametrize("types", [(BF16, BF16), (BF16, F32), (F32, BF16)])
@pytest.mark.parametrize("channels", [1, 2, 15, 16, 17, 63, 64, 65, 100, 257])
def test_any_channels_and_types(channels: int, types: tuple[str, str]) -> None:
    if channels > 1:  # one is no vector
        check(Case((2, channels, 5, 7), types=types))
    else:
        assert Case((2, channels, 5, 7), types=types).info().implementation != OWN


@needs_instructions
@pytest.mark.parametrize("post_ops", [(), (RELU,), (CLIP,), (RELU, CLIP), (CLIP, RELU)])
@pytest.mark.parametrize("form", ["mul", "add", "mul add"])
def test_functions(form: str, post_ops: tuple[ir.PostOp, ...]) -> None:
    check(Case(form=form, post_ops=post_ops))


@needs_instructions
@pytest.mark.parametrize(
    ("shape", "layout", "axis"),
    [
        ((3, 33), "ab", 1),
        ((2, 5, 48), "abc", 2),
        ((2, 48, 5), "acb", 1),
        ((1, 20, 3, 4, 5), "acdeb", 1),
        ((2, 3, 4, 40), "abcd", 3),
        ((1, 40, 1, 1), "abcd", 1),
    ],
)
def test_any_rank(shape: tuple[int, ...], layout: str, axis: int) -> None:
    check(Case(shape, layout, axis))


@needs_instructions
def test_vectors_of_the_call() -> None:
    check(Case(constant=False))


@needs_instructions
@pytest.mark.parametrize("threads", [1, 2, 5])
@pytest.mark.parametrize("shape", [(1, 64, 112, 112), (3, 1000, 7, 7), (1, 70000, 1, 2)])
def test_threads_share_rows(shape: tuple[int, ...], threads: int) -> None:
    with with_threads(threads):
        check(Case(shape))


@needs_instructions
def test_what_is_no_number_stays_and_infinities_are_cut() -> None:
    case = Case((1, 20, 3, 3), post_ops=(CLIP,), form="mul")
    x = np.ones(case.stored, numpy_type(BF16))
    x[0, 1, 1, 3], x[0, 2, 2, 7] = np.nan, np.inf
    result = np.zeros(case.stored, x.dtype)
    b = case.builder()
    call(b.module(), b.name, x, result)
    assert np.isnan(result[0, 1, 1, 3]) and np.isnan(result).sum() == 1
    assert result[0, 2, 2, 7] in (0.75, -0.5)


@needs_instructions
def test_a_result_of_any_layout_stands_as_its_source_does() -> None:
    asked = Case().builder()
    at = next(i for i, value in enumerate(asked.values) if value.kind == "output")
    asked.values[at] = replace(asked.values[at], kind="local", layout="any", index=-1)
    description = library.describe(asked.build())
    assert description.steps[0].implementation == OWN
    assert description.values[at].layout == "acdb"


@needs_bfloat16
@pytest.mark.parametrize(
    "case",
    [
        Case(types=(F32, F32)),
        Case(layout="abcd"),
        Case((2, 32, 7, 9), layout="aBcd16b"),
        Case(axis=3),
        Case(form="mul sub"),
        Case(form="add add"),
        Case(post_ops=(SWISH,)),
        Case(post_ops=(LEAKY,)),
    ],
    ids=["float32", "plain", "blocks", "another axis", "sub", "two sums", "swish", "leaky"],
)
def test_others_are_left_to_the_library(case: Case) -> None:
    assert case.info().implementation != OWN


def test_instructions() -> None:
    if os.environ.get("ONEDNN_MAX_CPU_ISA") == "AVX512_CORE":
        assert Case().info().implementation != OWN
    else:
        run_again(__file__, "AVX512_CORE", "test_instructions")
