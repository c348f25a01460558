"""Errata: each refuses its implementation where its condition holds, and what runs in its place is right."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fnmatch import fnmatch

import ml_dtypes
import numpy as np
import pytest
from less_instructions import run_again
from program_builder import Array, Builder, call, random
from single_steps import info, run
from single_steps import no_refusals as no_refusals
from steps_of_errata import (
    BLOCKS,
    ERRATA,
    blocked_deconvolution,
    conversion,
    deconvolution,
    deconvolution_of_bytes,
)

from tvm_mxplan.byoc.onednn import library
from tvm_mxplan.byoc.onednn.backend import OneDNN
from tvm_mxplan.core.element_types import numpy_type
from tvm_mxplan.core.layout.layout import parse_layout
from tvm_mxplan.core.layout.layout_arrays import pack
from tvm_mxplan.core.program import program as ir


def test_the_table_is_told_as_data() -> None:
    table = library.errata()
    assert len({entry["name"] for entry in table}) == len(table)
    for entry in table:
        assert entry["condition"]["kind"] in ("", *ir.STEP_KINDS)
        assert entry["first"] <= library.version() and entry["wrong"] and entry["found_by"]


NOTHING_ELSE = ("byte-pairs-gemm-inside", "deconvolution-gaps-vectors")
"""Errata behind which oneDNN may have nothing left; the step is then an error."""


def every(make: Callable[[], Builder], *, runs: bool) -> list[str]:
    """Names of what the library takes for the last step, best first; ``runs`` holds each to its reference."""
    names: list[str] = []
    while True:
        b = make()
        told = library.describe(b.build()).steps[-1]
        if told.error:
            library.forget_refusals()
            return names
        if runs:
            values = b.build().values
            (output,) = (value for value in values if value.kind == "output")
            inputs = [stored_input(value) for value in values if value.kind == "input"]
            b.run_stored(*inputs, shape=parse_layout(output.layout).physical_shape(output.shape))
        names.append(told.implementation)
        library.refuse(told.descriptor, told.implementation, "has run")


def stored_input(value: ir.Value) -> Array:
    dtype, shape = numpy_type(value.dtype), tuple(int(size) for size in value.shape)
    if dtype.kind in "iu":
        least, greatest = limits(value.dtype)
        array = np.random.default_rng(5).integers(least, greatest + 1, shape).astype(dtype)
    else:
        array = (2 + np.abs(random(*shape))).astype(dtype)  # divisors too
    return pack(array, parse_layout(value.layout))


def test_every_erratum_is_tried_here() -> None:
    assert set(ERRATA) == {entry["name"] for entry in library.errata()}


@pytest.mark.parametrize("name", ERRATA)
def test_an_erratum_refuses_its_implementation_and_the_others_are_right(name: str) -> None:
    (entry,) = (entry for entry in library.errata() if entry["name"] == name)
    library.set_errata(False)
    offered = every(ERRATA[name], runs=False)
    wrong = {one for one in offered if fnmatch(one, entry["implementation"])}
    if not wrong:
        pytest.skip(f"this processor has no {entry['implementation']}: {offered}")
    if entry["condition"]["vnni"] == "none" and "avx512" in library.isa() and not OneDNN().lacks("int8"):
        pytest.skip(f"{entry['implementation']} is right where there is VNNI: {library.isa()}")
    library.set_errata(True)
    left = every(ERRATA[name], runs=True)
    assert left or name in NOTHING_ELSE
    assert not wrong & set(left)


@pytest.mark.slow
def test_an_erratum_of_a_narrow_instruction_set() -> None:
    """In a process of its own, where nothing wider is there."""
    run_again(__file__, "SSE41", "refuses_its and log and softmax")


@pytest.mark.slow
def test_errata_of_vectors_of_bytes() -> None:
    """On processors for notebooks nothing wider is there."""
    run_again(__file__, "AVX2_VNNI", "refuses_its and (vectors or depthwise or gemm)")


@pytest.mark.parametrize("bias,relu", [(True, False), (False, True), (True, True)])
@pytest.mark.parametrize("channels", [80, 512])
def test_strided_deconvolution_with_an_epilogue(channels: int, bias: bool, relu: bool) -> None:
    library.set_errata(False)
    before = info(deconvolution(channels, bias=bias, relu=relu))
    if not before.implementation.startswith("brg_conv:"):
        pytest.skip(f"this processor runs {before.implementation}")
    library.set_errata(True)
    b = deconvolution(channels, bias=bias, relu=relu)
    told = info(b)
    assert before.implementation in [one.implementation for one in told.refused]
    assert "erratum deconvolution-epilogue" in told.refused[0].reason
    assert run(b) == told.implementation != before.implementation


@pytest.mark.parametrize(("behind", "refused"), [(0, False), (1, False), (2, True), (3, True)])
def test_a_deconvolution_of_bytes_with_pixels_behind_the_last_window(behind: int, refused: bool) -> None:
    library.set_errata(False)
    before = info(deconvolution_of_bytes(4, 4, behind)).implementation
    if not before.startswith("jit_deconvolution:"):
        pytest.skip(f"this processor runs {before}")
    library.set_errata(True)
    b = deconvolution_of_bytes(4, 4, behind)
    told = info(b)
    assert (told.implementation != before) == refused
    (src, dst) = (value for value in b.build().values if value.kind in ("input", "output"))
    shape = parse_layout(dst.layout).physical_shape(dst.shape)
    b.run_stored(stored_input(src), shape=shape)


@pytest.mark.parametrize("added", [False, True])
def test_a_data_gradient_in_blocks_keeps_its_kernel_and_its_epilogue_stands_apart(added: bool) -> None:
    library.set_errata(False)
    before = info(blocked_deconvolution(added=added)).implementation
    if not before.startswith("conv:any+"):
        pytest.skip(f"this processor runs {before}")
    library.set_errata(True)
    b = blocked_deconvolution(added=added)
    told = info(b).implementation
    assert told.startswith(f"{before}+")
    values = b.build().values
    inputs = [stored_input(value) for value in values if value.kind == "input"]
    b.run_stored(*inputs, shape=parse_layout(BLOCKS).physical_shape((2, 48, 5, 6)))


def test_strided_deconvolution_without_an_epilogue_keeps_its_kernel() -> None:
    assert not info(deconvolution(512, bias=False, relu=False)).refused
    assert not info(deconvolution(512, bias=True, relu=True, stride=1, kernel=3)).refused


def converted(b: Builder) -> tuple[str, Array, Array]:
    """The implementation, the result in plain order, and the one by numpy."""
    program = b.build()
    src, dst = (program.values[i] for i in (0, 1))
    x = np.random.default_rng(3).integers(0, 40, src.shape).astype(src.dtype)
    stored = pack(x, parse_layout(src.layout))
    out = np.zeros(parse_layout(dst.layout).physical_shape(dst.shape), dst.dtype)
    call(b.module(), b.name, stored, out)
    real = (x.astype("float64") - 7) * 0.25 if src.dtype != "float32" else x.astype("float64")
    wanted = real / 0.25 + 7 if dst.dtype != "float32" else real
    clipped = wanted if dst.dtype == "float32" else np.clip(wanted, *limits(dst.dtype))
    return info(b).implementation, out, pack(clipped.astype(dst.dtype), parse_layout(dst.layout))


def limits(dtype: str) -> tuple[int, int]:
    return np.iinfo(dtype).min, np.iinfo(dtype).max


@pytest.fixture
def by_onednn() -> Iterator[Callable[[Builder], Builder]]:
    """Leaves a step to oneDNN: where kernels of our own take it, they are refused."""

    def left(b: Builder) -> Builder:
        told = info(b)
        if told.implementation.startswith(("conversion:", "channelwise:")):
            library.refuse(told.descriptor, told.implementation, "ours")
        return b

    yield left
    library.forget_refusals()


def reasons(b: Builder) -> list[str]:
    """Reasons for refusing implementations of oneDNN's."""
    return [one.reason for one in info(b).refused if one.reason != "ours"]


@pytest.mark.parametrize(
    "types",
    [("float32", "uint8"), ("float32", "int8"), ("uint8", "float32"), ("int8", "int8"), ("uint8", "int8")],
)
@pytest.mark.parametrize(
    "shape,layouts",
    [
        ((2, 19, 8, 8), ("abcd", "acdb")),
        ((1, 64, 7, 7), ("acdb", "abcd")),
        ((1, 16, 113, 113), ("acdb", "abcd")),  # a row beyond the first-level cache
        ((1, 16, 113, 113), ("aBcd16b", "abcd")),
        ((2, 33, 128), ("abc", "acb")),
        ((1, 17, 4, 4, 4), ("abcde", "acdeb")),
        ((3, 5, 7, 18), ("abcd", "dcab")),  # three runs
    ],
)
def test_zero_points_between_layouts(
    types: tuple[str, str],
    shape: tuple[int, ...],
    layouts: tuple[str, str],
    by_onednn: Callable[[Builder], Builder],
) -> None:
    b = by_onednn(conversion(types, shape, layouts))
    name, got, right = converted(b)
    assert np.array_equal(got, right)
    if library.version() < "3.3":
        assert name == "jit:uni+jit:uni" and "zero points are left out" in reasons(b)[0]
    library.refuse(info(b).descriptor, name, "wrong on Sundays")
    assert "wrong on Sundays" in info(b).error


@pytest.mark.parametrize(
    "shape,layouts",
    [
        ((1, 3, 64, 64), ("abcd", "acdb")),  # an image as it comes in
        ((2, 20, 8, 8), ("abcd", "acdb")),
        ((2, 19, 8, 8), ("acdb", "acdb")),
        ((1, 19, 1, 1), ("abcd", "acdb")),
    ],
)
def test_conversions_that_are_right_stay_one_step(
    shape: tuple[int, ...], layouts: tuple[str, str], by_onednn: Callable[[Builder], Builder]
) -> None:
    b = by_onednn(conversion(shape=shape, layouts=layouts))
    name, got, right = converted(b)
    assert name == "jit:uni" and not reasons(b) and np.array_equal(got, right)


def test_a_conversion_without_zero_points_stays_one_step(by_onednn: Callable[[Builder], Builder]) -> None:
    b = Builder()
    src, dst = b.input((2, 19, 8, 8), "abcd"), b.output((2, 19, 8, 8), "acdb", "uint8")
    b.step(ir.Quantization(0), src=src, dst=dst, dst_scale=b.constant(np.array([0.5], "float32")))
    assert info(by_onednn(b)).implementation == "jit:uni"


@pytest.mark.parametrize("stride,kernel", [(4, 3), (2, 2), (2, 3)])
def test_windows_that_nearly_touch_keep_their_kernel(stride: int, kernel: int) -> None:
    names = every(lambda: deconvolution_of_bytes(stride, kernel), runs=True)
    library.set_errata(False)
    offered = every(lambda: deconvolution_of_bytes(stride, kernel), runs=False)
    assert [n for n in offered if n.startswith("jit_deconv")] == [
        n for n in names if n.startswith("jit_deconv")
    ]


@pytest.mark.parametrize("layout", ["acdb", "abcd"])
@pytest.mark.parametrize("shape", [(2, 64, 1, 1), (1, 35, 1, 1)])
def test_points_in_bfloat16_take_float32_constants(
    by_onednn: Callable[[Builder], Builder], shape: tuple[int, ...], layout: str
) -> None:
    """oneDNN 3.2 left out the elements 8 to 15 where such images are called channels last."""
    if OneDNN().lacks("bfloat16"):
        pytest.skip("this processor has no bfloat16")
    b = Builder()
    src, dst = b.input(shape, layout, "bfloat16"), b.output(shape, layout, "bfloat16")
    b.step(ir.Binary("add"), src=src, src1=b.constant(random(*shape)), dst=dst)
    by_onednn(b)
    x = random(*shape, seed=1).astype(ml_dtypes.bfloat16)
    stored = parse_layout(layout).physical_shape(shape)
    got = b.run_stored(x.reshape(stored), shape=stored).astype("float32").reshape(shape)
    np.testing.assert_allclose(got, x.astype("float32") + random(*shape), rtol=2**-8, atol=2**-8)
    assert info(b).implementation == "jit:uni"
