"""Winograd's convolutions against the direct sum in float64, and what they refuse."""

from __future__ import annotations

import numpy as np
import pytest
from blocks import BLOCKED
from program_builder import Builder, call, convolution, random
from winograd_cases import ALGORITHMS, LAYOUTS, PAIRS, RELU, Case, attributes, filters, run_with_less

from tvm_mxplan.byoc.onednn import library
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.core.program.dims import Symbol
from tvm_mxplan.testing.reference import relative_l2

SHAPES = [
    ((1, 3, 5, 5), 17, (0, 0, 0, 0)),
    ((1, 16, 4, 4), 16, (1, 1, 1, 1)),
    ((3, 17, 7, 10), 67, (1, 1, 1, 1)),
    ((2, 67, 13, 9), 3, (1, 0, 2, 1)),
    ((1, 1, 3, 3), 1, (0, 0, 0, 0)),
    ((1, 5, 1, 1), 7, (1, 1, 1, 1)),
    ((1, 20, 6, 31), 33, (4, 5, 6, 7)),
    ((2, 64, 30, 29), 64, (1, 1, 1, 1)),  # several chunks for each thread
    ((1, 200, 19, 21), 190, (1, 1, 1, 1)),  # filters too large for a core's cache: threads share chunks
    ((3, 208, 14, 14), 208, (1, 1, 1, 1)),
]


@pytest.mark.parametrize("src, outputs, padding", SHAPES)
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_shapes(algorithm, src, outputs, padding, threads):
    case = Case(algorithm, src, outputs, padding).convolve()
    case.check(case.direct())


@pytest.mark.parametrize("layouts", PAIRS)
@pytest.mark.parametrize("src, outputs, padding", [SHAPES[2], SHAPES[3], SHAPES[7]])
def test_layouts(src, outputs, padding, layouts):
    case = Case("winograd_f4", src, outputs, padding, layouts).convolve(RELU)
    case.check(np.maximum(case.direct(), 0))


def test_random_shapes():
    generator = np.random.default_rng(0)
    for _ in range(40):
        src = tuple(int(generator.integers(1, high)) for high in (4, 70, 30, 30))
        padding = tuple(int(generator.integers(0, 3)) for _ in range(4))
        if min(src[2] + padding[0] + padding[2], src[3] + padding[1] + padding[3]) < 3:
            continue
        algorithm = ALGORITHMS[int(generator.integers(2))]
        layouts = tuple(generator.choice(["acdb", "aBcd16b", BLOCKED], 2))
        case = Case(algorithm, src, int(generator.integers(1, 70)), padding, layouts).convolve()
        case.check(case.direct())


def test_random_groups_and_filters():
    generator = np.random.default_rng(1)
    for _ in range(40):
        groups, size = int(generator.integers(1, 5)), int(generator.choice([3, 5]))
        images, inputs, height, width = (int(generator.integers(1, high)) for high in (4, 40, 30, 30))
        src = (images, max(2, inputs) * groups, height + size, width + size)
        padding = tuple(int(generator.integers(0, 4)) for _ in range(4))
        algorithm = ALGORITHMS[int(generator.integers(2))] if size == 3 else "winograd_f2"
        outputs = groups * int(generator.integers(1, 40))
        case = Case(algorithm, src, outputs, padding, size=size, groups=groups).convolve()
        case.check(case.direct())


@pytest.mark.parametrize(
    "src, outputs, padding, size, groups",
    [
        ((1, 3, 5, 5), 17, (0, 0, 0, 0), 5, 1),
        ((3, 17, 7, 10), 67, (2, 2, 2, 2), 5, 1),
        ((2, 67, 13, 9), 3, (1, 0, 3, 2), 5, 1),
        ((1, 5, 1, 1), 7, (2, 2, 2, 2), 5, 1),
        ((1, 20, 6, 31), 33, (6, 5, 8, 7), 5, 1),
        ((1, 100, 19, 21), 290, (2, 2, 2, 2), 5, 1),  # threads share chunks
        ((1, 96, 26, 26), 256, (2, 2, 2, 2), 5, 2),  # AlexNet's second
        ((2, 51, 9, 12), 69, (2, 1, 0, 2), 5, 3),
    ],
)
def test_filters_of_five(src, outputs, padding, size, groups, threads):
    case = Case("winograd_f2", src, outputs, padding, size=size, groups=groups).convolve()
    case.check(case.direct())


GROUPS = [
    ((1, 6, 5, 5), 4, 2),
    ((2, 34, 7, 10), 66, 2),
    ((1, 51, 13, 9), 21, 3),
    ((3, 64, 10, 11), 96, 2),
    ((1, 128, 12, 12), 128, 32),
    ((1, 450, 12, 12), 600, 2),  # filters of which no thread should read all
    ((1, 720, 9, 9), 660, 3),
]


@pytest.mark.parametrize("src, outputs, groups", GROUPS)
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_groups(algorithm, src, outputs, groups, threads):
    case = Case(algorithm, src, outputs, groups=groups).convolve(RELU)
    case.check(np.maximum(case.direct(), 0))


@pytest.mark.parametrize("layouts", PAIRS)
@pytest.mark.parametrize("size", [3, 5])
def test_groups_in_blocks(size, layouts):
    case = Case("winograd_f2", (2, 96, 9, 10), 64, layouts=layouts, size=size, groups=2).convolve(RELU)
    case.check(np.maximum(case.direct(), 0))


def test_groups_that_fill_no_blocks():
    """Channels last has room for them; in blocks of src or dst they are refused."""
    for layouts, role in ((("aBcd16b", "acdb"), "src"), (("acdb", "aBcd16b"), "dst")):
        info = Case("winograd_f2", (1, 48, 9, 9), 48, layouts=layouts, groups=2).convolve().info()
        assert f"{role} in blocks where groups fill them, not with 24 channels to a group" in info.error


@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_group_has_its_own_operands(layout):
    """A factor for each channel, a residual stored as dst is, and a sum with what is there."""
    case = Case("winograd_f2", (2, 32, 9, 10), 96, (2, 2, 2, 2), (layout, layout), 5, 2)
    b = case.builder
    factor, residual, held = random(1, 96, 1, 1), random(*case.shape, seed=2), random(*case.shape, seed=3)
    operands = [b.constant(factor), b.reorder(b.input(case.shape), layout)]
    case.dst = b.view(b.reorder(b.input(case.shape), layout), case.shape, layout)
    multiply, add = (
        ir.BinaryPostOp(name, value) for name, value in zip(("mul", "add"), operands, strict=True)
    )
    case.convolve(multiply, add, ir.SumPostOp(0.5), RELU)
    case.check(np.maximum(case.direct() * factor + residual + 0.5 * held, 0), residual, held)


@pytest.mark.parametrize("algorithm, size", [("winograd_f2", 3), ("winograd_f4", 3), ("winograd_f2", 5)])
@pytest.mark.parametrize("channels", [64, 512, 2048])
def test_the_stated_error_holds_beside_that_of_the_direct_sum(algorithm, size, channels):
    src = (1, channels, 8, 8)
    direct, fast = (Case(name, src, 32, size=size).convolve() for name in ("direct", algorithm))
    expected = fast.direct()
    rounding = relative_l2(direct.builder.run(direct.x), expected)
    error = relative_l2(fast.builder.run(fast.x), expected)
    assert error <= rounding + fast.info().relative_error


# --- memory, weights, symbols ------------------------------------------------------------------------------


def test_filters_are_packed_once():
    case = Case("winograd_f4", (1, 17, 9, 9), 35).convolve()
    module = case.builder.module()
    for _ in range(2):
        call(module, "case", case.x, np.empty(case.shape, "float32"))
    stats = library.stats(module)
    assert stats["packed_weight_bytes"] == case.info().weights_bytes >= 36 * 17 * 35 * 4
    (specialization,) = stats["specializations"]
    steps = {step["kind"]: step for step in specialization["steps"]}
    assert steps["convolution"]["implementation"] == "winograd_f4"
    assert steps["convolution"]["scratchpad_bytes"] == case.info().scratchpad_bytes > 0


def test_one_constant_serves_both_algorithms():
    """Direct and Winograd's forms of the same filters do not mix."""
    x, w = random(1, 16, 9, 9), filters(16, 16)
    b = Builder("both")
    src, weights = b.reorder(b.input(x.shape), "acdb"), b.constant(w)
    for algorithm in ("direct", *ALGORITHMS):
        dst = b.local(x.shape, "acdb")
        b.step(attributes(algorithm), src=src, weights=weights, dst=dst)
        src = dst
    b.finish(src)
    expected = x
    for _ in range(3):
        expected = convolution(expected, w, attributes("direct"))
    assert relative_l2(b.run(x), expected) < 1e-5


def test_weights_in_another_layout():
    case = Case("winograd_f4", (1, 17, 9, 9), 35)
    b = case.builder
    weights = b.constant(case.w.transpose(1, 0, 3, 2), layout="badc", shape=case.w.shape)
    b.step(case.attrs, src=case.src, weights=weights, dst=case.dst)
    b.finish(case.dst)
    case.check(convolution(case.x, case.w, case.attrs))


def test_symbolic_batch():
    b, n = Builder("symbolic"), Symbol("n")
    b.symbols.append(ir.SymbolBinding("n", 0, 0))
    w = filters(17, 3)
    dst = b.local((n, 17, 9, 9), "acdb")
    src = b.reorder(b.input((n, 3, 9, 9)), "acdb")
    b.step(attributes("winograd_f4"), src=src, weights=b.constant(w), dst=dst)
    b.finish(dst)
    module = b.module()
    for batch in (2, 0, 1, 5):
        x, y = random(batch, 3, 9, 9), np.full((batch, 17, 9, 9), np.nan, "float32")
        call(module, "symbolic", x, y)
        if batch:
            assert relative_l2(y, convolution(x, w, attributes("direct"))) < 2e-6
    (once,) = {step.weights_bytes for step in library.describe(b.build(), [1]).steps if step.weights_bytes}
    assert library.stats(module)["packed_weight_bytes"] == once


@pytest.mark.parametrize(
    "algorithm, src, size, groups",
    [
        ("winograd_f4", (2, 19, 9, 10), 3, 1),
        ("winograd_f4", (1, 200, 19, 21), 3, 1),
        ("winograd_f2", (2, 19, 9, 10), 5, 1),
        ("winograd_f2", (1, 50, 19, 21), 5, 2),
    ],
)
def test_memory_under_watch(algorithm, src, size, groups):
    layout = "aBcd16b" if groups == 1 else "acdb"
    case = Case(algorithm, src, 200, layouts=(layout, layout), size=size, groups=groups).convolve(RELU)
    library.set_debug(True)
    try:
        case.check(np.maximum(case.direct(), 0))
    finally:
        library.set_debug(False)


# --- instruction sets --------------------------------------------------------------------------------------

SCRIPT = """
import numpy as np
from winograd_cases import Case, RELU
from tvm_mxplan.byoc.onednn import library
for layout in ("acdb", "aBcd16b", "aBcd8b"):
    for algorithm in ("winograd_f2", "winograd_f4"):
        case = Case(algorithm, (2, 19, 11, 9), 37, (1, 0, 1, 2), (layout, layout)).convolve(RELU)
        case.check(np.maximum(case.direct(), 0))
    for src, outputs, groups in (((2, 19, 11, 9), 37, 1), ((1, 96, 9, 9), 64, 2)):
        case = Case("winograd_f2", src, outputs, (2, 1, 0, 2), (layout, layout), 5, groups).convolve(RELU)
        case.check(np.maximum(case.direct(), 0))
print(library.isa())
"""


@pytest.mark.slow
@pytest.mark.parametrize("isa", ["AVX2", "SSE41"])
def test_other_instruction_sets(isa):
    run_with_less(SCRIPT, isa)


@pytest.mark.parametrize("size", [30, 64])  # each thread its chunks; all threads one after the other
def test_subnormal_numbers_are_zeros(size, threads):
    """Saturated activations are full of them, and products with them take some hundred cycles each."""
    case = Case("winograd_f4", (1, size, 20, 20), size)
    case.x[...] = np.where(case.x > 0, case.x, np.float32(1e-40))
    case.bias[...] = 0
    positive = np.maximum(case.x, np.float32(1e-38))
    positive[positive == np.float32(1e-38)] = 0
    case.convolve()
    case.check(convolution(positive, case.w, case.attrs, case.bias))
    case.x[...] = 1e-40
    assert not np.any(case.builder.run(case.x))
    assert np.float32(1e-40) * np.float32(0.5) != 0, "the thread that called keeps subnormal numbers"
