"""Depthwise convolutions behind pointwise ones: when two become one, and that the one computes both."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import onnx
import onnx.parser
import pytest
from onnx import numpy_helper
from program_builder import Builder, check, convolution, grouped, output_shape, random
from small_programs import Small, kinds

import tvm_mxplan
from tvm_mxplan.byoc.onednn import library
from tvm_mxplan.byoc.onednn.rewrites.fusion import fuse
from tvm_mxplan.core.machine import MemoryLevel, default_rates
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.execution.threads import with_threads
from tvm_mxplan.testing.reference import onnxruntime_outputs

POINTWISE = ir.Convolution((1, 1), (0, 0, 0, 0), (1, 1), 1)
RELU = ir.EltwisePostOp("relu", 0.0, 0.0)
CLIP = ir.EltwisePostOp("clip_v2", 0.0, 6.0)


def depthwise_attrs(channels: int, stride: int) -> ir.Convolution:
    return ir.Convolution((stride, stride), (1, 1, 1, 1), (1, 1), channels)


def fused(b: Small, result: int, private: int = 2 << 20) -> ir.Program:
    """The program behind the pass; not run here, where all is plain and oneDNN takes no pair."""
    b.write_output(result, b.output)
    return fuse(b.finish(), list(b.constants), private=private)[0]


def add_depthwise(b: Small, src: int, stride: int) -> int:
    batch, channels, *size = b.shape(src)
    shape = (batch, channels, *((extent - 1) // stride + 1 for extent in size))
    weights = b.numbers(channels, 1, 1, 3, 3)
    operands = [("src", src), ("weights", weights), ("bias", b.numbers(channels))]
    return b.step("convolution", depthwise_attrs(channels, stride), shape, operands)


@pytest.mark.parametrize(
    "change",
    [
        {"padding": (0, 0, 1, 0)},
        {"padding": (1, 1, 1, 1)},
        {"strides": (1, 2)},
        {"strides": (2, 2)},
    ],
)
def test_only_a_pointwise_convolution_of_every_pixel_takes_one_in(change):
    b = Small((2, 96, 112, 112), (2, 8, 112, 112))
    b.conv(b.inputs[0], 96)
    attrs = replace(b.steps[-1].attrs, **change)
    b.steps[-1] = replace(b.steps[-1], attrs=attrs)
    assert len(fused(b, add_depthwise(b, b.steps[-1].dst, 1)).steps) == 2


@pytest.mark.parametrize(
    ("image", "channels", "stride", "pays"),
    [
        ((1, 8, 112, 112), 96, 2, True),
        ((1, 8, 112, 112), 96, 1, False),  # 4.6 MiB, with 2 MiB of private caches
        ((2, 8, 112, 112), 96, 1, True),
        ((1, 8, 56, 56), 144, 2, False),  # the caches hold it
        ((2, 8, 112, 112), 100, 2, False),  # no whole vectors of channels
        ((1, 3, 256, 160), 32, 1, True),  # 5 MiB to the byte
        ((1, 3, 256, 159), 32, 1, False),
        ((1, 3, 128, 128), 64, 2, True),  # 4 MiB to the byte
        ((1, 3, 128, 126), 64, 2, False),
    ],
)
def test_pairs_that_pay(image, channels, stride, pays):
    b = Small((image[0], channels, *(extent // stride for extent in image[2:])), image)
    y = b.eltwise(b.conv(b.inputs[0], channels), "relu")
    after = fused(b, b.eltwise(add_depthwise(b, y, stride), "relu"))
    if pays:
        (step,) = after.steps
        assert step.post_ops == (RELU, ir.DepthwisePostOp(3, stride, 1), RELU)
        assert [operand.role for operand in step.operands] == [
            "src", "weights", "dst", "depthwise_weights", "depthwise_bias",
        ]  # fmt: skip
    else:
        assert [step.post_ops for step in after.steps] == [(RELU,), (RELU,)]


@pytest.mark.parametrize(("stride", "times"), [(1, 2.5), (2, 2)])
def test_what_pays_goes_by_caches(stride, times):
    """The image between the two is no smaller than so many times what cores hold for themselves."""
    nbytes = 4 * 48 * 128 * 128
    for private, steps in ((int(nbytes / times), 1), (int(nbytes / times) + 1, 2)):
        b = Small((1, 48, 128 // stride, 128 // stride), (1, 8, 128, 128))
        after = fused(b, add_depthwise(b, b.conv(b.inputs[0], 48), stride), private)
        assert len(after.steps) == steps


@pytest.mark.parametrize(("private", "count"), [(1 << 20, 1), (2 << 20, 2)])
def test_a_compilation_goes_by_the_caches_of_its_machine(tmp_path, private, count):
    """2 MiB between the two, at stride 2."""
    weights = [
        numpy_helper.from_array(random(32, 8, 1, 1), "w"),
        numpy_helper.from_array(random(32, 1, 3, 3), "d"),
    ]
    parsed = onnx.parser.parse_model(
        """<ir_version: 9, opset_import: ["" : 17]>
        agraph (float[1, 8, 128, 128] x) => (float[1, 32, 64, 64] y) {
            a = Conv(x, w) y = Conv<group = 32, strides = [2, 2], pads = [1, 1, 1, 1]>(a, d)
        }"""
    )
    parsed.graph.initializer.extend(weights)
    levels = (MemoryLevel(private, 130.0, 180.0), *default_rates().levels[1:])
    rates = tmp_path / "rates.json"
    rates.write_text(json.dumps(replace(default_rates(), levels=levels).to_json()))
    executable = tvm_mxplan.compile(parsed, options={"machine": str(rates), "cache": "disabled"})
    (region,) = executable.report.regions
    assert [step.kind for step in region.steps].count("convolution") == count
    x = random(1, 8, 128, 128)
    check(executable.run(x)[0], onnxruntime_outputs(parsed, {"x": x})[0], 8 * 9)


@pytest.mark.parametrize("role", ["weights", "bias"])
@pytest.mark.parametrize("which", ["pointwise", "depthwise"])
def test_weights_and_biases_have_to_be_constants(which, role):
    shapes = {"pointwise": {"weights": (96, 8, 1, 1)}, "depthwise": {"weights": (96, 1, 1, 3, 3)}}
    b = Small((1, 96, 56, 56), (1, 8, 112, 112), shapes[which].get(role, (96,)))
    first = b.conv(b.inputs[0], 96)
    b.steps[-1] = replace(b.steps[-1], operands=(*b.steps[-1].operands, ir.Operand("bias", b.numbers(96))))
    last = add_depthwise(b, first, 2)
    at = ("pointwise", "depthwise").index(which)
    operands = [o if o.role != role else ir.Operand(role, b.inputs[1]) for o in b.steps[at].operands]
    b.steps[at] = replace(b.steps[at], operands=tuple(operands))
    assert kinds(fused(b, last)) == ["convolution", "convolution"]


def test_a_result_that_others_read_stays():
    image = (1, 8, 112, 112)
    b = Small((1, 96, 56, 56), image)
    y = b.conv(b.inputs[0], 96)
    pooled = b.step(
        "pooling", ir.Pooling("max", (2, 2), (2, 2), (0, 0), (1, 1)), (1, 96, 56, 56), [("src", y)]
    )
    after = fused(b, b.binary(add_depthwise(b, y, 2), pooled))
    assert kinds(after).count("convolution") == 2


def test_a_residual_stays_behind_the_pair():
    """oneDNN adds no other tensor to what a depthwise post-op gives."""
    image = (1, 8, 112, 112)
    b = Small((1, 96, 56, 56), image, (1, 96, 56, 56))
    after = fused(b, b.binary(add_depthwise(b, b.conv(b.inputs[0], 96), 2), b.inputs[1]))
    assert kinds(after) == ["convolution", "binary"]
    assert after.steps[0].post_ops == (ir.DepthwisePostOp(3, 2, 1),)


@pytest.fixture
def one_thread():
    with with_threads(1):
        yield


@pytest.mark.slow
@pytest.mark.parametrize("layout", ["acdb", "aBcd16b"])
@pytest.mark.parametrize("biases", [True, False])
@pytest.mark.parametrize("shape", [(1, 16, 7, 9), (1, 16, 112, 112)])
@pytest.mark.parametrize("stride", [1, 2])
def test_numbers(layout, biases, shape, stride, one_thread):
    """Small images, where oneDNN runs two primitives; where a core's cache is too small, it runs one."""
    channels = 96
    x, w, d = random(*shape), random(channels, shape[1], 1, 1), random(channels, 1, 3, 3, seed=1)
    bias, second = (random(channels), random(channels, seed=1)) if biases else (None, None)
    attrs = depthwise_attrs(channels, stride)
    between = np.clip(convolution(x, w, POINTWISE, bias), 0, 6)
    expected = np.maximum(convolution(between, d, attrs, second), 0)
    b = Builder()
    src = b.reorder(b.input(shape), layout)
    dst = b.local(output_shape(between.shape, d.shape, attrs), layout)
    operands = {"src": src, "weights": b.constant(w), "dst": dst}
    operands["depthwise_weights"] = b.constant(grouped(d, channels))
    if bias is not None and second is not None:
        operands |= {"bias": b.constant(bias), "depthwise_bias": b.constant(second)}
    b.step(POINTWISE, [CLIP, ir.DepthwisePostOp(3, stride, 1), RELU], **operands)
    b.finish(dst)
    if shape[2] == 112 and stride == 2:
        assert library.describe(b.build()).steps[1].implementation == "jit_1x1:avx512_core" or (
            "avx512" not in library.isa()
        )
    check(b.run(x), expected, 9 * shape[1])


@pytest.mark.parametrize("field", [(0, 1, 1), (3, 0, 1), (3, 1, -1), (3, 2**40, 1)])
def test_nonsense_is_refused(field):
    b = Builder()
    x = b.input((1, 16, 8, 8))
    operands = {"src": x, "weights": b.constant(random(16, 16, 1, 1)), "dst": b.output((1, 16, 8, 8))}
    operands["depthwise_weights"] = b.constant(random(16, 1, 1, 3, 3))
    b.step(POINTWISE, [ir.DepthwisePostOp(*field)], **operands)
    with pytest.raises(ValueError, match="depthwise post-op with kernel"):
        b.module()
