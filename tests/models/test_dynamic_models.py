"""Dynamically quantised models: products of integers by scales of the call, numbers those of onnxruntime."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from quantized_models import QuantizedModel

import tvm_mxplan
from tvm_mxplan.byoc.onednn import backend
from tvm_mxplan.byoc.onednn.rewrites.integer_products import IntegerProducts
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.execution.executable import Executable
from tvm_mxplan.report.inspection import decoded_programs

ort = pytest.importorskip("onnxruntime", reason="onnxruntime says what is right")

_PRODUCTS = (ir.Convolution, ir.MatMul, ir.InnerProduct)


@pytest.fixture(autouse=True)
def integers(monkeypatch: pytest.MonkeyPatch) -> None:
    """All products of integers on every processor: in oneDNN's reference code where no other is right."""
    monkeypatch.setattr(backend, "missing_type", lambda dtype, _isa: "")
    monkeypatch.setattr(IntegerProducts, "of", classmethod(lambda cls, _isa: cls.ALL))


def quantised(m: QuantizedModel, x: str) -> tuple[str, str, str]:
    names = [f"{x}.{part}" for part in ("integers", "scale", "zero")]
    m.nodes.append(helper.make_node("DynamicQuantizeLinear", [x], names, name=f"quantise_{x}"))
    return names[0], names[1], names[2]


def weights(m: QuantizedModel, *shape: int, dtype: str = "int8") -> str:
    """Of 7 bits: with more onnxruntime's own sums saturate on a processor without VNNI."""
    least = 0 if dtype == "uint8" else -64
    return m.constant(m.rng.integers(least, least + 128, shape).astype(dtype))


def product(
    m: QuantizedModel,
    parts: tuple[str, str, str],
    weight: str,
    scale: np.ndarray,
    zero: np.ndarray | None = None,
    kind: str = "MatMulInteger",
    **attributes: object,
) -> str:
    """The nodes that onnxruntime's quantiser writes: the sums, a cast, and both scales."""
    integers, data_scale, data_zero = parts
    operands = [integers, weight, data_zero, *([] if zero is None else [m.constant(zero)])]
    sums = m.node("Cast", m.node(kind, *operands, **attributes), to=TensorProto.FLOAT)
    return m.node("Mul", sums, m.node("Mul", data_scale, m.constant(np.asarray(scale, "float32"))))


def answers_of(model: onnx.ModelProto, data: dict[str, np.ndarray]) -> list[np.ndarray]:
    """Answers of onnxruntime without fusions, whose sums saturate where there is no VNNI."""
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return session.run(None, data)


def results_of(answer: object) -> list[object]:
    return [answer] if hasattr(answer, "numpy") else list(answer)  # type: ignore[call-overload]


def check(m: QuantizedModel, model: onnx.ModelProto, counts: tuple[int, int] | None = None) -> Executable:
    """Compile, run, compare with onnxruntime, count products of integers and of real numbers."""
    data = m.data()
    expected = answers_of(model, data)
    executable = tvm_mxplan.compile(model)
    if counts is not None:
        assert products(executable) == counts
    for ours, theirs in zip(results_of(executable(**data)), expected, strict=True):
        assert ours.numpy().dtype == theirs.dtype
        if theirs.dtype.kind == "f":
            assert np.linalg.norm(ours.numpy() - theirs) <= 1e-5 * np.linalg.norm(theirs)
        else:
            assert np.array_equal(ours.numpy(), theirs)
    return executable


def steps_of(executable: Executable) -> list[ir.Step]:
    return [step for program in decoded_programs(executable.module) for step in program.steps]


def products(executable: Executable) -> tuple[int, int]:
    found = [step for step in steps_of(executable) if isinstance(step.attrs, _PRODUCTS)]
    return sum(step.is_quantized for step in found), sum(not step.is_quantized for step in found)


@pytest.mark.parametrize("shape", [(13, 67), (2, 13, 67), (2, 3, 7, 67)])
@pytest.mark.parametrize("per_channel", [False, True])
def test_a_matrix_product_by_a_scale_of_the_call_is_one_of_integers(shape, per_channel):
    m = QuantizedModel()
    scale = m.rng.uniform(0.001, 0.002, 35) if per_channel else np.float32(0.0014)
    y = product(m, quantised(m, m.input("x", shape)), weights(m, 67, 35), scale)
    executable = check(
        m, m.finish(m.node("Add", y, m.constant(m.rng.normal(0, 1, 35).astype("float32")))), (1, 0)
    )
    (step,) = [step for step in steps_of(executable) if step.is_quantized]
    assert step.post_ops or "bias" in [operand.role for operand in step.operands]
    assert not any(isinstance(one.attrs, ir.Binary | ir.Quantization) for one in steps_of(executable))


def test_several_products_share_the_integers_of_one_tensor():
    m = QuantizedModel()
    parts = quantised(m, m.input("x", (19, 33)))
    results = [product(m, parts, weights(m, 33, width), np.float32(0.002)) for width in (5, 17, 35)]
    executable = check(m, m.finish(*results), (3, 0))
    kinds = [step.attrs for step in steps_of(executable)]
    assert sum(isinstance(attrs, ir.DynamicQuantization) for attrs in kinds) == 1


@pytest.mark.parametrize("groups", [1, 3])
def test_a_convolution_by_a_scale_of_the_call(groups):
    m = QuantizedModel()
    parts = quantised(m, m.input("x", (2, 6, 13, 11)))
    weight = weights(m, 9, 6 // groups, 3, 3)
    y = product(
        m, parts, weight, np.float32(0.003), np.int8(0), "ConvInteger", pads=[1, 0, 1, 1], group=groups
    )
    check(m, m.finish(m.node("Relu", y)), (1, 0))


def test_a_chain_of_layers_is_one_region():
    m = QuantizedModel()
    x = m.input("x", (7, 24))
    for width in (48, 24):
        y = product(m, quantised(m, x), weights(m, 24 if width == 48 else 48, width), np.float32(0.002))
        x = m.node("Tanh", y)
    executable = check(m, m.finish(x), (2, 0))
    assert len(decoded_programs(executable.module)) == 1


@pytest.mark.parametrize("zero", [125, 3])
def test_unsigned_weights_around_a_zero_point(zero):
    m = QuantizedModel()
    parts = quantised(m, m.input("x", (13, 67)))
    check(
        m, m.finish(product(m, parts, weights(m, 67, 35, dtype="uint8"), np.float32(0.002), np.uint8(zero)))
    )


def test_sums_that_are_read_as_integers_stay_exact():
    m = QuantizedModel()
    integers, _, zero = quantised(m, m.input("x", (5, 1031)))
    sums = m.node("MatMulInteger", integers, weights(m, 1031, 7), zero)
    check(m, m.finish(sums, m.node("Cast", sums, to=TensorProto.FLOAT)))


def test_the_parts_of_a_dynamic_quantization_are_results():
    m = QuantizedModel()
    check(m, m.finish(*quantised(m, m.input("x", (3, 1000, 67)))))


@pytest.mark.parametrize(
    "data",
    [
        np.zeros((3, 5)),
        np.full((3, 5), 2.5),
        np.full((3, 5), -2.5),
        np.arange(15).reshape(3, 5),
        np.eye(3, 5) - 1,
    ],
)
def test_ranges_at_their_ends(data):
    m = QuantizedModel()
    m.input("x", (3, 5))
    model = m.finish(*quantised(m, "x"))
    m.data = lambda: {"x": data.astype("float32")}  # type: ignore[method-assign]
    check(m, model)


def test_the_same_by_tvm_alone():
    m = QuantizedModel()
    parts = quantised(m, m.input("x", (5, 12)))
    model = m.finish(product(m, parts, weights(m, 12, 6), np.float32(0.002)), *parts)
    data = m.data()
    session = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    results = tvm_mxplan.compile(model, "llvm")(**data)
    for ours, theirs in zip(results, session.run(None, data), strict=True):
        np.testing.assert_allclose(ours.numpy(), theirs, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("rows", ["rows", 5])
def test_open_sizes(rows):
    m = QuantizedModel()
    parts = quantised(m, m.input("x", (rows, 67)))
    model = m.finish(product(m, parts, weights(m, 67, 35), np.float32(0.002)))
    session = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    executable = tvm_mxplan.compile(model)
    for count in (5, 11) if rows == "rows" else (5,):
        x = m.rng.normal(0, 1, (count, 67)).astype("float32")
        (theirs,) = session.run(None, {"x": x})
        (ours,) = results_of(executable(x))
        np.testing.assert_allclose(ours.numpy(), theirs, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("kind", ["DynamicQuantizeMatMul", "MatMulIntegerToFloat"])
def test_the_operators_that_onnxruntime_fuses(kind):
    m = QuantizedModel()
    weight, scale = weights(m, 67, 35), m.constant(m.rng.uniform(0.001, 0.002, 35).astype("float32"))
    bias, zero = m.constant(m.rng.normal(0, 1, 35).astype("float32")), m.constant(np.zeros(35, "int8"))
    x = m.input("x", (3, 13, 67))
    if kind == "DynamicQuantizeMatMul":
        y = m.node(kind, x, weight, scale, zero, bias, domain="com.microsoft")
    else:
        integers, data_scale, data_zero = quantised(m, x)
        operands = [integers, weight, data_scale, scale, data_zero, zero, bias]
        y = m.node(kind, *operands, domain="com.microsoft")
    check(m, m.finish(y, domains=("com.microsoft",)), (1, 0))


@pytest.mark.parametrize("quantizer", ["s8", "u8"])
def test_what_onnxruntime_makes_of_an_encoder(quantizer, tmp_path):
    from onnxruntime.quantization import QuantType, quantize_dynamic

    m = QuantizedModel()
    x = m.input("x", (2, 16, 32))
    norm = [m.constant(np.ones(32, "float32")), m.constant(np.zeros(32, "float32"))]
    for _ in range(2):
        parts = [
            m.node("MatMul", x, m.constant(m.rng.normal(0, 0.2, (32, 32)).astype("float32")))
            for _ in range(3)
        ]
        query, key, value = (
            m.node(
                "Transpose", m.node("Reshape", part, m.constant(np.array([2, 16, 4, 8]))), perm=[0, 2, 1, 3]
            )
            for part in parts
        )
        scores = m.node("MatMul", query, m.node("Transpose", key, perm=[0, 1, 3, 2]))
        seen = m.node("MatMul", m.node("Softmax", scores, axis=-1), value)
        seen = m.node(
            "Reshape", m.node("Transpose", seen, perm=[0, 2, 1, 3]), m.constant(np.array([2, 16, 32]))
        )
        x = m.node("LayerNormalization", m.node("Add", x, seen), *norm)
    onnx.save(m.finish(x), tmp_path / "real.onnx")
    kind = QuantType.QInt8 if quantizer == "s8" else QuantType.QUInt8
    real, made = tmp_path / "real.onnx", tmp_path / "made.onnx"
    quantize_dynamic(str(real), str(made), weight_type=kind, reduce_range=True)
    executable = tvm_mxplan.compile(onnx.load(made))
    assert products(executable)[0] == 6
    data = m.data()
    (theirs,), (right,) = (answers_of(onnx.load(path), data) for path in (made, real))
    (ours,) = results_of(executable(**data))
    # A number half way between two integers may become either, and moves what follows by a step.
    assert np.linalg.norm(ours.numpy() - theirs) <= 0.1 * np.linalg.norm(theirs - right)
    assert np.linalg.norm(theirs - right) <= 0.1 * np.linalg.norm(right)
