"""The model of costs: the differences between kernels and layouts that choices rest on, one case each."""

from __future__ import annotations

import numpy as np
import pytest
from costs_by_hand import MODEL, info, model, rates

from tvm_mxplan.byoc.onednn.backend import OneDNN
from tvm_mxplan.byoc.onednn.costs.kernels import exposed_us, reread_weights_us
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.core.program.builder import ProgramBuilder
from tvm_mxplan.core.step_facts import StepFacts, reorder_facts
from tvm_mxplan.passes.layout.candidates import in_layout

LAST, BLOCKED = "acdb", "aBcd16b"


def cost(program: ir.Program, layout: str, implementation: str, narrow_share: float | None = None) -> float:
    (step,) = program.steps
    by = MODEL if narrow_share is None else model(narrow=narrow_share)
    return by(program, step, in_layout(program, step, layout), info(implementation))


def convolution(
    channels: int, outputs: int, size: int, kernel: int = 1, batch: int = 1, groups: int = 1
) -> ir.Program:
    b = ProgramBuilder("one")
    x = b.port("input", "x", (batch, channels, size, size), "float32")
    shape: tuple[int, ...] = (outputs, channels, kernel, kernel)
    if groups > 1:
        shape = (groups, outputs // groups, channels // groups, kernel, kernel)
    attrs = ir.Convolution((1, 1), (kernel // 2,) * 4, (1, 1), groups)
    operands = [("src", x), ("weights", b.constant(np.zeros(shape, np.float32)))]
    b.step("conv", attrs, (batch, outputs, size, size), operands)
    return b.finish()


def image_step(attrs: ir.Attributes, shape: tuple[int, ...]) -> ir.Program:
    b = ProgramBuilder("one")
    b.step("step", attrs, shape, [("src", b.port("input", "x", shape, "float32"))])
    return b.finish()


def test_output_channels_come_in_whole_vectors() -> None:
    at = {n: cost(convolution(256, n, 14), LAST, "brgconv_1x1:avx512_core") for n in (17, 24, 32, 33)}
    assert at[17] == at[24] == at[32] < at[33]


@pytest.mark.parametrize(
    ("outputs", "groups", "share", "gain"),
    [
        (24, 1, 0.93, 32 / 24 * 0.93),
        (136, 4, 0.93, 0.93),
        (32, 1, 0.93, 0.93),
        (25, 1, 0.93, 0.93),
        (24, 1, 0.5, 32 / 24 * 0.5),
    ],
)
def test_narrow_vectors_leave_less_of_them_empty(
    outputs: int, groups: int, share: float, gain: float
) -> None:
    program = convolution(64 * groups, outputs, 14, groups=groups)
    wide, narrow = (cost(program, LAST, f"brgconv_1x1:{isa}", share) for isa in ("avx512_core", "avx2"))
    assert wide / narrow == pytest.approx(gain)


def test_narrow_vectors_load_more_in_depthwise_convolutions() -> None:
    program = convolution(144, 144, 56, 3, groups=144)
    wide, narrow, least = (
        cost(program, LAST, f"jit_dw:{isa}", 0.93) for isa in ("avx512_core", "avx2", "sse41")
    )
    assert 1.3 * wide < narrow < 0.5 * least


def test_brgconv_reads_odd_depths_as_they_are() -> None:
    odd, whole = convolution(24, 64, 14, 5), convolution(32, 64, 14, 5)
    assert cost(odd, LAST, "brgconv:avx512_core") < cost(whole, LAST, "brgconv:avx512_core")
    assert cost(odd, BLOCKED, "jit:avx512_core") == cost(whole, BLOCKED, "jit:avx512_core")


@pytest.mark.parametrize(("size", "ratio"), [(7, 1.25), (28, 1.05)])
def test_jit_reads_many_weights_again_for_each_row(size: int, ratio: float) -> None:
    """That shows in small images, whose rows are short."""
    program = convolution(512, 512, size, 3)
    found = cost(program, BLOCKED, "jit:avx512_core") / cost(program, LAST, "brgconv:avx512_core")
    assert found == pytest.approx(ratio, abs=0.05)


@pytest.mark.parametrize("batch", [1, 3])
def test_weights_are_read_again_for_each_row_of_each_image(batch: int) -> None:
    """As many bytes as rows times weights, where caches do not hold these."""
    program = convolution(512, 512, 7, 3, batch)
    (step,) = program.steps
    weights = 4 * 512 * 512 * 9

    def reread(program: ir.Program, cache_bytes: int) -> float:
        facts = StepFacts(program, step, in_layout(program, step, BLOCKED), info("jit:avx512_core"))
        return reread_weights_us(facts, rates(cache_bytes=cache_bytes))

    once = reread(convolution(512, 512, 7, 3), 2 * weights - 2)
    assert reread(program, 2 * weights - 2) == pytest.approx(batch * once)
    assert once > 7 * weights / 400e3
    assert reread(program, 2 * weights) == 0.0


def test_brgconv_1x1_hides_less_of_memory() -> None:
    small, large = convolution(96, 32, 28), convolution(96, 32, 56, batch=8)
    kernels = (LAST, "brgconv_1x1:avx512_core"), (BLOCKED, "jit_1x1:avx512_core")
    last, blocked = (cost(small, *kernel) for kernel in kernels)
    assert last < blocked
    last, blocked = (cost(large, *kernel) for kernel in kernels)
    assert last > 1.2 * blocked


@pytest.mark.parametrize("groups", [1, 2])
def test_what_pointwise_convolutions_show_of_memory(groups: int) -> None:
    """Half of what they move beyond 4 MiB, in channels last; windows and blocks hide all of it."""
    large, small = (convolution(64, 256, size, batch=8, groups=groups) for size in (56, 14))
    moved = 4 * 8 * (64 + 256) * 56 * 56
    for program, layout, expected in (
        (large, LAST, 0.5 * (moved - (4 << 20)) / 20e3),
        (small, LAST, 0.0),
        (large, BLOCKED, 0.0),
        (large, "abcd", 0.0),
        (convolution(64, 256, 56, 3, batch=8, groups=groups), LAST, 0.0),
    ):
        (step,) = program.steps
        layouts = in_layout(program, step, layout)
        facts = StepFacts(program, step, layouts, info("brgconv_1x1:avx512_core"))
        assert exposed_us(facts, rates(gbytes=20.0)) == pytest.approx(expected)


NEIGHBOURS = [ir.LRN(5, 1e-4, 0.75, 1.0), ir.Pooling("max", (3, 3), (1, 1), (1, 1), (1, 1))]


@pytest.mark.parametrize("attrs", NEIGHBOURS)
def test_neighbours_are_read_faster_in_channels_last(attrs: ir.Attributes) -> None:
    program = image_step(attrs, (1, 512, 13, 13))
    assert 1.3 * cost(program, LAST, "jit:avx512_core") < cost(program, BLOCKED, "jit:avx512_core")


def test_depthwise_in_channels_last() -> None:
    program = convolution(272, 272, 14, 3, groups=272)
    assert cost(program, LAST, "brdgmm_dw:avx512_core") < cost(program, BLOCKED, "jit_dw:avx512_core")


def test_what_fits_caches_moves_at_twice_the_speed() -> None:
    relu = ir.Eltwise("relu", 0.0, 0.0)
    half, whole, double = (
        cost(image_step(relu, (1, 64, 64, rows)), LAST, "jit:avx512_core") for rows in (32, 64, 128)
    )
    assert whole == pytest.approx(2 * half)
    assert double == pytest.approx(3 * whole)


def test_large_images_show_behind_pointwise_convolutions_in_channels_last() -> None:
    """Whatever computes them there, so that no other implementation is preferred for it; not in blocks."""
    small, large = convolution(64, 256, 14), convolution(64, 256, 56, batch=8)
    work = 8 * (56 / 14) ** 2
    for name in ("brgconv_1x1", "jit_1x1", "jit"):
        implementation = f"{name}:avx512_core"
        assert cost(large, LAST, implementation) > 1.1 * work * cost(small, LAST, implementation)
        assert cost(large, BLOCKED, implementation) == pytest.approx(
            work * cost(small, BLOCKED, implementation)
        )
    best, other = (cost(large, LAST, f"{name}:avx512_core") for name in ("brgconv_1x1", "jit"))
    assert best < other


# --- what kernels reach, as the table of the module has it ------------------------------------------------


def reached(
    program: ir.Program, layout: str, implementation: str, gflops: float = 100.0, **machine: float
) -> float:
    """The share of the peak at which a step's own operations are done, with memory out of the way."""
    (step,) = program.steps
    weights = program.values[step.operand("weights")].shape
    result = program.values[step.operand("dst" if step.kind == "convolution" else "src")].shape
    groups = step.attrs.groups  # type: ignore[union-attr]
    operations = 2.0 * np.prod(result) * np.prod(weights) / (weights[0] * (weights[1] if groups > 1 else 1))
    by = model(gflops=gflops, gbytes=1e9, narrow=machine.get("narrow", 0.5))
    layouts = in_layout(program, step, layout)
    return float(operations / gflops / 1e3 / by(program, step, layouts, info(implementation)))


@pytest.mark.parametrize(
    ("kernel", "implementation", "layout", "share"),
    [
        (3, "brgconv:avx512_core", LAST, 0.93),
        (3, "jit:avx512_core", BLOCKED, 0.88),
        (1, "jit_1x1:avx512_core", BLOCKED, 0.87),
        (1, "brgconv_1x1:avx512_core", LAST, 0.92),
        (3, "gemm:jit", "abcd", 0.3),
        (3, "brgconv:avx2", LAST, 0.93 * 0.5),
        (3, "jit:sse41", LAST, 0.88 * 0.5 * 0.3),
    ],
)
@pytest.mark.parametrize("gflops", [100.0, 350.0])
def test_shares_of_the_peak(
    kernel: int, implementation: str, layout: str, share: float, gflops: float
) -> None:
    program = convolution(64, 128, 14, kernel)
    assert reached(program, layout, implementation, gflops) == pytest.approx(share)
    batch = convolution(64, 128, 14, kernel, batch=3)
    assert reached(batch, layout, implementation, gflops) == pytest.approx(share)


@pytest.mark.parametrize(
    ("implementation", "layout", "size", "share"),
    [
        ("brdgmm_dw:avx512_core", LAST, 28, 0.25),
        ("jit_dw:avx512_core", LAST, 28, 0.3),
        ("jit_dw:avx512_core", LAST, 14, 0.3),
        ("jit_dw:avx512_core", LAST, 13, 0.22),
        ("jit_dw:avx512_core", BLOCKED, 28, 0.19),
        ("jit_dw:avx2", LAST, 28, 0.3 * 0.7 * 0.5),
    ],
)
def test_shares_of_depthwise_convolutions(implementation: str, layout: str, size: int, share: float) -> None:
    assert reached(convolution(64, 64, size, 3, groups=64), layout, implementation) == pytest.approx(share)


def test_strides_cost_pointwise_jit_kernels_some_of_their_share() -> None:
    program = convolution(64, 64, 14)
    (step,) = program.steps
    strided = ir.Program(
        "p",
        (*program.values[:2], ir.Value("y", (1, 64, 7, 7), "float32", "local", "abcd")),
        (ir.Step("s", ir.Convolution((2, 2), (0,) * 4, (1, 1), 1), step.operands),),
    )
    assert reached(strided, BLOCKED, "jit_1x1:avx512_core") == pytest.approx(0.8)
    assert reached(strided, LAST, "brgconv_1x1:avx512_core") == pytest.approx(0.92)


@pytest.mark.parametrize(
    ("inputs", "outputs", "groups", "implementation", "layout", "waste"),
    [
        (64, 24, 1, "brgconv:avx512_core", LAST, 32 / 24),
        (24, 64, 1, "brgconv:avx512_core", LAST, 1),
        (24, 64, 1, "jit:avx512_core", LAST, 32 / 24),
        (3, 64, 1, "jit:avx512_core", LAST, 1),
        (15, 64, 1, "jit:avx512_core", LAST, 1),
        (17, 64, 1, "jit:avx512_core", LAST, 32 / 17),
        (64, 24, 1, "brgconv:avx2", LAST, 1),
        (64, 20, 1, "jit:sse41", LAST, 1),
        (96, 72, 3, "jit:avx512_core", LAST, 32 / 24),
        (96, 72, 3, "jit:avx2", LAST, 32 / 24),
        (72, 96, 3, "jit:avx512_core", LAST, 1),
    ],
)
def test_channels_that_do_not_fill_vectors_are_computed_in_vain(
    inputs: int, outputs: int, groups: int, implementation: str, layout: str, waste: float
) -> None:
    whole = reached(convolution(64, 64, 14, 3), layout, implementation)
    part = reached(convolution(inputs, outputs, 14, 3, groups=groups), layout, implementation)
    assert part == pytest.approx(whole / waste)


def test_a_deconvolution_computes_at_every_position_of_its_source() -> None:
    b = ProgramBuilder("one")
    x = b.port("input", "x", (2, 32, 7, 7), "float32")
    weights = b.constant(np.zeros((16, 32, 4, 4), np.float32))
    attrs = ir.Deconvolution((2, 2), (1,) * 4, (1, 1), 1)
    b.step("up", attrs, (2, 16, 14, 14), [("src", x), ("weights", weights)])
    program = b.finish()
    by = model(gflops=100.0, gbytes=1e9)
    (step,) = program.steps
    us = by(program, step, in_layout(program, step, LAST), info("brgconv:avx512_core"))
    assert us == pytest.approx(2 * (2 * 7 * 7) * 32 * 16 * 16 / 100e3 / 0.93)


@pytest.mark.parametrize(
    ("attrs", "layout", "operations"),
    [
        (ir.Pooling("max", (3, 3), (1, 1), (1, 1), (1, 1)), LAST, 9 / 0.095),
        (ir.Pooling("max", (3, 3), (1, 1), (1, 1), (1, 1)), BLOCKED, 9 / 0.036),
        (ir.Pooling("max", (3, 99), (1, 1), (1, 49), (1, 1)), LAST, 3 * 20 / 0.095),
        (ir.LRN(5, 1e-4, 0.75, 1.0), LAST, 1 / 0.0145),
        (ir.LRN(5, 1e-4, 0.75, 1.0), BLOCKED, 1 / 0.0095),
        (ir.Eltwise("relu", 0.0, 0.0), LAST, 0),
    ],
)
def test_what_each_element_of_a_result_takes(attrs: ir.Attributes, layout: str, operations: float) -> None:
    """With padding: 17 channels are 32 in blocks. A window is no larger than the image."""
    program = image_step(attrs, (2, 17, 10, 20))
    (step,) = program.steps
    by = model(gflops=100.0, gbytes=1e9)
    us = by(program, step, in_layout(program, step, layout), info("jit:avx512_core"))
    elements = 2 * (32 if layout == BLOCKED else 17) * 200
    assert us == pytest.approx(elements * operations / 100e3, abs=1e-3)


def test_matrix_products() -> None:
    b = ProgramBuilder("one")
    x, weights = b.port("input", "x", (3, 50, 70), "float32"), b.constant(np.zeros((3, 70, 90), np.float32))
    b.step("product", ir.MatMul(), (3, 50, 90), [("src", x), ("weights", weights)])
    image, filters = (
        b.port("input", "i", (5, 3, 7, 7), "float32"),
        b.constant(np.zeros((11, 3, 7, 7), np.float32)),
    )
    b.step("dense", ir.InnerProduct(), (5, 11), [("src", image), ("weights", filters)])
    program = b.finish()
    by = model(gflops=100.0, gbytes=1e9)
    layouts = ("abc", "abc", "abc"), (LAST, "abcd", "ab")
    for step, tags, products in zip(program.steps, layouts, (3 * 50 * 70 * 90, 5 * 11 * 3 * 49), strict=True):
        shares = {"brg:avx512_core": 0.93, "brgemm:avx512_core": 0.93, "gemm:jit": 0.3, "x64:gemm:jit": 0.3}
        for name, share in shares.items():
            us = by(program, step, tags, info(name))
            assert us == pytest.approx(2 * products / 100e3 / share)


def test_a_depthwise_convolution_inside_a_pointwise_one_adds_its_own() -> None:
    program = convolution(64, 128, 14)
    (step,) = program.steps
    both = ir.Program(
        "p",
        (*program.values[:2], ir.Value("y", (1, 128, 7, 7), "float32", "local", "abcd")),
        (ir.Step("s", step.attrs, step.operands, (ir.DepthwisePostOp(3, 2, 1),)),),
    )
    by = model(gflops=100.0, gbytes=1e9)
    us = by(both, both.steps[0], in_layout(both, both.steps[0], LAST), info("jit_1x1:avx512_core"))
    pointwise, depthwise = 2 * 196 * 64 * 128 / 0.87, 2 * 9 * 128 * 49 / 0.25
    assert us == pytest.approx((pointwise + depthwise) / 100e3)


# --- memory -----------------------------------------------------------------------------------------------


def test_memory_counts_everything_that_a_step_touches() -> None:
    """The first 2 MiB at twice the speed; a reference implementation takes far longer than any other."""
    program = convolution(64, 64, 56)
    (step,) = program.steps
    slow = model(gflops=1e9, gbytes=10.0, narrow=0.5)
    moved = 4 * (2 * 64 * 56 * 56 + 64 * 64)
    for layout in (LAST, BLOCKED):
        us = slow(program, step, in_layout(program, step, layout), info("jit:avx512_core"))
        assert us == pytest.approx((moved - min(moved, 2 << 20) / 2) / 10e3, rel=1e-3)
        reference = info("ref:any")
        found = slow(program, step, in_layout(program, step, layout), reference)
        assert found == pytest.approx(50 * us, rel=1e-3)


@pytest.mark.parametrize("shape", [(1, 17, 8, 8), (3, 64, 56, 56)])
def test_a_reorder_reads_and_writes_all_padding_included_and_takes_a_start(shape: tuple[int, ...]) -> None:
    machine = rates(gbytes=20.0)

    def reorder_us(target: str) -> float:
        return OneDNN().cost(reorder_facts(shape, "float32", "abcd", target), machine)

    elements = int(np.prod(shape))
    assert reorder_us(LAST) == pytest.approx(6 + 2 * 4 * elements / 20e3)
    padded = elements * (32 if shape[1] == 17 else 64) // shape[1]
    assert reorder_us(BLOCKED) == pytest.approx(6 + 4 * (elements + padded) / 20e3)
