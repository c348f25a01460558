"""Composites as steps: the program of each operator, run as it was translated, against TVM's own kernels."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
import tvm
import tvm_ffi
from tvm import relax

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "passes"))

from relax_programs import TARGET, normal, parse, run

from tvm_mxplan.byoc.onednn import library
from tvm_mxplan.byoc.onednn.backend import OneDNN
from tvm_mxplan.byoc.onednn.codegen import TRANSLATE
from tvm_mxplan.byoc.onednn.patterns import NAME
from tvm_mxplan.byoc.translate import translate_region
from tvm_mxplan.passes.dispatch import DispatchOperators
from tvm_mxplan.passes.dispatch.implementations import preference_of
from tvm_mxplan.passes.region import PartitionRegions

CASES: dict[str, tuple[str, list[tuple[int, ...]], list[str]]] = {
    "convolution": (
        "R.nn.conv2d(x, w, strides=[2, 1], padding=[1, 0, 2, 1], dilation=[1, 2])",
        [(2, 6, 9, 11), (4, 6, 3, 2)],
        ["convolution"],
    ),
    "convolution in groups": (
        "R.nn.conv2d(x, w, groups=3, padding=[1, 1, 1, 1])",
        [(2, 6, 5, 7), (9, 2, 3, 3)],
        ["convolution"],
    ),
    "convolution of one axis": ("R.nn.conv1d(x, w, padding=[0, 2])", [(2, 3, 9), (5, 3, 3)], ["convolution"]),
    "deconvolution": (
        "R.nn.conv2d_transpose(x, w, strides=[2, 3], padding=[1, 0, 0, 1], output_padding=[1, 0])",
        [(2, 3, 4, 5), (3, 4, 3, 2)],
        ["deconvolution"],
    ),
    "deconvolution in groups": (
        "R.nn.conv2d_transpose(x, w, groups=2, strides=[2, 2])",
        [(2, 6, 4, 5), (6, 2, 3, 3)],
        ["deconvolution"],
    ),
    "product": ("R.matmul(x, w)", [(2, 3, 4, 5), (5, 6)], ["matmul"]),
    "product of batches": ("R.matmul(x, w)", [(3, 4, 5), (2, 3, 5, 6)], ["matmul"]),
    "max pooling": (
        "R.nn.max_pool2d(x, pool_size=[3, 2], strides=[2, 1], padding=[1, 0, 0, 1])",
        [(2, 3, 9, 7)],
        ["pooling"],
    ),
    "average without padding": (
        "R.nn.avg_pool2d(x, pool_size=[3, 2], strides=[2, 1], padding=[1, 1, 0, 0])",
        [(2, 3, 9, 7)],
        ["pooling"],
    ),
    "average with padding": (
        "R.nn.avg_pool2d(x, pool_size=[3, 2], padding=[1, 1, 0, 0], count_include_pad=True)",
        [(2, 3, 9, 7)],
        ["pooling"],
    ),
    "adaptive pooling": ("R.nn.adaptive_avg_pool2d(x, [3, 2])", [(2, 3, 9, 8)], ["pooling"]),
    "mean of images": ("R.mean(x, axis=[2, 3])", [(2, 3, 4, 5)], ["pooling"]),
    "largest of images, kept": ("R.max(x, axis=[-1, -2], keepdims=True)", [(2, 3, 4, 5)], ["pooling"]),
    "mean of tokens": ("R.mean(x, axis=[2], keepdims=True)", [(2, 5, 64)], ["reduction"]),
    "mean of a row of pixels": (
        "R.mean(R.nn.relu(R.nn.conv1d(x, w)), axis=[2])",
        [(2, 3, 40), (8, 3, 3)],
        ["convolution", "eltwise", "pooling"],
    ),
    "mean of rows": ("R.mean(x, axis=[3])", [(2, 3, 4, 5)], ["reduction"]),
    "sum of images": ("R.sum(x, axis=[2, 3])", [(2, 3, 4, 5)], ["pooling", "eltwise"]),
    "mean of rows behind which nothing is": ("R.mean(x, axis=[1])", [(2, 30, 1, 1)], ["reduction"]),
    "sum of rows with an extent of 1 between": ("R.sum(x, axis=[1, 3])", [(2, 6, 1, 5)], ["reduction"]),
    "product of rows": ("R.prod(x, axis=[-1], keepdims=True)", [(4, 5)], ["reduction"]),
    "sum over an extent of 1 and another": ("R.sum(x, axis=[2, 3])", [(2, 3, 1, 5)], ["pooling", "eltwise"]),
    "a long sum": ("R.sum(x, axis=[1])", [(3, 6000)], ["reduction", "reduction"]),
    "a long mean": ("R.mean(x, axis=[-2, -1])", [(3, 80, 75)], ["reduction", "reduction"]),
    "a long sum of a prime": ("R.sum(x, axis=[1])", [(3, 5003)], ["pad", "reduction", "reduction"]),
    "a long mean of a prime": (
        "R.mean(x, axis=[1])",
        [(3, 5003)],
        ["pad", "reduction", "reduction", "eltwise"],
    ),
    "a long maximum": ("R.max(x, axis=[1])", [(3, 6000)], ["reduction"]),
    "the smallest of many": ("R.min(x, axis=[1])", [(3, 6000)], ["reduction"]),
    "smallest over extents of 1": ("R.min(x, axis=[2, 3])", [(2, 3, 1, 1)], []),
    "softmax of rows": ("R.nn.softmax(x, axis=-1)", [(2, 3, 4)], ["softmax"]),
    "softmax of channels": ("R.nn.softmax(x, axis=1)", [(2, 3, 4, 5)], ["softmax"]),
    "logarithm of rows": ("R.nn.log_softmax(x, axis=1)", [(2, 3)], ["softmax"]),
    "logarithm of channels": ("R.nn.log_softmax(x, axis=1)", [(2, 3, 4, 5)], ["reorder", "softmax"]),
    "softmax of a volume's channels": ("R.nn.softmax(x, axis=1)", [(2, 3, 4, 5, 2)], ["softmax"]),
    "softmax of more axes": ("R.nn.softmax(x, axis=1)", [(2, 3, 4, 1, 5, 2)], ["reorder", "softmax"]),
    "softmax of another axis": ("R.nn.softmax(x, axis=2)", [(2, 3, 4, 5)], ["reorder", "softmax"]),
    "softmax of the first axis": ("R.nn.softmax(x, axis=0)", [(3, 4, 5)], ["reorder", "softmax"]),
    "layer norm": ("R.nn.layer_norm(x, w, v, axes=[-1])", [(2, 3, 5), (5,), (5,)], ["layer_normalization"]),
    "layer norm of two axes": (
        "R.nn.layer_norm(x, w, v, axes=[-2, -1], epsilon=0.1)",
        [(2, 3, 5), (3, 5), (3, 5)],
        ["layer_normalization"],
    ),
    "layer norm of all axes": (
        "R.nn.layer_norm(x, w, v, axes=[0, 1])",
        [(3, 5), (3, 5), (3, 5)],
        ["layer_normalization"],
    ),
    "group norm": (
        "R.nn.group_norm(x, w, v, num_groups=2, channel_axis=1, axes=[2, 3])",
        [(2, 6, 3, 4), (6,), (6,)],
        ["layer_normalization", "binary", "binary"],
    ),
    "instance norm": (
        "R.nn.instance_norm(x, w, v, channel_axis=1, axes=[2, 3])",
        [(2, 6, 3, 4), (6,), (6,)],
        ["layer_normalization", "binary", "binary"],
    ),
    "concat": ("R.concat((x, w, x), axis=-2)", [(2, 3, 5), (2, 4, 5)], ["concat"]),
    "slice": ("R.strided_slice(x, [1, 2], [1, -3], [3, 5])", [(2, 4, 5)], ["slice"]),
    "reshape": ("R.reshape(x, (4, 6))", [(2, 3, 4)], []),
    "pad": ("R.nn.pad(x, [0, 0, 1, 2, 3, 0], pad_value=1.5)", [(2, 3, 4)], ["pad"]),
    "resize": (
        'R.image.resize2d(x, R.shape([6, 10]), method="linear", coordinate_transformation_mode="half_pixel")',
        [(2, 3, 4, 5)],
        ["resampling"],
    ),
    "resize to the nearest": (
        'R.image.resize2d(x, R.shape([8, 10]), method="nearest_neighbor", '
        'coordinate_transformation_mode="asymmetric", rounding_method="floor")',
        [(2, 3, 4, 5)],
        ["resampling"],
    ),
    "slopes of channels": ("R.nn.prelu(x, w, axis=1)", [(2, 3, 4, 5), (3,)], ["prelu"]),
    "slopes of another axis": ("R.nn.prelu(x, w, axis=2)", [(2, 3, 4, 5), (4,)], ["prelu"]),
    "slopes of the last axis": ("R.nn.prelu(x, w, axis=-1)", [(2, 3, 4, 5), (5,)], ["prelu"]),
    "the first operand broadcast": ("R.subtract(w, x)", [(2, 3, 4, 5), (4, 1)], ["binary", "eltwise"]),
    "divided by the whole": ("R.divide(w, R.tanh(x))", [(2, 3, 4), (3, 1)], ["eltwise", "binary", "eltwise"]),
    "rows of channels": ("R.multiply(x, w)", [(2, 3, 4, 5), (3, 4, 1)], ["binary"]),
    "the larger of both, the first broadcast": ("R.maximum(w, x)", [(2, 3, 4), (3, 1)], ["binary"]),
    "divided by next to nothing": ("R.divide(x, R.const(1e-39, 'float32'))", [(2, 3, 4)], ["binary"]),
    "divided by a large number": ("R.divide(x, R.const(1e38, 'float32'))", [(2, 3, 4)], ["binary"]),
    "divided by a number": ("R.divide(x, R.const(1e37, 'float32'))", [(2, 3, 4)], ["eltwise"]),
    "square root as a power": ("R.power(x, R.const(0.5, 'float32'))", [(2, 3, 4)], ["eltwise", "eltwise"]),
    "one slope": ("R.nn.prelu(x, R.const([0.3], 'float32'), axis=1)", [(2, 3, 4, 5)], ["eltwise"]),
    "samples": ("R.maximum(x, w)", [(2, 3, 4, 5), (2, 1, 1, 1)], ["binary"]),
}


@pytest.mark.parametrize("case", CASES)
def test_an_operator_as_steps(case: str) -> None:
    text, shapes, kinds = CASES[case]
    parameters = ", ".join(
        f'{name}: R.Tensor({shape}, "float32")' for name, shape in zip("xwv", shapes, strict=False)
    )
    # Whatever only moves data is no region of its own.
    lines = f"y = {text}\nreturn y" if kinds else f"y = {text}\nz = R.tanh(y)\nreturn z"
    plain = parse(lines, parameters)
    passes = [
        relax.transform.ConvertToDataflow(1),
        DispatchOperators(preference_of([OneDNN()])),
        PartitionRegions(),
    ]
    mod = tvm.transform.Sequential(passes)(plain)
    (region,) = [f for f in mod.functions.values() if f.attrs and "Codegen" in f.attrs]
    program, constants = translate_region(region, "r", NAME, TRANSLATE)
    found = [step.kind for step in program.steps]
    first = found[: len(kinds)]
    assert first == kinds and set(found[len(kinds) :]) <= {"reorder", *([] if kinds else ["eltwise"])}, found
    inputs = [np.abs(normal(at, *shape)) + np.float32(0.25) for at, shape in enumerate(shapes)]
    inputs[0] *= np.sign(normal(7, *shapes[0]))
    by_name = dict(zip("xwv", inputs, strict=False))
    given = [by_name[program.values[value].name] for value in program.of_kind("input")]
    (output,) = program.of_kind("output")
    result = np.full(program.values[output].shape, np.nan, "float32")  # type: ignore[arg-type]
    module = library.create_module("r", program, constants)
    module["r"](*[tvm_ffi.from_dlpack(array) for array in (*given, result)])
    (right,) = run(relax.VirtualMachine(tvm.compile(plain, TARGET), tvm.cpu()), *inputs)
    np.testing.assert_allclose(result, right, rtol=1e-4, atol=1e-5)
