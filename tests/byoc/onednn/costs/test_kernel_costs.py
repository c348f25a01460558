"""oneDNN's model of costs: the differences between kernels and layouts that choices rest on."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from costs_by_hand import info, rates

from tvm_mxplan.byoc.onednn.backend import OneDNN
from tvm_mxplan.byoc.onednn.costs.kernels import computing_us, weights_passes
from tvm_mxplan.core.machine import Compute
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.core.program.builder import ProgramBuilder
from tvm_mxplan.core.program.operands import operands_of
from tvm_mxplan.core.step_facts import StepFacts, reorder_facts
from tvm_mxplan.passes.layout.candidates import in_layout

LAST, BLOCKED = "acdb", "aBcd16b"
RATES = rates()
ALONE = replace(RATES, threads=1)
"""A machine of one thread, which exchanges nothing."""


def facts(program: ir.Program, layout: str, implementation: str) -> StepFacts:
    (step,) = program.steps
    return StepFacts(program, step, in_layout(program, step, layout), info(implementation))


def cost(program: ir.Program, layout: str, implementation: str, machine=RATES) -> float:
    return OneDNN().cost(facts(program, layout, implementation), machine)


def convolution(
    channels: int,
    outputs: int,
    size: int,
    kernel: int = 1,
    batch: int = 1,
    groups: int = 1,
    *post_ops: ir.PostOp,
) -> ir.Program:
    b = ProgramBuilder("one")
    x = b.port("input", "x", (batch, channels, size, size), "float32")
    shape: tuple[int, ...] = (outputs, channels, kernel, kernel)
    if groups > 1:
        shape = (groups, outputs // groups, channels // groups, kernel, kernel)
    attrs = ir.Convolution((1, 1), (kernel // 2,) * 4, (1, 1), groups)
    operands = [("src", x), ("weights", b.constant(np.zeros(shape, np.float32)))]
    b.step("conv", attrs, (batch, outputs, size, size), operands)
    program = b.finish()
    return replace(program, steps=(replace(program.steps[0], post_ops=post_ops),))


def image_step(attrs: ir.Attributes, shape: tuple[int, ...]) -> ir.Program:
    b = ProgramBuilder("one")
    b.step("step", attrs, shape, [("src", b.port("input", "x", shape, "float32"))])
    return b.finish()


# --- arithmetic -------------------------------------------------------------------------------------------


def computing(program: ir.Program, layout: str, implementation: str, machine=RATES) -> float:
    return computing_us(facts(program, layout, implementation), machine)


@pytest.mark.parametrize(
    ("kernel", "groups", "implementation"),
    [
        (1, 1, "brgconv_1x1:avx512_core"),
        (3, 1, "brgconv:avx512_core"),
        (1, 1, "jit_1x1:avx512_core"),
        (3, 64, "jit_dw:avx512_core"),
        (3, 4, "jit:avx512_core"),
    ],
)
def test_arithmetic_goes_with_the_work_and_against_the_peak(
    kernel: int, groups: int, implementation: str
) -> None:
    one = computing(convolution(64, 64, 14, kernel, 1, groups), LAST, implementation)
    assert computing(convolution(64, 64, 14, kernel, 3, groups), LAST, implementation) == pytest.approx(
        3 * one
    )
    twice = computing(convolution(64, 64, 14, kernel, 1, groups), LAST, implementation, rates(gflops=960.0))
    assert twice == pytest.approx(one / 2)
    operations = 2 * 64 * 64 // groups * 14**2 * kernel**2
    assert 0.2 < operations / one / 480e3 < 1.2, "share of the peak"


def test_dense_kernels_are_near_the_peak_and_others_far_from_it() -> None:
    layer = convolution(64, 64, 14, 3)
    dense, slow = (computing(layer, LAST, name) for name in ("brgconv:avx512_core", "x64:gemm:jit"))
    assert slow > 2 * dense
    deep = convolution(64, 64, 14, 3, 1, 64)
    for layout in (LAST, BLOCKED):
        assert 64 * computing(deep, layout, "jit_dw:avx512_core") > 2 * computing(
            layer, layout, "jit:avx512_core"
        )


@pytest.mark.parametrize(
    ("inputs", "outputs", "groups", "implementation", "waste"),
    [
        (64, 24, 1, "brgconv:avx512_core", 32 / 24),
        (24, 64, 1, "brgconv:avx512_core", 1),
        (24, 64, 1, "jit:avx512_core", 32 / 24),
        (3, 64, 1, "jit:avx512_core", 1),
        (17, 64, 1, "jit:avx512_core", 32 / 17),
        (64, 24, 1, "brgconv:avx2", 1),
        (64, 20, 1, "jit:sse41", 1),
        (96, 72, 3, "jit:avx512_core", 32 / 24 / 0.65),
        (96, 72, 3, "jit:avx2", 32 / 24 / 0.65),
        (72, 96, 3, "jit:avx512_core", 1 / 0.65),
    ],
)
def test_channels_that_do_not_fill_vectors_are_computed_in_vain(
    inputs: int, outputs: int, groups: int, implementation: str, waste: float
) -> None:
    def each(inputs: int, outputs: int, groups: int) -> float:
        us = computing(convolution(inputs, outputs, 14, 3, 1, groups), LAST, implementation)
        return us * groups / inputs / outputs

    def stored(inputs: int) -> float:
        """Beside so many inputs of a group, vectors of results are stored, which few of them do not hide."""
        terms = 9 * (inputs if groups > 1 or inputs < 16 else -(-inputs // 16) * 16)
        return 1 + 16 / terms if implementation.startswith("jit:") else 1.0

    waste *= stored(inputs // groups) / (1 + 16 / 576 if implementation.startswith("jit:") else 1.0)
    assert each(inputs, outputs, groups) == pytest.approx(waste * each(64, 64, 1))


@pytest.mark.parametrize(
    ("outputs", "share", "pays"), [(24, 0.93, True), (32, 0.93, False), (24, 0.5, False)]
)
def test_narrow_vectors_pay_where_they_are_full_and_nearly_as_fast(
    outputs: int, share: float, pays: bool
) -> None:
    layer, machine = convolution(256, outputs, 14), rates(narrow=share)
    wide, narrow = (cost(layer, LAST, f"brgconv_1x1:{isa}", machine) for isa in ("avx512_core", "avx2"))
    assert (narrow < wide) == pays


@pytest.mark.parametrize(("narrow", "share"), [(0.5, 0.65), (1.0, 1.0), (0.65, 0.845)])
def test_products_in_groups_wait_for_loads_where_vectors_are_multiplied_that_fast(
    narrow: float, share: float
) -> None:
    """AVX-512 multiplies as many numbers as AVX2 in half as many vectors."""
    machine = rates(narrow=narrow)
    dense, grouped = (
        computing(convolution(64, 64, 14, 3, 1, groups), LAST, "jit:avx512_core", machine) / (64 // groups)
        for groups in (1, 4)
    )
    few = (1 + 16 / 576) / (1 + 16 / 144)
    assert dense / grouped == pytest.approx(few * share)
    half = computing(convolution(64, 64, 14, 3, 1, 4), LAST, "jit:avx2", machine) / 16
    assert dense / half == pytest.approx(few * 0.65 * narrow)


@pytest.mark.parametrize(
    ("layer", "narrower"),
    [
        (convolution(64, 64, 14, 3, 1, 4), "avx512"),
        (convolution(64, 64, 14, 3, 1, 8), "avx2"),
        (convolution(64, 64, 14, 3, 1, 16), "sse41"),
        (convolution(64, 64, 14, 3, 1, 32), "avx512"),
        (convolution(16, 16, 14, 3, 1, 2), "avx2"),
        # The wider side of a group decides, and a convolution of one group has whole vectors.
        (convolution(32, 64, 14, 3, 1, 4), "avx512"),
        (convolution(64, 32, 14, 3, 1, 4), "avx512"),
        (convolution(4, 64, 14, 4), "avx512"),
    ],
    ids=["16", "8", "4", "2", "two groups", "fewer inputs", "fewer outputs", "one group"],
)
def test_groups_of_few_channels_take_narrow_vectors(layer: ir.Program, narrower: str) -> None:
    compute = tuple(
        Compute("float32", name, 100.0 * at) for at, name in enumerate(("sse41", "avx2", "avx512"), 1)
    )
    machine, slower = (
        replace(
            RATES, compute=tuple(replace(one, gflops=one.gflops / by[one.instruction_set]) for one in compute)
        )
        for by in (
            dict.fromkeys(("sse41", "avx2", "avx512"), 1),
            {"sse41": 1, "avx2": 1, "avx512": 1, narrower: 2},
        )
    )
    assert computing(layer, LAST, "jit:avx512_core", slower) > 1.2 * computing(
        layer, LAST, "jit:avx512_core", machine
    )


def test_a_depthwise_convolution_inside_a_pointwise_one_adds_its_own() -> None:
    alone = convolution(64, 128, 14)
    both = convolution(64, 128, 14, 1, 1, 1, ir.DepthwisePostOp(3, 1, 1))
    inside = computing(both, LAST, "jit_1x1:avx512_core") - computing(alone, LAST, "jit_1x1:avx512_core")
    apart = computing(convolution(128, 128, 14, 3, 1, 128), LAST, "brdgmm_dw:avx512_core")
    assert inside == pytest.approx(apart)


def test_a_deconvolution_computes_at_every_position_of_its_source() -> None:
    b = ProgramBuilder("one")
    x = b.port("input", "x", (2, 32, 7, 7), "float32")
    weights = b.constant(np.zeros((16, 32, 4, 4), np.float32))
    attrs = ir.Deconvolution((2, 2), (1,) * 4, (1, 1), 1)
    b.step("up", attrs, (2, 16, 14, 14), [("src", x), ("weights", weights)])
    dense = computing(convolution(32, 16, 7, 3, 2), LAST, "brgconv:avx512_core")
    assert computing(b.finish(), LAST, "brgconv:avx512_core") == pytest.approx(dense * 16 / 9)


def test_matrix_products_of_one_row_and_of_many() -> None:
    def product(rows: int, implementation: str) -> tuple[float, float]:
        b = ProgramBuilder("one")
        x, weights = (
            b.port("input", "x", (rows, 700), "float32"),
            b.constant(np.zeros((700, 900), np.float32)),
        )
        b.step("product", ir.MatMul(), (rows, 900), [("src", x), ("weights", weights)])
        program = b.finish()
        step = program.steps[0]
        asked = StepFacts(program, step, ("ab",) * len(operands_of(step)), info(implementation))
        return computing_us(asked, RATES), OneDNN().cost(asked, RATES)

    names = {64: "brg:avx512_core", 128: "brg:avx512_core"}
    one, many = (product(rows, name)[0] for rows, name in names.items())
    slow = product(64, "x64:gemm:jit")[0]
    assert many == pytest.approx(2 * one) and slow > 2 * one
    computing_one, total = product(1, "row_product")
    reading = 4 * 700 * 900 / RATES.memory.read / 1e3
    assert computing_one < 0.1 * reading < total < 3 * reading, "nothing but reading the matrix counts"


@pytest.mark.parametrize(
    ("attrs", "most"),
    [
        (ir.Eltwise("relu", 0.0, 0.0), 0),
        (ir.Eltwise("gelu_erf", 0.0, 0.0), 100),
        (ir.Pooling("max", (3, 3), (1, 1), (1, 1), (1, 1)), 200),
        (ir.LRN(5, 1e-4, 0.75, 1.0), 200),
        (ir.Softmax("softmax", 1), 1000),
    ],
)
def test_each_element_of_a_result_takes_some_operations(attrs: ir.Attributes, most: float) -> None:
    """With padding: 17 channels are 32 in blocks."""
    each = {}
    for layout, channels in ((LAST, 17), (BLOCKED, 32)):
        us = computing(image_step(attrs, (2, 17, 10, 20)), layout, "jit:avx512_core")
        each[layout] = us * 480e3 / (2 * channels * 200)
    assert all(0 <= found <= most for found in each.values())
    assert (each[LAST] > 0) == (most > 0)


def test_a_window_is_no_larger_than_the_image() -> None:
    wide, whole = (
        computing(
            image_step(ir.Pooling("max", (3, k), (1, 1), (1, 1), (1, 1)), (1, 16, 10, 20)), LAST, "jit:uni"
        )
        for k in (99, 20)
    )
    assert wide == whole > 0


# --- memory -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "implementation", ["brgconv:avx512_core", "jit_dw:avx512_core", "brgconv_1x1:avx512_core"]
)
def test_threads_exchange_images(implementation: str) -> None:
    """Data that another thread has written takes time to read; alone a thread reads its own."""
    layer = convolution(64, 64, 56, 3, 1, 64 if "dw" in implementation else 1)
    near, far = (cost(layer, LAST, implementation, replace(RATES, exchanged=x)) for x in (16.0, 8.0))
    assert far > 1.05 * near
    alone = [cost(layer, LAST, implementation, replace(ALONE, exchanged=x)) for x in (16.0, 8.0)]
    assert alone[0] == alone[1] < near


def test_arithmetic_hides_what_is_exchanged() -> None:
    """Of a shallow layer more shows than of a deep one with as many bytes."""
    machine = replace(RATES, exchanged=10.0)
    shown = [
        cost(convolution(channels, 256, 56), LAST, "brgconv_1x1:avx512_core", machine)
        - cost(convolution(channels, 256, 56), LAST, "brgconv_1x1:avx512_core", replace(machine, threads=1))
        for channels in (16, 256)
    ]
    assert shown[0] > shown[1]


def test_weights_are_read_from_memory() -> None:
    layer = convolution(512, 512, 7, 3)
    fast, slow = (cost(layer, LAST, "brgconv:avx512_core", rates(gbytes=x)) for x in (40.0, 20.0))
    reading = 4 * 512 * 512 * 9 / 40e3
    assert reading < slow - fast < 3 * reading


@pytest.mark.parametrize(
    ("layout", "pointwise"), [(LAST, "brgconv_1x1:avx512_core"), (BLOCKED, "jit_1x1:avx512_core")]
)
def test_windows_of_one_pixel_are_for_kernels_made_for_them(layout: str, pointwise: str) -> None:
    """The kernel for any window takes longer, above all to read weights."""
    layer = convolution(512, 2048, 7)
    assert cost(layer, layout, "jit:avx512_core") > 1.1 * cost(layer, layout, pointwise)
    passes = [
        weights_passes(facts(convolution(512, 512, 7, kernel, 1, groups), layout, "jit:avx512_core"))
        for kernel, groups in ((1, 1), (3, 1), (1, 4))
    ]
    assert passes[0] > passes[1] == passes[2]


def test_what_moves_more_than_caches_hold_takes_the_speed_of_memory() -> None:
    relu = ir.Eltwise("relu", 0.0, 0.0)
    half, whole = (
        cost(image_step(relu, (1, 64, 512, rows)), LAST, "jit:avx512_core", ALONE) for rows in (256, 512)
    )
    assert whole == pytest.approx(2 * half, rel=0.1)
    moving = 2 * 4 * 64 * 512 * 256 / 40e3
    assert moving < half < 2 * moving


def test_reference_code_takes_far_longer() -> None:
    layer = convolution(64, 64, 14, 3)
    assert cost(layer, LAST, "ref:any") > 20 * cost(layer, LAST, "jit:avx512_core")


@pytest.mark.parametrize("shape", [(1, 17, 8, 8), (3, 64, 56, 56)])
def test_a_reorder_reads_and_writes_all_padding_included_and_takes_a_start(shape: tuple[int, ...]) -> None:
    def reorder_us(target: str) -> float:
        return OneDNN().cost(reorder_facts(shape, "float32", "abcd", target), RATES)

    start = RATES.start_us + RATES.fork_us
    assert start < reorder_us(LAST) <= reorder_us(BLOCKED)
    assert (reorder_us(BLOCKED) > reorder_us(LAST)) == (shape[1] == 17)
    assert OneDNN().cost(
        reorder_facts((2 * shape[0], *shape[1:]), "float32", "abcd", LAST), RATES
    ) > reorder_us(LAST)


def test_a_reorder_that_puts_another_axis_side_by_side_goes_element_by_element() -> None:
    def reorder_us(source: str, target: str, shape: tuple[int, ...] = (1, 64, 28, 28)) -> float:
        return OneDNN().cost(reorder_facts(shape, "float32", source, target), slow)

    slow = replace(rates(gflops=120.0), threads=1)
    turned = 64 * 28 * 28 * 60 / 120e3
    for source, target in (("acdb", "abcd"), ("abcd", "acdb"), ("aBcd16b", "abcd")):
        assert reorder_us(source, target) == pytest.approx(slow.start_us + slow.fork_us + turned)
    for source, target in (("acdb", "aBcd16b"), ("aBcd16b", "acdb"), ("cadb", "acdb")):
        assert reorder_us(source, target) < 0.75 * turned
    assert reorder_us("acdb", "abcd", (1, 64 * 784, 1, 1)) < 0.75 * turned


def test_bytes_go_by_the_element_type() -> None:
    wide, narrow = (
        OneDNN().cost(reorder_facts((1, 64, 256, 256), dtype, "abcd", LAST), ALONE)
        for dtype in ("float32", "bfloat16")
    )
    assert wide > 1.5 * narrow


def test_copies_take_no_arithmetic_though_their_kernel_bears_the_name_of_slow_conversions() -> None:
    def computing(target: str, implementation: str) -> float:
        given = reorder_facts((2, 24, 14, 14), "float32", LAST, target)
        return computing_us(replace(given, info=info(implementation)), RATES)

    assert computing(LAST, "simple:any") == 0.0
    assert computing(BLOCKED, "simple:any") > 50 * computing("abcd", "jit:uni") > 0.0


def few_bits(*rows: int, columns: int = 512, depth: int = 1024) -> float:
    """Microseconds that a product of rows with a matrix of four bits computes."""
    b = ProgramBuilder("one")
    numbers = np.zeros((1, columns, depth // 8), "int32")
    scales = np.zeros((1, columns, depth // 32), "float32")
    operands = [("src", b.port("input", "x", (*rows, depth), "float32"))]
    operands += [("numbers", b.constant(numbers)), ("scales", b.constant(scales))]
    b.step("product", ir.FewBitsProduct(4, 32), (*rows, columns), operands)
    program = b.finish()
    (step,) = program.steps
    layouts = tuple(program.values[number].layout for _, number in operands_of(step))
    return computing_us(StepFacts(program, step, layouts, info("few_bits:any")), RATES)


def test_numbers_of_few_bits_are_read_once_whatever_the_rows() -> None:
    """One row takes most of what four take; many take as many times longer as there are more of them."""
    assert few_bits(1) < few_bits(4) < 2.5 * few_bits(1)
    assert few_bits(2048) == pytest.approx(2 * few_bits(1024), rel=0.02)
    more = [few_bits(4, columns=1024), few_bits(4, depth=2048)]
    assert more == pytest.approx([2 * few_bits(4)] * 2) and few_bits(3, 5) == few_bits(15)


def test_few_rows_multiply_words_as_they_are_read() -> None:
    """For more than four they are unpacked in front, which takes longer than one more row does."""
    assert few_bits(5) - few_bits(4) > 1.5 * (few_bits(4) - few_bits(3))
