"""Implementations that a step must not run: errata, and what a process registers."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from fnmatch import fnmatch
from math import prod

import numpy as np
import pytest
from program_builder import Array, Builder, call, random

from tvm_mxplan.byoc.onednn import library
from tvm_mxplan.byoc.onednn.backend import OneDNN
from tvm_mxplan.core.description import Refused, StepInfo
from tvm_mxplan.core.layout.layout import parse_layout
from tvm_mxplan.core.layout.layout_arrays import pack
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.passes.region.annotate import annotate

RELU = ir.EltwisePostOp("relu", 0.0, 0.0)


@pytest.fixture(autouse=True)
def no_refusals() -> Iterator[None]:
    yield
    library.forget_refusals()
    library.set_errata(True)


def info(b: Builder) -> StepInfo:
    return library.describe(b.build()).steps[0]


def small_convolution(preferred: str = "", algorithm: ir.ConvolutionAlgorithm = "direct") -> Builder:
    b = Builder()
    attrs = ir.Convolution((1, 1), (1, 1, 1, 1), (1, 1), 1, algorithm, preferred)
    src, dst = b.input((1, 35, 9, 11), "acdb"), b.output((1, 17, 9, 11), "acdb")
    b.step(attrs, [RELU], src=src, weights=b.constant(random(17, 35, 3, 3)), dst=dst)
    return b


def stored(dims: tuple[int, ...]) -> Array:
    """Random numbers in the shape of a 2-D image that is stored channels last."""
    n, c, h, w = dims
    return random(n, h, w, c)


def run(b: Builder) -> str:
    """Runs the one step, held against its reference; which implementation it was."""
    module, program = b.module(), b.build()
    src, dst = (tuple(int(d) for d in program.values[i].shape) for i in (0, 1))
    b.run_stored(stored(src), shape=(dst[0], dst[2], dst[3], dst[1]))
    out = np.empty((dst[0], dst[2], dst[3], dst[1]), "float32")
    call(module, b.name, stored(src), out)
    (specialization,) = library.stats(module)["specializations"]
    return str(specialization["steps"][0]["implementation"])


def test_the_next_best_implementation_runs_and_the_report_has_both() -> None:
    first = info(small_convolution())
    assert not first.refused
    assert first.descriptor.startswith("convolution ")
    refused: list[Refused] = []
    taken = [first.implementation]
    for _ in range(3):
        refused.append(Refused(taken[-1], f"wrong {len(refused)}"))
        library.refuse(first.descriptor, *refused[-1])
        now = info(small_convolution())
        assert now.refused == tuple(refused)
        assert now.implementation not in taken and not set(taken) & set(now.alternatives)
        assert run(small_convolution()) == now.implementation
        taken.append(now.implementation)
    library.forget_refusals()
    assert info(small_convolution()) == first


def test_a_step_without_anything_left_is_refused_with_the_reasons() -> None:
    told = info(small_convolution())
    while not told.error:
        library.refuse(told.descriptor, told.implementation, "wrong on Sundays")
        told = info(small_convolution())
    assert "every implementation" in told.error and "wrong on Sundays" in told.error
    with pytest.raises(Exception, match="wrong on Sundays"):
        run(small_convolution())


@pytest.mark.parametrize("own", [False, True])
def test_what_a_plan_refuses_no_process_runs(own: bool) -> None:
    """Without a word to the process: the program carries it, into exported libraries too."""
    b = small_convolution(algorithm="winograd_f2" if own else "direct")
    first = info(b)
    b.steps[0] = replace(b.steps[0], refused=(first.implementation,))
    told = info(b)
    assert told.refused == (Refused(first.implementation, "found to be wrong when the plan was made"),)
    assert library.refusals() == []
    assert run(b) not in (first.implementation, "")
    if not own:
        assert annotate(b.build(), OneDNN()).steps[0].refused == (first.implementation,)


def test_other_steps_keep_what_is_refused_for_one() -> None:
    first = info(small_convolution())
    library.refuse(first.descriptor, first.implementation, "wrong here")
    b = small_convolution()
    b.values[1] = ir.Value("o", (1, 17, 9, 11), "float32", "output", "abcd", 0)
    assert info(b).descriptor != first.descriptor and not info(b).refused


def test_what_a_step_prefers_may_be_refused_too() -> None:
    first = info(small_convolution())
    name = first.alternatives[0]
    library.refuse(first.descriptor, name, "wrong alternative")
    told = info(small_convolution(name))
    assert f"{name} is refused for it, wrong alternative" in told.error
    assert told.refused == (Refused(name, "wrong alternative"),)
    assert run(small_convolution(name)) == first.implementation


def test_own_kernels_are_refused_under_their_names() -> None:
    winograd = small_convolution(algorithm="winograd_f4")
    first = info(winograd)
    assert (first.implementation, first.error) == ("winograd_f4", "")
    library.refuse(first.descriptor, "winograd_f4", "wrong tiles")
    assert "winograd_f4 is refused for it, wrong tiles" in info(winograd).error
    assert run(winograd) == info(small_convolution()).implementation

    def row() -> Builder:
        b = Builder()
        src, dst = b.input((1, 67)), b.output((1, 19))
        b.step(ir.InnerProduct(), src=src, weights=b.constant(random(19, 67)), dst=dst)
        return b

    assert info(row()).implementation == "row_product"
    library.refuse(info(row()).descriptor, "row_product", "wrong rows")
    assert info(row()).refused == (Refused("row_product", "wrong rows"),)
    assert info(row()).implementation != "row_product"
    row().run(random(1, 67))


def test_a_step_of_several_stages_is_refused_as_a_whole() -> None:
    b = Builder()
    src, dst = b.input((1, 3, 5)), b.output((1, 3, 9))
    b.step(ir.Pad((0, 0, 2), 1.0), src=src, dst=dst)
    told = info(b)
    assert "+" in told.implementation
    library.refuse(told.descriptor, told.implementation, "wrong borders")
    assert "wrong borders" in info(b).error


def test_a_refusal_needs_a_reason() -> None:
    with pytest.raises(ValueError, match="a reason"):
        library.refuse("convolution", "jit", "")
    assert not library.refusals()


# --- errata ----------------------------------------------------------------------------------------------


def test_the_table_is_told_as_data() -> None:
    table = library.errata()
    assert len({entry["name"] for entry in table}) == len(table)
    for entry in table:
        assert entry["condition"]["kind"] in ir.STEP_KINDS
        assert entry["first"] <= library.version() and entry["wrong"] and entry["found_by"]


def deconvolution(channels: int, *, bias: bool, relu: bool, stride: int = 2, kernel: int = 4) -> Builder:
    b = Builder()
    extent = 3 * stride + kernel - 2
    src, dst = b.input((1, channels, 4, 4), "acdb"), b.output((1, 64, extent, extent), "acdb")
    weights = random(64, channels, kernel, kernel) / np.float32(prod((channels, kernel, kernel)) ** 0.5)
    operands = {"bias": b.constant(random(64))} if bias else {}
    attrs = ir.Deconvolution((stride, stride), (1, 1, 1, 1), (1, 1), 1)
    b.step(attrs, [RELU] if relu else [], src=src, weights=b.constant(weights), **operands, dst=dst)
    return b


def strided_deconvolution() -> Builder:
    return deconvolution(80, bias=True, relu=True)


def depthwise_with_a_sum() -> Builder:
    b = Builder()
    src, added = b.input((1, 5, 6, 7), "acdb"), b.input((1, 5, 6, 7), "acdb")
    held = b.view(b.output((1, 5, 6, 7), "acdb"), (1, 5, 6, 7), "acdb")
    b.step(ir.Reorder(), src=added, dst=held)
    attrs = ir.Convolution((1, 1), (1, 1, 1, 1), (1, 1), 5)
    weights = b.constant(random(5, 1, 1, 3, 3))
    dst = b.view(held, (1, 5, 6, 7), "acdb")
    b.step(attrs, [ir.SumPostOp(1.0), RELU], src=src, weights=weights, dst=dst)
    return b


def depthwise_with_a_division() -> Builder:
    b = Builder()
    src, dst = b.input((1, 35, 6, 5), "aBcd8b"), b.output((1, 35, 6, 5), "aBcd8b")
    attrs = ir.Convolution((1, 1), (1, 1, 1, 1), (1, 1), 35)
    post_ops = [ir.BinaryPostOp("div", b.constant(2 + np.abs(random(1, 35, 1, 1))))]
    b.step(attrs, post_ops, src=src, weights=b.constant(random(35, 1, 1, 3, 3)), dst=dst)
    return b


def resampling_with_a_binary() -> Builder:
    b = Builder()
    src, dst = b.input((1, 3, 2, 5), "acdb"), b.output((1, 3, 4, 7), "acdb")
    post_ops = [ir.BinaryPostOp("add", b.constant(random(1, 3, 1, 1)))]
    b.step(ir.Resampling("linear"), post_ops, src=src, dst=dst)
    return b


def log_softmax() -> Builder:
    b = Builder()
    b.step(ir.Softmax("log_softmax", 1), src=b.input((3, 7)), dst=b.output((3, 7)))
    return b


def conversion(
    types: tuple[str, str] = ("float32", "uint8"),
    shape: tuple[int, ...] = (2, 19, 8, 8),
    layouts: tuple[str, str] = ("abcd", "acdb"),
) -> Builder:
    b = Builder()
    ends = dict(zip(("src", "dst"), types, strict=True))
    src, dst = b.input(shape, layouts[0], types[0]), b.output(shape, layouts[1], types[1])
    operands = {}
    for role, dtype in ends.items():
        if dtype != "float32":
            operands[f"{role}_scale"] = b.constant(np.array([0.25], "float32"))
            operands[f"{role}_zero_point"] = b.constant(np.array([7], "int32"))
    b.step(ir.Quantization(0), src=src, dst=dst, **operands)
    return b


ERRATA = {
    "deconvolution-epilogue": strided_deconvolution,
    "depthwise-sum-tail": depthwise_with_a_sum,
    "depthwise-division-padding": depthwise_with_a_division,
    "resampling-binary": resampling_with_a_binary,
    "log-softmax-sse41": log_softmax,
    "conversion-zero-point": conversion,
}


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
    return pack(random(*(int(size) for size in value.shape)), parse_layout(value.layout))


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
    library.set_errata(True)
    left = every(ERRATA[name], runs=True)
    assert left and not wrong & set(left)


def test_an_erratum_of_a_narrow_instruction_set() -> None:
    """In a process of its own, where nothing wider is there."""
    command = [sys.executable, "-m", "pytest", "-q", __file__, "-k", "refuses_its_implementation and log"]
    environment = {**os.environ, "ONEDNN_MAX_CPU_ISA": "SSE41"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert "1 passed" in done.stdout, done.stdout


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
    types: tuple[str, str], shape: tuple[int, ...], layouts: tuple[str, str]
) -> None:
    b = conversion(types, shape, layouts)
    name, got, right = converted(b)
    assert np.array_equal(got, right)
    if library.version() < "3.3":
        assert name == "jit:uni+jit:uni" and "zero points are left out" in info(b).refused[0].reason
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
def test_conversions_that_are_right_stay_one_step(shape: tuple[int, ...], layouts: tuple[str, str]) -> None:
    b = conversion(shape=shape, layouts=layouts)
    name, got, right = converted(b)
    assert name == "jit:uni" and not info(b).refused and np.array_equal(got, right)


def test_a_conversion_without_zero_points_stays_one_step() -> None:
    b = Builder()
    src, dst = b.input((2, 19, 8, 8), "abcd"), b.output((2, 19, 8, 8), "acdb", "uint8")
    b.step(ir.Quantization(0), src=src, dst=dst, dst_scale=b.constant(np.array([0.5], "float32")))
    assert info(b).implementation == "jit:uni"
