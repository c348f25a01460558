"""Functions that a stage of the runtime's own applies behind oneDNN's primitives, with AVX2 alone.

Every run is held against the float64 reference by ``Builder.run``.
"""

from __future__ import annotations

import numpy as np
import pytest
from less_instructions import run_again
from program_builder import Array, Builder, random

from tvm_mxplan.byoc.onednn import library
from tvm_mxplan.core.description import StepInfo
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.execution.threads import with_threads

OWN = "functions:avx2"
TANH, GELU = ir.EltwisePostOp("tanh", 0.0, 0.0), ir.EltwisePostOp("gelu_tanh", 0.0, 0.0)
RELU, LINEAR = ir.EltwisePostOp("relu", 0.0, 0.0), ir.EltwisePostOp("linear", 2.0, 1.0)


def convolution(layout: str, *post_ops: ir.PostOp, channels: int = 19, size: int = 7) -> Builder:
    """A 3x3 convolution with a bias between reorders to a layout and back."""
    b = Builder()
    src, dst = b.reorder(b.input((2, 5, size, size)), layout), b.local((2, channels, size, size), layout)
    weights, bias = b.constant(random(channels, 5, 3, 3)), b.constant(random(channels))
    attrs = ir.Convolution((1, 1), (1, 1, 1, 1), (1, 1), 1)
    b.step(attrs, post_ops, src=src, weights=weights, bias=bias, dst=dst)
    b.finish(dst)
    return b


def matmul(rows: int, *post_ops: ir.PostOp) -> Builder:
    b = Builder()
    roles = {"src": b.input((rows, 24)), "weights": b.constant(random(24, 33)), "dst": b.output((rows, 33))}
    b.step(ir.MatMul(), post_ops, **roles)
    return b


def info(b: Builder) -> StepInfo:
    """Of the one step that is no reorder."""
    told = library.describe(b.build()).steps
    (found,) = (one for one, step in zip(told, b.steps, strict=True) if step.kind != "reorder")
    assert not found.error, found.error
    return found


def is_apart(b: Builder) -> bool:
    return OWN in info(b).implementation.split("+")


def run(b: Builder) -> Array:
    assert is_apart(b)
    (src,) = (value for value in b.values if value.kind == "input")
    return b.run(3 * random(*src.shape))  # type: ignore[arg-type]


needs_avx2_alone = pytest.mark.skipif(
    not is_apart(convolution("acdb", TANH)),
    reason=f"wants AVX2 and no AVX-512, oneDNN generates code for {library.isa()}",
)


@needs_avx2_alone
@pytest.mark.parametrize("function", [TANH, GELU])
@pytest.mark.parametrize("layout", ["abcd", "acdb", "aBcd8b"])
@pytest.mark.parametrize(("channels", "size"), [(19, 7), (8, 3), (7, 1), (16, 40)])
def test_convolutions(layout: str, function: ir.EltwisePostOp, channels: int, size: int) -> None:
    run(convolution(layout, function, channels=channels, size=size))


@needs_avx2_alone
@pytest.mark.parametrize("function", [TANH, GELU])
@pytest.mark.parametrize("before", [(), (RELU,), (LINEAR, RELU)])
def test_what_stands_before_stays_with_the_primitive(
    function: ir.EltwisePostOp, before: tuple[ir.PostOp, ...]
) -> None:
    run(matmul(300, *before, function))


@needs_avx2_alone
def test_a_sum_is_added_before() -> None:
    b = Builder()
    held = b.view(b.output((40, 40)), (40, 40))
    b.step(ir.Reorder(), src=b.input((40, 40)), dst=held)
    roles = {"src": b.input((40, 40)), "weights": b.input((40, 40)), "dst": b.view(held, (40, 40))}
    b.step(ir.MatMul(), [ir.SumPostOp(0.5), GELU], **roles)
    assert is_apart(b)
    b.run(*(random(40, 40, seed=seed) for seed in range(3)))


@needs_avx2_alone
def test_sums_of_two_tensors() -> None:
    b = Builder()
    roles = {"src": b.input((3, 70)), "src1": b.input((3, 70)), "dst": b.output((3, 70))}
    b.step(ir.Binary("add"), [TANH], **roles)
    assert is_apart(b)
    b.run(random(3, 70, seed=1), random(3, 70, seed=2))


@needs_avx2_alone
def test_every_number_of_threads_gives_the_same() -> None:
    results = []
    for threads in (1, 2, 3, 5):
        with with_threads(threads):
            results.append(run(convolution("acdb", GELU, channels=67, size=31)))
    for result in results[1:]:
        assert np.array_equal(result, results[0])


@needs_avx2_alone
def test_results_keep_their_digits_near_zero() -> None:
    """As tanh by a quotient of exponentials would not."""
    b = Builder()
    roles = {"src": b.input((300, 1)), "weights": b.constant(np.ones((1, 8), "float32"))}
    b.step(ir.MatMul(), [TANH], **roles, dst=b.output((300, 8)))
    assert is_apart(b)
    x = np.geomspace(1e-20, 10, 300, dtype="float32").reshape(300, 1)
    expected = np.tanh(x.astype("float64")) * np.ones((1, 8))
    np.testing.assert_allclose(b.run(x), expected, rtol=3e-7)


@needs_avx2_alone
@pytest.mark.parametrize("whole", [False, True])
def test_where_it_is_refused_the_primitive_has_the_function(whole: bool) -> None:
    b = convolution("acdb", GELU, channels=23)
    before = info(b)
    library.refuse(before.descriptor, before.implementation if whole else OWN, "tried")
    try:
        after = info(b)
        assert after.implementation == before.implementation.removesuffix(f"+{OWN}")
        assert [one.reason for one in after.refused] == ["tried"]
        b.run(random(2, 5, 7, 7))
    finally:
        library.forget_refusals()


def test_functions_that_something_follows_are_the_primitives() -> None:
    assert not is_apart(convolution("acdb", TANH, LINEAR))
    assert not is_apart(convolution("acdb", RELU))
    assert not is_apart(convolution("acdb"))


@needs_avx2_alone
def test_kernels_of_our_own_apply_theirs_themselves() -> None:
    assert info(matmul(1, GELU)).implementation == "row_product"
    assert info(matmul(20, GELU)).implementation == "packed_product:avx2"


def test_instructions() -> None:
    """As with a processor that has AVX2 alone."""
    if library.isa().removeprefix("cpu_isa_") == "avx2":
        assert is_apart(convolution("acdb", TANH))
    if "avx512" in library.isa():
        assert not is_apart(convolution("acdb", TANH))
        run_again(__file__, "AVX2", "test_convolutions or test_a_sum or test_results")
