"""The numbers that were read off oneDNN's kernels: which kernel, operator and type has which of them.

Whoever measures again changes a number here and there; nothing else may.
"""

from __future__ import annotations

import math
import re
from dataclasses import replace
from pathlib import Path

import pytest
from costs_by_hand import info, rates

from tvm_mxplan.byoc.onednn.costs import cost
from tvm_mxplan.byoc.onednn.costs.kernels import computing_us, hides, shown_share, weights_passes
from tvm_mxplan.byoc.onednn.costs.types import time_share
from tvm_mxplan.byoc.onednn.costs.winograd import winograd_us
from tvm_mxplan.core.machine import Compute
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.core.step_facts import StepFacts, operands_of, reorder_facts

RATES = rates()
GFLOPS, NARROW = 480.0, 240.0
PLAIN, LAST, BLOCKED = "abcd", "acdb", "aBcd16b"
IMAGE = (2, 32, 10, 20)
ELEMENTS = 2 * 32 * 10 * 20


def facts(
    attrs: ir.Attributes,
    dst: tuple[int, ...],
    implementation: str = "jit:avx512_core",
    layout: str = LAST,
    post_ops: tuple[ir.PostOp, ...] = (),
    dtype: str = "float32",
    **shapes: tuple[int, ...],
) -> StepFacts:
    """A step on operands by role; what has four axes is in ``layout``, but for constants."""
    constants = ("weights", "recurrence", "bias")
    values = [
        ir.Value(role, shape, dtype, "constant" if role in constants else "input", "abcdefg"[: len(shape)], 0)
        for role, shape in {**(shapes or {"src": dst}), "dst": dst}.items()
    ]
    values[-1] = replace(values[-1], kind="local", index=-1)
    step = ir.Step("s", attrs, tuple(ir.Operand(value.name, at) for at, value in enumerate(values)), post_ops)
    layouts = tuple(
        layout if len(values[at].shape) == 4 and values[at].kind != "constant" else values[at].layout
        for _, at in operands_of(step)
    )
    return StepFacts(ir.Program("p", tuple(values), (step,)), step, layouts, info(implementation))


def convolution(
    implementation: str, layout: str = LAST, groups: int = 1, channels: int = 32, **more: object
) -> StepFacts:
    """3x3 on 10 x 20."""
    each = channels // groups
    filters = (each, each, 3, 3) if groups == 1 else (groups, each, each, 3, 3)
    attrs = ir.Convolution((1, 1), (1, 1, 1, 1), (1, 1), groups)
    image = (2, channels, 10, 20)
    return facts(attrs, image, implementation, layout, src=image, weights=filters, **more)  # type: ignore[arg-type]


def operations(of: StepFacts) -> float:
    """As many as the peak allows in the time that a step computes."""
    return computing_us(of, RATES) * GFLOPS * 1e3


# --- kernels -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "layout", "share", "shown", "passes"),
    [
        ("brgconv_1x1:avx512_core", LAST, 1.06, 0.55, 1.7),
        ("brgconv_1x1:avx512_core", BLOCKED, 1.06, 0.55, 1.7),
        ("jit_1x1:avx512_core", BLOCKED, 0.97, 0.4, 1.5),
        ("jit_1x1:avx512_core", LAST, 0.9, 0.9, 1.7),
        ("brgconv:avx512_core", LAST, 1.1, 1.4, 1.1),
        ("brgconv_strided:avx512_core", BLOCKED, 1.1, 1.4, 1.1),
        ("jit:avx512_core", LAST, 1.0, 1.2, 1.3),
        ("jit:avx512_core", BLOCKED, 1.0, 1.2, 1.3),
        ("x64:gemm:jit", PLAIN, 0.3, 1.0, 1.3),
        ("something:avx512_core", LAST, 0.8, 1.0, 1.3),
    ],
)
def test_families_of_convolutions(name: str, layout: str, share: float, shown: float, passes: float) -> None:
    dense = convolution(name, layout)
    each = 2 * (ELEMENTS // 32) * 32
    stored = 16 if name.startswith("jit:") else 0
    assert operations(dense) == pytest.approx(each * (32 * 9 + stored) / share)
    assert (shown_share(dense), weights_passes(dense), hides(dense)) == (shown, passes, True)
    grouped = convolution(name, layout, groups=2)
    called = 2 * 2 * 17_000 * 32 * GFLOPS / NARROW if "gemm" in name else 0  # for each group of each image
    assert operations(grouped) == pytest.approx(each * (16 * 9 + stored) / share / 0.65 + called)


@pytest.mark.parametrize(
    ("name", "layout", "share", "shown"),
    [
        ("brdgmm_dw:avx512_core", LAST, 0.3, 0.5),
        ("brdgmm_dw:avx512_core", BLOCKED, 0.3, 0.5),
        ("jit_dw:avx512_core", BLOCKED, 0.3, 0.8),
        ("jit_dw:avx512_core", LAST, 0.4, 0.75),
        ("jit_dw:avx2", LAST, 0.7 * 0.4 * NARROW / GFLOPS, 0.75),
        ("jit_dw:avx2", BLOCKED, 0.7 * 0.3 * NARROW / GFLOPS, 0.8),
    ],
)
def test_depthwise_kernels(name: str, layout: str, share: float, shown: float) -> None:
    """Nothing is hidden behind so little arithmetic; narrow vectors load more often."""
    deep = convolution(name, layout, groups=32)
    assert operations(deep) == pytest.approx(2 * ELEMENTS * 9 / share)
    assert (shown_share(deep), weights_passes(deep), hides(deep)) == (shown, 1.3, False)


def test_a_depthwise_convolution_behind_a_pointwise_one() -> None:
    attrs = ir.Convolution((1, 1), (0, 0, 0, 0), (1, 1), 1)
    pair = facts(
        attrs,
        (2, 32, 5, 10),
        "jit_1x1:avx512_core",
        BLOCKED,
        (ir.DepthwisePostOp(3, 2, 1),),
        src=(2, 24, 10, 20),
        weights=(32, 24, 1, 1),
    )
    pointwise, window = 2 * 400 * 32 * 32 / 0.97, 2 * 9 * 2 * 32 * 50 / 0.3
    assert operations(pair) == pytest.approx(pointwise + window)


@pytest.mark.parametrize(
    ("name", "share", "shown", "passes"),
    [
        ("brg:avx512_core", 1.05, 1.2, 1.3),
        ("x64:gemm:jit", 0.3, 1.4, 1.3),
        ("row_product", 10.0, 0.0, 1.3),
        ("packed_product:avx2", 0.8, 1.2, 1.3),
    ],
)
@pytest.mark.parametrize("attrs", [ir.MatMul(), ir.InnerProduct()])
def test_matrix_products(attrs: ir.Attributes, name: str, share: float, shown: float, passes: float) -> None:
    weights = (24, 9) if isinstance(attrs, ir.MatMul) else (9, 24)
    product = facts(attrs, (7, 9), name, src=(7, 24), weights=weights)
    assert operations(product) == pytest.approx(2 * 7 * 9 * 24 / share)
    assert (shown_share(product), weights_passes(product), hides(product)) == (shown, passes, True)


@pytest.mark.parametrize("batch", [(), (5,), (3, 5)])
def test_a_matrix_product_adds_up_along_the_last_axis_of_its_source(batch: tuple[int, ...]) -> None:
    product = facts(
        ir.MatMul(), (*batch, 7, 9), "brg:avx512_core", PLAIN, src=(*batch, 7, 24), weights=(*batch, 24, 9)
    )
    assert operations(product) == pytest.approx(2 * math.prod(batch) * 7 * 9 * 24 / 1.05)


def test_an_inner_product_takes_all_axes_of_its_source() -> None:
    product = facts(ir.InnerProduct(), (7, 9), "brg:avx512_core", src=(7, 6, 2, 5), weights=(9, 6, 2, 5))
    assert operations(product) == pytest.approx(2 * 7 * 9 * 60 / 1.05)


@pytest.mark.parametrize(("name", "share"), [("brgemm:avx512_core", 0.75), ("ref:any", 0.5)])
def test_recurrent_layers(name: str, share: float) -> None:
    """Over all steps and samples; oneDNN's reference cells are made of fast products."""
    shapes = {"src": (5, 3, 9), "weights": (1, 1, 9, 4, 8), "recurrence": (1, 1, 8, 4, 8)}
    layer = facts(ir.Recurrent("lstm", "forward"), (5, 3, 8), name, **shapes)
    assert operations(layer) == pytest.approx(2 * 15 * (9 + 8) * 32 / share)
    fast = replace(layer, info=replace(layer.info, is_reference=False))
    assert cost(layer, RATES) < 3 * cost(fast, RATES), "no penalty of reference code"


@pytest.mark.parametrize(("samples", "share"), [(1, 0.55), (2, 0.75), (32, 0.75)])
def test_recurrent_layers_of_few_samples_by_our_kernel(samples: int, share: float) -> None:
    """The inputs at a product's reach, recurrent products at 0.85 of the peak, or as weights are read."""
    shapes = {"src": (5, samples, 9), "weights": (1, 1, 9, 4, 8), "recurrence": (1, 1, 8, 4, 8)}

    def layer(dtype: str) -> StepFacts:
        attrs = ir.Recurrent("lstm", "forward")
        return facts(attrs, (5, samples, 8), "sample_recurrence", dtype=dtype, **shapes)

    nbytes = 4 * 8 * 32
    read = 5 * nbytes / RATES.holding(nbytes).read * RATES.gflops("float32")
    recurring = max(read, 2 * 5 * samples * 8 * 32 / 0.85)
    assert (read > recurring / 2) == (samples == 1) or samples == 2
    assert operations(layer("float32")) == pytest.approx(2 * 5 * samples * 9 * 32 / 1.05 + recurring)
    assert time_share(layer("bfloat16"), RATES) == share


def test_attention_makes_both_products_for_each_query_and_key() -> None:
    """Three heads of 5 queries and 7 keys of depth 8, which weigh values of width 9, twice."""
    shapes = {"src": (2, 3, 5, 8), "key": (2, 3, 7, 8), "value": (2, 3, 7, 9)}
    one = facts(ir.Attention(0.5), (2, 5, 3, 9), "attention:avx512", PLAIN, **shapes)
    assert operations(one) == pytest.approx(2 * (2 * 3) * 5 * 7 * (8 + 9) / 0.75)


CYCLE = 32 * GFLOPS / NARROW / 16
"""Operations that the peak allows for each element of a vector that takes a cycle."""


@pytest.mark.parametrize(
    ("attrs", "each", "in_blocks"),
    [
        (ir.Pooling("max", (3, 3), (1, 1), (1, 1), (1, 1)), 9 * 2.0 * CYCLE, 9 * 4.5 * CYCLE),
        (ir.Pooling("avg_exclude_padding", (3, 3), (1, 1), (1, 1), (1, 1)), 9 * 3.0 * CYCLE, 9 * 3.0 * CYCLE),
        (ir.Shuffle(1, 4), 16 * 0.9 * CYCLE, 16 * 0.9 * CYCLE),
        (ir.LRN(5, 1e-4, 0.75, 1.0), 65.0, 65.0),
        (ir.Softmax("softmax", 1), 300.0, 300.0),
        (ir.LayerNormalization(1e-5), 35.0, 35.0),
        (ir.Eltwise("tanh", 0.0, 0.0), 30.0, 30.0),
        (ir.Eltwise("relu", 0.0, 0.0), 0.0, 0.0),
        (ir.BatchNormalization(1e-5, False), 0.0, 0.0),
    ],
)
def test_operations_of_one_element(attrs: ir.Attributes, each: float, in_blocks: float) -> None:
    for layout, number in ((LAST, each), (BLOCKED, in_blocks)):
        assert operations(facts(attrs, IMAGE, layout=layout)) == pytest.approx(ELEMENTS * number)
        behind = (ir.EltwisePostOp("relu", 0.0, 0.0), ir.EltwisePostOp("exp", 0.0, 0.0))
        fused = facts(attrs, IMAGE, layout=layout, post_ops=behind)
        assert operations(fused) == pytest.approx(ELEMENTS * (number + 30.0))
        assert not hides(fused)


DEAR = {"exp", "log", "tanh", "logistic", "soft_relu", "mish", "elu", "gelu_erf", "gelu_tanh", "swish", "pow"}
"""Functions of many operations; all others that oneDNN has take no time beside their bytes."""


def functions() -> set[str]:
    """Names of the functions that steps may ask of oneDNN."""
    source = (Path(__file__).resolve().parents[4] / "byoc/runtime/onednn/algorithms.cc").read_text()
    return set(re.findall(r'\{"(\w+)", algorithm::eltwise_', source))


@pytest.mark.parametrize("function", sorted(functions()))
def test_functions_take_time_by_their_operations(function: str) -> None:
    each = 30.0 if function in DEAR else 0.0
    assert operations(facts(ir.Eltwise(function, 1.0, 1.0), IMAGE)) == pytest.approx(each * ELEMENTS)
    behind = (ir.EltwisePostOp(function, 0.0, 0.0),)
    plain, fused = (operations(convolution("jit:avx512_core", post_ops=more)) for more in ((), behind))
    assert (fused > plain) == (function in DEAR)


def test_functions_of_the_library_are_of_both_sorts() -> None:
    assert functions() >= DEAR and len(functions() - DEAR) > 8


# --- what is moved -----------------------------------------------------------------------------------------

WIDE = (1, 32, 100, 200)
BYTES = 4 * 32 * 100 * 200


def moved(shown: float, nbytes: int = 2 * BYTES) -> float:
    """With a start, as long as threads exchange so much of it, or as the level that holds it copies."""
    start = 0.5 + 1.5
    held = min(nbytes, 2 << 20)
    exchanging = held * (0.5 / 16e3 - 2 / 80e3) + max(nbytes - held, 0) / 40e3
    return start + max(shown * exchanging, nbytes / (80e3 if nbytes <= 2 << 20 else 40e3))


@pytest.mark.parametrize(
    ("attrs", "shown"),
    [
        (ir.Eltwise("relu", 0.0, 0.0), 0.9),
        (ir.Reorder(), 1.8),
        (ir.Slice((0, 0, 0, 0)), 1.3),
    ],
)
def test_what_only_moves_bytes(attrs: ir.Attributes, shown: float) -> None:
    for shape, nbytes in ((WIDE, 2 * BYTES), ((1, 32, 10, 20), 2 * BYTES // 100)):
        assert cost(facts(attrs, shape), RATES) == pytest.approx(moved(shown, nbytes))


def test_two_operands_and_concatenations() -> None:
    binary = facts(ir.Binary("add"), WIDE, src=WIDE, src1=WIDE)
    assert cost(binary, RATES) == pytest.approx(moved(1.4, 3 * BYTES))
    whole = (1, 64, 100, 200)
    assert cost(facts(ir.Concat(1), whole, src=WIDE, src1=WIDE), RATES) == pytest.approx(
        moved(1.3, 4 * BYTES)
    )


def test_a_convolution_is_the_sum_of_its_parts() -> None:
    """Behind its arithmetic 0.6 of itself is hidden of 1.6 times what is exchanged.

    Weights come once at the speed of memory; what kernels wait beyond that is the same at any speed.
    """
    far = replace(RATES, exchanged=1.0)
    slow = replace(RATES, levels=(*RATES.levels[:-1], replace(RATES.memory, read=10.0)))
    for machine, exchanged, read in ((RATES, 16e3, 40e3), (far, 1e3, 40e3), (slow, 16e3, 10e3)):
        dense = convolution("brgconv:avx512_core")
        computing = 2 * (ELEMENTS // 32) * 32 * 32 * 9 / 1.1 / GFLOPS / 1e3
        exchanging = 2 * 4 * ELEMENTS * (0.5 / exchanged - 2 / 80e3)
        shown = max(1.4 * exchanging, 1.6 * exchanging - 0.6 * computing)
        weights = 4 * 32 * 32 * 9 * (1 / read + 0.1 / 33e3)
        assert cost(dense, machine) == pytest.approx(2.0 + computing + shown + weights)
        deep = convolution("jit_dw:avx512_core", groups=32)
        sliding = 2 * ELEMENTS * 9 / 0.4 / GFLOPS / 1e3
        weights = 4 * 32 * 9 * (1 / read + 0.3 / 33e3)
        assert cost(deep, machine) == pytest.approx(2.0 + sliding + 0.75 * exchanging + weights)


def test_reference_code_takes_fifty_times_as_long() -> None:
    fast = facts(ir.Softmax("softmax", 1), IMAGE)
    slow = replace(fast, info=replace(fast.info, is_reference=True))
    assert cost(slow, RATES) == pytest.approx(50 * cost(fast, RATES))


def test_winograds_products() -> None:
    """Three images of 14 x 14 in tiles of 4 x 4; 40 channels in, 24 out, in two groups."""
    attrs = ir.Convolution((1, 1), (1, 1, 1, 1), (1, 1), 2, "winograd_f4")
    layer = facts(attrs, (3, 24, 14, 14), "winograd_f4", src=(3, 40, 14, 14), weights=(2, 12, 20, 3, 3))
    tiles, elements, rows, columns = 3 * 16, 2 * 36, 32, 16
    rate = GFLOPS * 1e3 * columns / (columns + 4)
    products = 2 * elements * tiles * rows * columns / rate
    filters = 4 * elements * rows * columns / 40e3
    patches = 4 * 4 * elements * tiles * (rows + columns) / 80e3
    expected = (20 + 2 * 2) * 1.5 + products + filters + patches
    assert winograd_us(layer, attrs, RATES, 0.0) == pytest.approx(expected)
    assert winograd_us(layer, attrs, RATES, 7.0) == pytest.approx(expected + 3.5)
    exchanging = RATES.exchanging_us(4 * 3 * (40 + 24) * 14 * 14)
    assert cost(layer, RATES) == pytest.approx(2.0 + expected + exchanging / 2)


# --- types -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("attrs", "share"),
    [
        (ir.Pooling("max", (3, 3), (1, 1), (1, 1), (1, 1)), 0.95),
        (ir.Pooling("avg", (3, 3), (1, 1), (1, 1), (1, 1)), 1.30),
        (ir.LRN(5, 1e-4, 0.75, 1.0), 1.03),
        (ir.LayerNormalization(1e-5), 1.15),
        (ir.Softmax("softmax", 1), 1.00),
        (ir.BatchNormalization(1e-5, False), 0.55),
        (ir.Reduction("sum"), 1.05),
        (ir.Binary("add"), 0.65),
        (ir.PReLU(), 0.65),
        (ir.Eltwise("exp", 0.0, 0.0), 0.90),
        (ir.Resampling("nearest"), 1.40),
        (ir.Shuffle(1, 2), 0.75),
    ],
)
def test_times_in_bfloat16_by_kind(attrs: ir.Attributes, share: float) -> None:
    short = facts(attrs, IMAGE, dtype="bfloat16")
    assert time_share(short, RATES) == share
    assert cost(short, RATES) == pytest.approx(share * cost(facts(attrs, IMAGE), RATES))


def test_the_largest_of_windows_by_our_kernel() -> None:
    attrs = ir.Pooling("max", (3, 3), (1, 1), (1, 1), (1, 1))
    assert time_share(facts(attrs, IMAGE, "maxima:avx512", dtype="bfloat16"), RATES) == 0.65


@pytest.mark.parametrize(
    ("channels", "groups", "share"),
    [
        (32, 1, 0.5),
        (16, 1, 0.5),
        (15, 1, 0.63),
        (3, 1, 0.63),
        (32, 2, 0.5),
        (30, 2, 0.63),
        (32, 32, 1.02),
        (1, 1, 0.63),
    ],
)
def test_convolutions_in_bfloat16(channels: int, groups: int, share: float) -> None:
    short = convolution("jit:avx512_core_bf16", groups=groups, channels=channels, dtype="bfloat16")
    assert time_share(short, RATES) == share
    stated = replace(RATES, compute=(*RATES.compute, Compute("bfloat16", "avx512", 1600.0)))
    assert time_share(short, stated) == pytest.approx(0.3 if share == 0.5 else share)
    other = replace(RATES, compute=(Compute("int8", "avx512", 9.0), Compute("bfloat16", "avx512", 1600.0)))
    assert time_share(short, other) == share, "nothing is stated of float32"


def test_a_conversion_costs_what_its_bytes_do() -> None:
    one = reorder_facts(WIDE, "float32", LAST, LAST)
    cast = replace(one, program=one.program.with_value(1, dtype="bfloat16"))
    assert cost(cast, RATES) == pytest.approx(moved(1.8, BYTES + BYTES // 2))


def test_a_reorder_that_turns_neighbours_goes_by_elements() -> None:
    straight, turned = (reorder_facts(WIDE, "float32", PLAIN, to) for to in (PLAIN, LAST))
    assert computing_us(straight, RATES) == 0.0
    assert computing_us(turned, RATES) == pytest.approx(60 * (BYTES // 4) / GFLOPS / 1e3)
    assert cost(turned, RATES) > cost(straight, RATES)
    ours = replace(turned, info=info("turn:avx512"))
    assert computing_us(ours, RATES) == pytest.approx(16 * 0.4 * CYCLE * (BYTES // 4) / GFLOPS / 1e3)


def test_a_shuffle_of_what_stands_side_by_side_goes_by_elements() -> None:
    """Whole images are moved if channels are images one behind the other."""
    assert operations(facts(ir.Shuffle(1, 4), IMAGE, layout=PLAIN)) == 0.0
