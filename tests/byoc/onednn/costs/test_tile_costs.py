"""Times of products by tiles: formulas by hand, where they hold, and who is chosen."""

from __future__ import annotations

from dataclasses import replace

import pytest
from costs_by_hand import info, rates

from tvm_mxplan.byoc.onednn.costs.own.tiles import is_own_tiles
from tvm_mxplan.byoc.onednn.costs.steps import cost
from tvm_mxplan.byoc.onednn.costs.tiles import TILES, by_tiles, has_tiles, pairs_by_vectors, tiles_us
from tvm_mxplan.byoc.onednn.costs.types import in_float, vectors_share
from tvm_mxplan.core.machine import Compute, MachineRates
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.core.step_facts import StepFacts, operands_of

POINT, VECTORS = "integers_1x1:avx512_amx", "integers_1x1:avx512_vnni"
WINDOWS, THEIRS = "integers_windows:avx512_amx", "brgconv_1x1:avx512_core_amx"
SHORT_POINT, SHORT_WINDOWS = "tiles_1x1:avx512_amx", "tiles_windows:avx512_amx"


def machine() -> MachineRates:
    """With tiles; 1000 cycles of a core in a microsecond on one thread."""
    given = rates()
    rates_of = (("float32", "avx512", 64.0), ("float32", "avx2", 32.0), ("uint8", TILES, 2000.0))
    return replace(given, threads=1, compute=tuple(Compute(*one) for one in rates_of))


def convolution(
    implementation: str,
    channels: tuple[int, int] = (64, 64),
    size: int = 16,
    window: int = 1,
    post_ops: int = 0,
    groups: int = 1,
    types: tuple[str, str] = ("uint8", "int8"),
) -> StepFacts:
    inputs, outputs = channels
    weights = (outputs, inputs, window, window)
    if groups > 1:
        weights = (groups, outputs // groups, inputs // groups, window, window)
    values = (
        ir.Value("x", (1, inputs, size, size), types[0], "input", "acdb", 0),
        ir.Value("w", weights, types[1], "constant", "abcde"[: len(weights)], 0),
        ir.Value("y", (1, outputs, size, size), types[0], "output", "acdb", 0),
    )
    operands = (ir.Operand("src", 0), ir.Operand("weights", 1), ir.Operand("dst", 2))
    attrs = ir.Convolution((1, 1), (window // 2,) * 4, (1, 1), groups)
    step = ir.Step("s", attrs, operands, (ir.EltwisePostOp("round", 0.0, 0.0),) * post_ops)
    layouts = tuple(values[number].layout for _, number in operands_of(step))
    return StepFacts(ir.Program("p", values, (step,)), step, layouts, info(implementation))


def short(
    implementation: str,
    channels: tuple[int, int] = (64, 64),
    size: int = 16,
    window: int = 1,
    functions: tuple[str, ...] = (),
) -> StepFacts:
    """In bfloat16, with functions behind."""
    made = convolution(implementation, channels, size, window, types=("bfloat16", "bfloat16"))
    return with_functions(made, *functions)


def with_functions(made: StepFacts, *functions: str) -> StepFacts:
    post_ops = tuple(ir.EltwisePostOp(one, 1.0, 0.0) for one in functions)
    return replace(made, step=replace(made.step, post_ops=post_ops))


@pytest.mark.parametrize(
    ("made", "cycles"),
    [
        (convolution(POINT), 3.4 + 7.0),
        (convolution(POINT, (65, 64)), 2 * 3.4 + 7.0),
        (convolution(POINT, post_ops=4), 3.4 + 7.0 + 6.0),
        (convolution(THEIRS, post_ops=4), 2.5 + 9.5 + 16.0),
        (convolution(VECTORS, (256, 64)), 4 * 10.5 + 6.0),
        (with_functions(convolution(POINT), "relu"), 3.4 + 7.0),
        (with_functions(convolution(POINT), "swish", "clip"), 3.4 + 7.0 + 1.5 + 42.0),
        (with_functions(convolution(THEIRS), "swish", "clip"), 2.5 + 9.5 + 4.0 + 30.0),
        (with_functions(convolution(VECTORS), "swish"), 10.5 + 6.0 + 32.0),
        (with_functions(convolution("jit_int8:avx512_core_vnni"), "swish"), 10.5 + 6.0 + 22.0),
        (with_functions(convolution("brgconv:avx512_core_amx", window=3), "swish"), 9 * 2.5 + 9.5 + 90.0),
        (with_functions(convolution("jit:avx512_core_amx", window=3), "swish"), 9 * 2.5 + 9.5 + 36.0),
        (convolution(WINDOWS, window=3), 9 * 2.8 + 7.0),
        # Lines of 8 with two between each of them: 78 rows, of which tiles make 80, for 64 pixels.
        (convolution(WINDOWS, window=3, size=8), 9 * 2.8 * 1.125 + 7.0),
        # The rows of a window, in pieces of 64 bytes, copied once for each panel of 64 channels.
        (convolution(WINDOWS, (24, 64), window=3), 4 * 2.8 + 7.0 + 3 * 2 * 7.5 / 4),
        (convolution(THEIRS, (24, 64), window=3), 4 * 2.5 + 9.5 + 20 / 4),
        (convolution(THEIRS, (64, 64), types=("bfloat16", "bfloat16")), 2 * 2.8 + 6.0),
        (
            convolution(THEIRS, (64, 64), groups=2, window=3, types=("bfloat16", "bfloat16")),
            9 * 2.8 + 6.0,
        ),
        (
            convolution("jit:avx512_core_amx", (3, 64), window=3, types=("bfloat16", "bfloat16")),
            2.8 + 6.0 + 22 / 4,
        ),
        (short(SHORT_POINT), 2 * 2.8 + 7.0),
        (short(SHORT_POINT, functions=("relu", "swish")), 2 * 2.8 + 7.0 + 10.0),
        (short(THEIRS, functions=("swish", "clip")), 2 * 2.8 + 6.0 + 22.0),
        (short(SHORT_POINT, functions=("gelu_erf",)), 2 * 2.8 + 7.0 + 20.0),
        (short(THEIRS, functions=("gelu_erf",)), 2 * 2.8 + 6.0 + 20.0),
        (short(SHORT_WINDOWS, window=3), 18 * 2.8 + 7.0),
        (short(SHORT_WINDOWS, window=3, size=8), 18 * 2.8 * 1.125 + 7.0),
        (short(SHORT_WINDOWS, (24, 64), window=3), 7 * 2.8 + 7.0 + (22 + 5 * 7) / 4),
    ],
)
def test_cycles(made: StepFacts, cycles: float) -> None:
    vectors = made.shape("dst")[2] ** 2 * 64 / 16
    assert by_tiles(made, machine())
    assert tiles_us(made, machine()) == pytest.approx(vectors * cycles / 1000.0)
    assert cost(made, machine()) > tiles_us(made, machine())


def test_ours_is_as_far_from_the_peak_in_float32_as_onednns() -> None:
    for own, theirs in ((SHORT_POINT, "brgconv_1x1"), (SHORT_WINDOWS, "brgconv")):
        assert is_own_tiles(info(own)) and not is_own_tiles(info(theirs))
        assert in_float(short(own)).info.family == theirs


def test_two_threads_share_the_work() -> None:
    two = replace(machine(), threads=2, compute=(Compute("float32", "avx2", 64.0), *machine().compute[-1:]))
    assert tiles_us(convolution(POINT), two) == pytest.approx(tiles_us(convolution(POINT), machine()) / 2)


def test_where_there_are_no_tiles_shares_hold() -> None:
    assert has_tiles(machine()) and not has_tiles(rates())
    assert not by_tiles(convolution(POINT), rates())
    for other in (
        convolution("brgconv:avx512_core_amx", (64, 64), groups=64, window=3),
        convolution("brgconv:avx512_core_vnni", (64, 64), groups=2, window=3),
        convolution("brgconv_1x1:avx512_core_bf16", types=("bfloat16", "bfloat16")),
        convolution(THEIRS, types=("float32", "float32")),
        convolution("ref:any"),
    ):
        assert not by_tiles(other, machine())


def test_tiles_are_chosen_for_deep_sums_and_vectors_for_flat_ones() -> None:
    deep, flat = (256, 256), (16, 96)
    assert cost(convolution(POINT, deep), machine()) < cost(convolution(VECTORS, deep), machine())
    assert cost(convolution(POINT, flat), machine()) > cost(convolution(VECTORS, flat), machine())


def test_our_kernel_in_bfloat16_is_chosen_for_its_functions() -> None:
    for function, ours in (("swish", True), ("gelu_tanh", True), ("relu", False), ("gelu_erf", False)):
        made = [short(one, functions=(function,)) for one in (SHORT_POINT, THEIRS)]
        assert (cost(made[0], machine()) < 0.97 * cost(made[1], machine())) == ours


def test_pairs_by_vectors_gain_bytes_and_lose_products() -> None:
    short, wide = ("bfloat16", "bfloat16"), ("float32", "float32")
    kernels = "brgconv_1x1:avx512_core_bf16", "brgconv_1x1:avx512_core"
    deep = [
        convolution(one, (512, 512), types=types) for one, types in zip(kernels, (short, wide), strict=True)
    ]
    assert pairs_by_vectors(deep[0], machine()) and not pairs_by_vectors(deep[1], machine())
    assert not pairs_by_vectors(deep[0], rates())
    in_short, in_float = (cost(one, machine()) for one in deep)
    assert 1.3 < in_short / in_float < 1.6
    assert cost(deep[0], rates()) < 0.6 * cost(deep[1], rates())


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        (convolution("jit_bf16:avx512_core_bf16", types=("bfloat16", "bfloat16")), 1.6),
        (convolution("jit_bf16:avx512_core_bf16", (3, 32), window=7, types=("bfloat16", "bfloat16")), 2.0),
        (
            convolution("jit_bf16:avx512_core_bf16", (32, 32), window=3, groups=4, types=("bfloat16",) * 2),
            1.3,
        ),
    ],
)
def test_shares_of_pairs_by_vectors(made: StepFacts, expected: float) -> None:
    assert vectors_share(made) == expected


def test_what_waits_for_its_images_is_by_tiles() -> None:
    """Though neither computes as long as its images move."""
    slow = replace(machine(), levels=tuple(replace(one, read=0.5, copied=0.5) for one in machine().levels))
    kernels = "brgconv_1x1:avx512_core_amx", "brgconv_1x1:avx512_core_bf16"
    tiles, vectors = (
        cost(convolution(one, (64, 256), 224, types=("bfloat16", "bfloat16")), slow) for one in kernels
    )
    moving = slow.moving_us(convolution(kernels[0], (64, 256), 224, types=("bfloat16",) * 2).image_bytes)
    assert moving < tiles < 0.97 * vectors < 2 * moving


def test_nothing_takes_no_time_to_multiply() -> None:
    assert tiles_us(convolution(POINT, size=0), machine()) == 0
    assert tiles_us(convolution(THEIRS, (64, 0)), machine()) == 0
