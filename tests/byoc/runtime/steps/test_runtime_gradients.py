"""Gradients of convolutions, pools and batch norms as steps, and convolutions by weights of a call."""

from __future__ import annotations

import numpy as np
import pytest
from program_builder import Builder, call, check, random
from sound_steps import SOUND

from tvm_mxplan.byoc.onednn import library
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.errors import UnsupportedError
from tvm_mxplan.opcheck import checking
from tvm_mxplan.opcheck.references.operands import Operands
from tvm_mxplan.opcheck.references.training import pooling_backward
from tvm_mxplan.opcheck.references.windows.convolution import backward_weights, convolution

LAYOUTS = ("abcd", "acdb", "aBcd16b")
GEOMETRIES = {
    "whole": ((1, 1), (1, 1, 1, 1), (1, 1), (11, 9)),
    # The last row and column are read by no window.
    "strides": ((2, 3), (1, 0, 0, 1), (1, 1), (12, 11)),
    "dilation": ((1, 2), (2, 1, 1, 2), (2, 1), (11, 9)),
}


def results(attrs: ir.Convolution, extents: tuple[int, int]) -> tuple[int, ...]:
    return tuple(
        (extents[i] + attrs.padding[i] + attrs.padding[2 + i] - 2 * attrs.dilation[i] - 1) // attrs.strides[i]
        + 1
        for i in range(2)
    )


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize("name", GEOMETRIES)
def test_gradient_of_weights(name: str, groups: int, layout: str) -> None:
    strides, padding, dilation, extents = GEOMETRIES[name]
    inputs, outputs = (32, 64) if groups > 1 and layout == "aBcd16b" else (6, 34)
    window = ir.Convolution(strides, padding, dilation, groups)
    attrs = ir.ConvolutionBackwardWeights(strides, padding, dilation, groups)
    x = random(2, inputs, *extents)
    gradient = random(2, outputs, *results(window, extents), seed=1)
    shape = (outputs // groups, inputs // groups, 3, 3)
    shape = shape if groups == 1 else (groups, *shape)
    given = {"src": [x.astype("float64")], "gradient": [gradient.astype("float64")]}
    expected = backward_weights(attrs, Operands(given, shape)).value
    b = Builder()
    src, grad = b.reorder(b.input(x.shape), layout), b.reorder(b.input(gradient.shape), layout)
    b.step(attrs, src=src, gradient=grad, dst=b.output(shape))
    check(b.run(x, gradient), expected.astype("float32"), gradient.size // outputs)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("groups", [1, 2])
def test_weights_of_a_call_are_packed_in_the_step(groups: int, layout: str) -> None:
    attrs = ir.Convolution((1, 1), (1, 1, 1, 1), (1, 1), groups)
    x, w = random(2, 32, 7, 9), random(groups, 64 // groups, 32 // groups, 3, 3, seed=1)
    w = w if groups > 1 else w[0]
    given = {"src": [x.astype("float64")], "weights": [w.astype("float64")]}
    expected = convolution(attrs, Operands(given, (2, 64, 7, 9))).value.astype("float32")
    b = Builder()
    src, dst = b.reorder(b.input(x.shape), layout), b.local(expected.shape, layout)
    b.step(attrs, src=src, weights=b.input(w.shape), dst=dst)
    b.finish(dst)
    check(b.run(x, w), expected, 32 * 9 // groups)
    # A second call with other weights packs them again.
    assert np.abs(b.run(x, np.zeros_like(w))).max() == 0


POOLS = {
    "max": ("max", (3, 3), (2, 2), (1, 1)),
    "average": ("avg_include_padding", (2, 3), (2, 2), (1, 0)),
    "average of what is there": ("avg_exclude_padding", (3, 2), (2, 1), (1, 1)),
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", POOLS)
def test_gradient_of_a_pool(name: str, layout: str) -> None:
    algorithm, kernel, strides, padding = POOLS[name]
    x = random(2, 19, 12, 11)
    extents = [(x.shape[2 + at] + 2 * padding[at] - kernel[at]) // strides[at] + 1 for at in range(2)]
    gradient = random(2, 19, *extents, seed=1)
    attrs = ir.PoolingBackward(algorithm, kernel, strides, padding, (1, 1))
    given = {"src": [x.astype("float64")], "gradient": [gradient.astype("float64")]}
    expected = pooling_backward(attrs, Operands(given, x.shape)).value.astype("float32")
    assert np.abs(expected.sum() - gradient.sum()) < 1e-2 or algorithm == "avg_include_padding"
    b = Builder()
    src, grad = b.reorder(b.input(x.shape), layout), b.reorder(b.input(gradient.shape), layout)
    dst = b.local(x.shape, layout)
    b.step(attrs, src=src, gradient=grad, dst=dst)
    b.finish(dst)
    check(b.run(x, gradient), expected, 9)


def _outputs(b: Builder, arrays: list[np.ndarray], shapes: list[tuple[int, ...]]) -> list[np.ndarray]:
    """All outputs of a region, every step held against its reference."""
    found = [np.full(shape, np.nan, "float32") for shape in shapes]
    with checking() as checker:
        call(b.module(), b.name, *arrays, *found)
    result = checker.result()
    assert result.steps == len(b.steps)
    assert result.first is None, result
    return found


@pytest.mark.parametrize("layout", LAYOUTS)
def test_batch_norm_in_training_and_its_gradients(layout: str) -> None:
    x, gradient = 2 * random(3, 19, 5, 7) + 1, random(3, 19, 5, 7, seed=1)
    scale, shift = random(19), random(19, seed=1)
    wide = x.astype("float64")
    mean, variance = wide.mean((0, 2, 3)), wide.var((0, 2, 3))
    b = Builder()
    src, scales = b.reorder(b.input(x.shape), layout), b.input((19,))
    dst = b.local(x.shape, layout)
    results = {"batch_mean": b.output((19,)), "batch_variance": b.output((19,))}
    b.step(
        ir.BatchNormalizationTraining(1e-3), src=src, scale=scales, shift=b.input((19,)), dst=dst, **results
    )
    b.finish(dst)
    found = _outputs(b, [x, scale, shift], [(19,), (19,), x.shape])

    def row(values: np.ndarray) -> np.ndarray:
        return values.reshape(1, 19, 1, 1)

    inverse = 1 / np.sqrt(variance + 1e-3)
    normal = (wide - row(mean)) * row(inverse)
    check(found[0], mean.astype("float32"), 105)
    check(found[1], variance.astype("float32"), 105)
    check(found[2], (normal * row(scale) + row(shift)).astype("float32"), 105)
    b = Builder()
    src, grad = b.reorder(b.input(x.shape), layout), b.reorder(b.input(x.shape), layout)
    given = {"mean": b.input((19,)), "variance": b.input((19,)), "scale": b.input((19,))}
    results = {"scale_gradient": b.output((19,)), "shift_gradient": b.output((19,))}
    dst = b.local(x.shape, layout)
    b.step(ir.BatchNormalizationBackward(1e-3), src=src, gradient=grad, **given, dst=dst, **results)
    b.finish(dst)
    arrays = [x, gradient, mean.astype("float32"), variance.astype("float32"), scale]
    found = _outputs(b, arrays, [(19,), (19,), x.shape])
    along, total = (gradient * normal).sum((0, 2, 3)), gradient.sum((0, 2, 3))
    expected = (gradient - row(total) / 105 - normal * row(along) / 105) * row(inverse * scale)
    check(found[0], along.astype("float32"), 105)
    check(found[1], total.astype("float32"), 105)
    check(found[2], expected.astype("float32"), 105)


@pytest.mark.parametrize("backward", [False, True])
def test_one_by_the_deviation_is_refused(backward: bool) -> None:
    """oneDNN has variances."""
    b, shape = Builder(), (3, 19, 5, 7)
    x, dst = b.input(shape), b.local(shape)
    if backward:
        gradient = b.input(shape)
        given = {role: b.input((19,)) for role in ("mean", "variance", "scale")}
        results = {role: b.output((19,)) for role in ("scale_gradient", "shift_gradient")}
        attrs: ir.Attributes = ir.BatchNormalizationBackward(1e-3, inverse=True)
        b.step(attrs, src=x, gradient=gradient, **given, dst=dst, **results)
    else:
        given = {role: b.input((19,)) for role in ("scale", "shift")}
        results = {role: b.output((19,)) for role in ("batch_mean", "batch_variance")}
        b.step(ir.BatchNormalizationTraining(1e-3, inverse=True), src=x, **given, dst=dst, **results)
    b.finish(dst)
    arrays = [random(*shape), *([random(*shape)] if backward else []), *[random(19)] * len(given)]
    with pytest.raises(UnsupportedError, match="1 / deviation"):
        _outputs(b, arrays, [(19,), (19,), shape])


@pytest.mark.parametrize(
    "kind", ["convolution_backward_weights", "pooling_backward", "batch_normalization_backward"]
)
def test_gradients_have_other_implementations(kind: str) -> None:
    """The next ones are asked for by the forward primitive too, which lives as long as they do."""
    program, _ = SOUND[kind].program()
    taken: list[str] = []
    try:
        while not (told := library.describe(program).steps[0]).error:
            taken.append(told.implementation)
            library.refuse(told.descriptor, told.implementation, "wrong on Sundays")
    finally:
        library.forget_refusals()
    assert len(taken) > 1 and len(set(taken)) == len(taken)
    assert "wrong on Sundays" in told.error
