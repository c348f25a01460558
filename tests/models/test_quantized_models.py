"""Quantised models: integers all the way where libraries have code for them, numbers those of onnxruntime.

Every result ends in a quantiser, so a step of it is one unit; ties and sums in another order may move an
element by one step, and no more than one in a thousand of them by any.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from quantized_models import QuantizedModel, Scale

import tvm_mxplan
from tvm_mxplan.byoc.onednn import library
from tvm_mxplan.byoc.onednn.backend import OneDNN
from tvm_mxplan.byoc.onednn.rewrites.integer_products import IntegerProducts
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.execution.executable import Executable
from tvm_mxplan.report.inspection import decoded_programs

ort = pytest.importorskip("onnxruntime", reason="onnxruntime says what is right")

# In no simple ratio, or else sums of two lie half way between two steps.
U8 = Scale(0.02341, 131)
FINE = Scale(0.01717, 120)
S8 = Scale(0.02113, -5, "int8")
PLAIN = Scale(0.01931, 0, "int8")
IMAGE = (2, 19, 13, 11)
_PRODUCTS = (ir.Convolution, ir.Deconvolution, ir.MatMul, ir.InnerProduct)


def steps_of(executable: Executable) -> list[tuple[ir.Program, ir.Step]]:
    return [(program, step) for program in decoded_programs(executable.module) for step in program.steps]


def products(executable: Executable) -> tuple[int, int]:
    """The products of integers, and all."""
    found = [step for _, step in steps_of(executable) if isinstance(step.attrs, _PRODUCTS)]
    return sum(step.is_quantized for step in found), len(found)


def conversions(executable: Executable) -> int:
    return sum(isinstance(step.attrs, ir.Quantization) for _, step in steps_of(executable))


def results_of(answer: object) -> list[object]:
    return [answer] if hasattr(answer, "numpy") else list(answer)  # type: ignore[call-overload]


def check(made: QuantizedModel, model: onnx.ModelProto, step: float) -> Executable:
    """Compile, run, and compare with onnxruntime in units of the last quantiser."""
    data = made.data()
    options = ort.SessionOptions()
    # Its own fusions take biases to be in the scale of the products.
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    expected = session.run(None, data)
    executable = tvm_mxplan.compile(model)
    assert "ref:any" not in str(executable.report), executable.report
    results = results_of(executable(**data))
    for ours, theirs in zip(results, expected, strict=True):
        gap = np.abs(ours.numpy().astype("float64") - theirs) / step
        assert gap.max() <= 1.001, gap.max()
        assert (gap > 0.5).mean() <= 0.001, (gap > 0.5).mean()
        assert len(np.unique(theirs)) > 20  # or else there is nothing to compare
    return executable


def needs_integers() -> None:
    if IntegerProducts.of(library.isa()) is IntegerProducts.NONE:
        pytest.skip(OneDNN().lacks("int8"))


def convolution(by: Scale = U8, **options: object) -> Callable[[QuantizedModel], tuple[str, float]]:
    def build(m: QuantizedModel) -> tuple[str, float]:
        x = m.rounded(m.input("x", IMAGE), by)
        channels = options.pop("channels", (19, 35))  # type: ignore[call-overload]
        y = m.rounded(m.conv(x, channels, **options), FINE)  # type: ignore[arg-type]
        return y, FINE.scale  # type: ignore[return-value]

    return build


def matmul(m: QuantizedModel) -> tuple[str, float]:
    x = m.rounded(m.input("x", (3, 13, 67)), U8)
    row = Scale(0.0016 * np.exp(m.rng.uniform(-0.5, 0.5, 35)), np.zeros(35, "int8"), "int8")
    y = m.node("Add", m.node("MatMul", x, m.weights((67, 35), row, axis=1)), m.bias(35))
    return m.rounded(y, S8), S8.scale  # type: ignore[return-value]


def gemm(m: QuantizedModel) -> tuple[str, float]:
    x = m.rounded(m.input("x", (5, 67)), U8)
    y = m.node("Gemm", x, m.weights((35, 67), Scale(0.0016, 0, "int8")), m.bias(35), transB=1)
    return m.rounded(m.node("Relu", y), Scale(0.01971, 0)), 0.01971


def transposed(m: QuantizedModel) -> tuple[str, float]:
    x = m.rounded(m.input("x", (2, 18, 9, 7)), U8)
    row = Scale(0.0015 * np.exp(m.rng.uniform(-0.5, 0.5, 12)), np.zeros(12, "int8"), "int8")
    weights = m.weights((18, 12, 3, 3), row, axis=1)
    y = m.node("ConvTranspose", x, weights, m.bias(12), strides=[2, 2], pads=[1, 1, 0, 1])
    return m.rounded(y, FINE), FINE.scale  # type: ignore[return-value]


# Real numbers where kernels of our own are all there is for integers.
LIBRARY_ONLY = ("transposed", "groups", "dilation")
SINGLE = {
    "transposed": transposed,
    "u8": convolution(),
    "s8": convolution(S8),
    "symmetric": convolution(PLAIN, per_channel=True),
    "per channel": convolution(per_channel=True),
    "groups": convolution(channels=(19, 38), groups=19, per_channel=True),
    "depthwise": convolution(channels=(19, 19), groups=19),
    "pointwise": convolution(kernel=1, bias=False),
    "strides": convolution(strides=[2, 1], pads=[0, 2, 1, 0]),
    "dilation": convolution(dilations=[2, 2], pads=[2, 2, 2, 2]),
    "unsigned weights": convolution(weights=Scale(0.0009, 128, "uint8")),
    "matmul": matmul,
    "gemm": gemm,
}


@pytest.mark.parametrize("name", SINGLE)
def test_a_product_computes_with_integers(name: str) -> None:
    needs_integers()
    made = QuantizedModel()
    result, step = SINGLE[name](made)
    executable = check(made, made.finish(result), step)
    real = name in LIBRARY_ONLY and IntegerProducts.of(library.isa()) is IntegerProducts.OWN
    assert products(executable) == (0 if real else 1, 1)
    assert ("in real numbers" in str(executable.report)) == real


def test_weights_around_another_number_than_zero_stay_real_where_they_do_not_fit() -> None:
    made = QuantizedModel()
    x = made.rounded(made.input("x", IMAGE), U8)
    y = made.rounded(made.conv(x, (19, 17), weights=Scale(0.0006, 40, "int8")), FINE)
    executable = check(made, made.finish(y), FINE.scale)  # type: ignore[arg-type]
    assert products(executable) == (0, 1)


def test_a_residual_block_adds_integers_in_its_last_convolution() -> None:
    needs_integers()
    made = QuantizedModel()
    x = made.rounded(made.conv(made.rounded(made.input("x", IMAGE), U8), (19, 32)), U8)
    y = made.rounded(made.node("Relu", made.conv(x, (32, 17))), Scale(0.01971, 0))
    y = made.rounded(made.conv(y, (17, 32), 1), S8)
    y = made.rounded(made.node("Relu", made.node("Add", y, x)), Scale(0.02953, 0))
    executable = check(made, made.finish(y), 0.02953)
    assert products(executable) == (3, 3)
    assert conversions(executable) == 1  # into the network; the last product writes real numbers
    types = [p.values[s.dst].dtype for p, s in steps_of(executable) if isinstance(s.attrs, _PRODUCTS)]
    assert types == ["uint8", "uint8", "float32"]


def test_the_addend_of_two_that_comes_last_adds() -> None:
    needs_integers()
    made = QuantizedModel()
    x = made.rounded(made.input("x", IMAGE), U8)
    left, right = (made.rounded(made.conv(x, (19, 24), kernel), by) for kernel, by in ((1, U8), (3, S8)))
    y = made.rounded(made.node("Add", left, right), FINE)
    executable = check(made, made.finish(y), FINE.scale)  # type: ignore[arg-type]
    assert products(executable) == (2, 2) and conversions(executable) == 1


def test_pooling_views_and_concatenation_work_on_integers() -> None:
    needs_integers()
    made = QuantizedModel()
    x = made.rounded(made.input("x", IMAGE), U8)
    pooled = made.node("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
    pooled = made.rounded(pooled, U8)
    left = made.rounded(made.conv(pooled, (19, 16)), U8)
    right = made.rounded(made.conv(pooled, (19, 32)), FINE)
    joined = made.rounded(made.node("Concat", left, right, pooled, axis=1), S8)
    y = made.rounded(made.conv(joined, (67, 33), 1), FINE)
    executable = check(made, made.finish(y), FINE.scale)  # type: ignore[arg-type]
    assert products(executable) == (3, 3)
    for program, step in steps_of(executable):
        if isinstance(step.attrs, ir.Pooling | ir.Concat):
            assert program.values[step.dst].dtype in ("uint8", "int8")


def rearranged(m: QuantizedModel, x: str, kind: str) -> str:
    """One of the operators that show numbers in another shape or order, of (2, 9, 4, 8)."""
    if kind == "Reshape":
        return m.node(kind, x, m.constant(np.array([2, 9, 32])))
    if kind == "Unsqueeze":
        return m.node(kind, x, m.constant(np.array([1])))
    return m.node(kind, x, **({"perm": [2, 0, 3, 1]} if kind == "Transpose" else {"axis": 1}))


@pytest.mark.parametrize("behind", ["Reshape", "Unsqueeze", "Flatten", "Transpose"])
@pytest.mark.parametrize("front", ["Softmax", "Relu", "rounded", "rounded twice"])
def test_integers_in_another_order_seen_in_another_shape(front: str, behind: str) -> None:
    """Heads that are merged, and predictions of detectors: to the bit, and with one conversion each way."""
    made = QuantizedModel()
    x = made.input("x", (2, 4, 9, 8))
    by = Scale(1 / 255, 0) if front == "Softmax" else U8
    x = made.rounded(x, by) if front.startswith("rounded") else made.node(front, x)
    x = made.rounded(made.node("Transpose", x, perm=[0, 2, 1, 3]), by)
    x = made.rounded(x, by) if front == "rounded twice" else x
    model = made.finish(made.rounded(rearranged(made, x, behind), by))
    data = made.data()
    expected = ort.InferenceSession(model.SerializeToString()).run(None, data)[0]
    executable = tvm_mxplan.compile(model)
    (got,) = results_of(executable(**data))
    np.testing.assert_array_equal(got.numpy(), expected)
    assert conversions(executable) == 2 and not executable.report.kept
    moved = [p.values[s.dst].dtype for p, s in steps_of(executable) if isinstance(s.attrs, ir.Reorder)]
    assert set(moved) <= {"uint8"}


def test_heads_that_are_merged_as_integers() -> None:
    """Attention as onnxruntime's quantiser writes it, with conversions around each of its views."""
    needs_integers()
    made = QuantizedModel()
    row = Scale(0.0016, 0, "int8")
    x = made.rounded(made.input("x", (2, 13, 68)), U8)

    def heads(order: list[int]) -> str:
        y = made.rounded(made.node("MatMul", x, made.weights((68, 68), row)), U8)
        y = made.rounded(made.node("Reshape", y, made.constant(np.array([2, 13, 4, 17]))), U8)
        return made.rounded(made.node("Transpose", y, perm=order), U8)

    scores = made.node("MatMul", heads([0, 2, 1, 3]), heads([0, 2, 3, 1]))
    weights = made.rounded(made.node("Softmax", made.rounded(scores, Scale(0.09, 128))), Scale(1 / 255, 0))
    y = made.rounded(made.node("MatMul", weights, heads([0, 2, 1, 3])), U8)
    y = made.rounded(made.node("Transpose", y, perm=[0, 2, 1, 3]), U8)
    y = made.rounded(made.node("Reshape", y, made.constant(np.array([2, 13, 68]))), U8)
    y = made.rounded(made.node("MatMul", y, made.weights((68, 35), row)), FINE)
    executable = check(made, made.finish(y), FINE.scale)  # type: ignore[arg-type]
    assert products(executable)[0] == 4 and not executable.report.kept


@pytest.mark.parametrize("function", ["Elu", "Abs", "Exp", "Softplus", "Gelu", "HardSwish", "Sigmoid"])
@pytest.mark.parametrize("kernel", [1, 3, 0])
def test_functions_behind_integers(function: str, kernel: int) -> None:
    """Those that no kernel of integers applies are steps of their own: none runs as reference code."""
    needs_integers()
    made = QuantizedModel()
    if kernel:
        y = made.conv(made.rounded(made.input("x", IMAGE), U8), (19, 24), kernel)
    else:
        row = Scale(0.0016, 0, "int8")
        y = made.node("MatMul", made.rounded(made.input("x", (3, 13, 67)), U8), made.weights((67, 35), row))
    y = made.rounded(made.node(function, y), FINE)
    executable = check(made, made.finish(y, opset=20), FINE.scale)  # type: ignore[arg-type]
    assert products(executable) == (1, 1)


@pytest.mark.parametrize("algorithm", ["Add", "Sub", "Mul", "Max", "Min"])
@pytest.mark.parametrize("shape", [(2, 24, 13, 11), (1, 24, 1, 1), (2, 1, 13, 11), (2, 24, 1, 1)])
def test_tensors_behind_integers(algorithm: str, shape: tuple[int, ...]) -> None:
    """Real numbers of any shape, while the product's own are integers."""
    needs_integers()
    made = QuantizedModel()
    y = made.conv(made.rounded(made.input("x", IMAGE), U8), (19, 24))
    other = made.node("Sigmoid", made.input("other", shape))
    y = made.rounded(made.node(algorithm, y, other), FINE)
    executable = check(made, made.finish(y), FINE.scale)  # type: ignore[arg-type]
    assert products(executable) == (1, 1)


@pytest.mark.parametrize("layouts", ["any", "naive", "channels_last"])
def test_other_ways_to_choose_layouts(layouts: str) -> None:
    """Channels last are what kernels of integers read, whoever chooses them."""
    needs_integers()
    made = QuantizedModel()
    y = made.rounded(made.conv(made.rounded(made.input("x", IMAGE), U8), (19, 24)), FINE)
    executable = tvm_mxplan.compile(made.finish(y), options={"layouts": layouts})
    assert products(executable) == (1, 1) and "ref:any" not in str(executable.report)


@pytest.mark.parametrize("shape", [(3, 13, 35), (35,), (3, 1, 35), (13, 35), (3, 13, 1)])
def test_tensors_behind_rows_of_integers(shape: tuple[int, ...]) -> None:
    needs_integers()
    made = QuantizedModel()
    row = Scale(0.0016, 0, "int8")
    y = made.node("MatMul", made.rounded(made.input("x", (3, 13, 67)), U8), made.weights((67, 35), row))
    other = made.node("Sigmoid", made.input("other", shape))
    y = made.rounded(made.node("Add", y, other), FINE)
    executable = check(made, made.finish(y), FINE.scale)  # type: ignore[arg-type]
    assert products(executable) == (1, 1)


def test_what_has_no_integers_gets_real_numbers() -> None:
    needs_integers()
    made = QuantizedModel()
    x = made.rounded(made.conv(made.rounded(made.input("x", IMAGE), U8), (19, 24)), U8)
    y = made.rounded(made.node("Sigmoid", x), Scale(1 / 256, 0))
    y = made.rounded(made.node("Mul", x, y), FINE)
    y = made.rounded(made.node("GlobalAveragePool", made.conv(y, (24, 41))), Scale(0.6 / 128, 128))
    executable = check(made, made.finish(y), 0.6 / 128)
    assert products(executable) == (2, 2)


def test_integers_cross_from_region_to_region_and_out() -> None:
    """The model's own result is of integers, and so is what a region hands to TVM."""
    needs_integers()
    made = QuantizedModel()
    x = made.rounded(made.input("x", IMAGE), U8)
    y = made.quantise(made.conv(x, (19, 24)), FINE)
    executable = check(made, made.finish(y), 1.0)
    assert products(executable) == (1, 1)


def test_products_are_real_where_the_processor_has_no_instructions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tvm_mxplan.byoc.onednn.element_types._INT8", ())
    monkeypatch.setattr(IntegerProducts, "of", classmethod(lambda cls, _isa: cls.NONE))
    made = QuantizedModel()
    x = made.rounded(made.input("x", IMAGE), U8)
    executable = check(made, made.finish(made.rounded(made.conv(x, (19, 35)), FINE)), FINE.scale)  # type: ignore[arg-type]
    assert products(executable) == (0, 1)
    (weights,) = (p.values[s.operand("weights")] for p, s in steps_of(executable) if s.kind == "convolution")
    assert weights.dtype == "float32" and weights.kind == "constant"
    assert "integers: products of the quantised model in real numbers, oneDNN " in str(executable.report)
    assert "int8 wants avx512_core_vnni or above" in str(executable.report)


@pytest.mark.parametrize("form", ["QDQ", "QOperator"])
def test_what_onnxruntime_quantises_computes_with_integers(form: str, tmp_path: Path) -> None:
    """A network with a residual, a concatenation, pooling and a dense layer, by onnxruntime's own tools."""
    needs_integers()
    quantization = pytest.importorskip("onnxruntime.quantization")
    model, data = plain_network()
    onnx.save(model, tmp_path / "plain.onnx")

    class Reader(quantization.CalibrationDataReader):  # type: ignore[misc,name-defined]
        def __init__(self) -> None:
            self.left = [data]

        def get_next(self) -> object:
            return self.left.pop() if self.left else None

    quantization.quantize_static(
        tmp_path / "plain.onnx",
        tmp_path / "quantised.onnx",
        Reader(),
        quant_format=quantization.QuantFormat[form],
        per_channel=True,
        activation_type=quantization.QuantType.QUInt8,
        weight_type=quantization.QuantType.QInt8,
    )
    path = str(tmp_path / "quantised.onnx")
    expected = ort.InferenceSession(path, providers=["CPUExecutionProvider"]).run(None, data)[0]
    executable = tvm_mxplan.compile(path)
    (got,) = (one.numpy() for one in results_of(executable(**data)))
    assert products(executable) == (5, 5)
    gap = np.abs(got - expected) / np.abs(expected).max()
    assert gap.max() <= 0.02  # two or three steps of 255, behind six quantisers that round on their own


def plain_network() -> tuple[onnx.ModelProto, dict[str, np.ndarray]]:
    made = QuantizedModel()
    random = made.rng

    def conv(x: str, inputs: int, outputs: int, kernel: int, **attributes: object) -> str:
        weights = random.normal(0, (2 / (inputs * kernel**2)) ** 0.5, (outputs, inputs, kernel, kernel))
        operands = made.constant(weights.astype("float32")), made.constant(np.zeros(outputs, "float32"))
        return made.node("Conv", x, *operands, pads=[kernel // 2] * 4, **attributes)

    x = made.node("Relu", conv(made.input("x", (2, 3, 17, 15)), 3, 24, 3, strides=[2, 2]))
    pooled = made.node("MaxPool", x, kernel_shape=[2, 2], strides=[2, 2])
    left = made.node("Relu", conv(pooled, 24, 35, 1))
    right = conv(pooled, 24, 24, 3)
    added = made.node("Relu", made.node("Add", right, pooled))
    joined = conv(made.node("Concat", left, added, axis=1), 59, 16, 1)
    flat = made.node("Flatten", made.node("Relu", joined))
    extent = 16 * 4 * 4
    dense = random.normal(0, extent**-0.5, (5, extent)).astype("float32")
    y = made.node("Gemm", flat, made.constant(dense), made.constant(np.zeros(5, "float32")), transB=1)
    return made.finish(y, opset=17), made.data()
