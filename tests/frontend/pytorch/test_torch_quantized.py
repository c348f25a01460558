"""PyTorch's quantised graphs: conversions by hand against numpy, and exported ones against PyTorch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tvm import relax

import tvm_mxplan
from tvm_mxplan.byoc.onednn import backend
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.errors import InvalidInputError, UnsupportedError
from tvm_mxplan.frontend.origins import OriginBuilder
from tvm_mxplan.frontend.torch import converters
from tvm_mxplan.frontend.torch.node import Emitter, Node, Stated
from tvm_mxplan.report.inspection import decoded_programs

RANDOM = np.random.default_rng(5)
X = RANDOM.normal(0, 2, (3, 5)).astype("float32")
Q = RANDOM.integers(0, 256, (3, 5)).astype("uint8")
TENSORS = {"scale": np.array([0.1]), "zero_point": np.array([3])}
ROW = np.array([0.5, 0.25, 2.0], "float32")


def run(operator: str, operands: dict[str, Any], dtype: str) -> np.ndarray:
    """The result of a converter's Relax; the array ``input`` is an input, others are constants."""
    data = operands["input"]
    param = relax.Var("x", relax.TensorType(data.shape, str(data.dtype)))
    given = {
        name: relax.const(value) if isinstance(value, np.ndarray) else value
        for name, value in operands.items()
    }
    node = Node(f"quantized_decomposed.{operator}", {**given, "input": param}, [Stated(data.shape, dtype)])
    builder = OriginBuilder()
    with builder.function("main", [param]):
        with builder.dataflow():
            result = builder.emit_output(converters.TABLE[node.operator](Emitter(builder), node))
        builder.emit_func_output(result)
    (actual,) = tvm_mxplan.compile(builder.get(), "llvm", options={"cache": "disabled"})(data)
    assert str(actual.dtype) == dtype
    return actual.numpy()


def ends(low: int, high: int, **more: Any) -> dict[str, Any]:
    return {"quant_min": low, "quant_max": high, **more}


@pytest.mark.parametrize("low, high", [(0, 255), (0, 127), (3, 200)])
def test_numbers_become_integers(low, high):
    given = {"input": X, "scale": 0.031, "zero_point": 64, **ends(low, high)}
    right = np.clip(np.rint(X / np.float32(0.031)) + 64, low, high)
    assert np.array_equal(run("quantize_per_tensor.default", given, "uint8"), right)


def test_integers_become_numbers():
    given = {"input": Q, "scale": 0.031, "zero_point": 64, **ends(0, 255)}
    right = (Q.astype("int32") - 64) * np.float32(0.031)
    np.testing.assert_allclose(run("dequantize_per_tensor.default", given, "float32"), right, rtol=1e-6)


@pytest.mark.parametrize("points", [None, np.array([3, 0, 200])])
def test_a_scale_for_each_channel(points):
    numbers = {"scales": ROW, "zero_points": points, "axis": 0, **ends(0, 255)}
    zero = np.zeros((3, 1)) if points is None else points.reshape(3, 1)
    right = (Q - zero) * ROW.reshape(3, 1)
    got = run("dequantize_per_channel.default", {"input": Q, **numbers}, "float32")
    np.testing.assert_allclose(got, right, rtol=1e-6)


def test_scales_that_the_model_computes():
    pair = {"scale": np.array([0.031]), "zero_point": np.array([64]), **ends(0, 255)}
    right = (Q.astype("int32") - 64) * np.float32(0.031)
    np.testing.assert_allclose(
        run("dequantize_per_tensor.tensor", {"input": Q, **pair}, "float32"), right, rtol=1e-6
    )
    whole = np.clip(np.rint(X / np.float32(0.031)) + 64, 0, 255)
    assert np.array_equal(run("quantize_per_tensor.tensor", {"input": X, **pair}, "uint8"), whole)


@pytest.mark.parametrize(
    "numbers, said",
    [
        ({"scale": 0.0, "zero_point": 0}, "scale: expected finite numbers above 0, got 0"),
        ({"scale": -1.0, "zero_point": 0}, "scale: expected finite numbers above 0, got -1"),
        ({"scale": float("nan"), "zero_point": 0}, "scale: expected finite numbers above 0, got nan"),
        ({"scale": 1.0, "zero_point": 256}, "zero point: expected 0 to 255, got 256 to 256"),
        ({"scales": ROW, "zero_points": None, "axis": 2}, "axis: expected one of a tensor of rank 2, got 2"),
        ({"scales": ROW, "zero_points": None, "axis": 1}, "expected 5 along axis 1, got 3 scales"),
    ],
)
def test_numbers_that_are_none_are_said(numbers, said):
    kind = "tensor" if "scale" in numbers else "channel"
    with pytest.raises(InvalidInputError, match=said):
        run(f"dequantize_per_{kind}.default", {"input": Q, **numbers, **ends(0, 255)}, "float32")


@pytest.mark.parametrize(
    "operator, given, dtype, said",
    [
        ("dequantize_per_tensor.default", {"input": X}, "float32", "input: expected integers, got float32"),
        ("quantize_per_tensor.default", {"input": Q}, "uint8", "input: expected floating-point numbers, got"),
        ("quantize_per_tensor.default", {"input": X}, "float32", "input: expected integers, got float32"),
        (
            "quantize_per_tensor.default",
            {"input": X, "quant_min": -128, "quant_max": 127},
            "uint8",
            "quant_min and quant_max: expected numbers of uint8 that rise, got -128 and 127",
        ),
        (
            "quantize_per_tensor.default",
            {"input": X, "quant_min": 9, "quant_max": 9},
            "uint8",
            "quant_min and quant_max: expected numbers of uint8 that rise, got 9 and 9",
        ),
        ("quantize_per_tensor.default", {"input": X, "scale": 1e-60}, "uint8", "scale: expected .* got 0"),
        (
            "dequantize_per_tensor.tensor",
            {"input": X, **TENSORS},
            "float32",
            "expected integers, got float32",
        ),
        *(
            (f"{kind}_per_tensor.tensor", {"input": data, **TENSORS, **wrong}, dtype, said)
            for kind, data, dtype in (("quantize", X, "uint8"), ("dequantize", Q, "float32"))
            for wrong, said in (
                ({"scale": np.array([0.0])}, "scale: expected finite numbers above 0, got 0"),
                ({"scale": np.array([-2.5])}, "scale: expected finite numbers above 0, got -2.5"),
                ({"scale": np.array([np.nan])}, "scale: expected finite numbers above 0, got nan"),
                ({"scale": np.array([0.1, 0.2])}, "scale: expected one, got 2"),
                ({"zero_point": np.array([-1])}, "zero point: expected 0 to 255, got -1 to -1"),
            )
        ),
    ],
)
def test_mixed_types_and_constants_that_are_none_are_said(operator, given, dtype, said):
    with pytest.raises(InvalidInputError, match=said) as error:
        run(operator, {"scale": 0.1, "zero_point": 0, **ends(0, 255), **given}, dtype)
    assert "\n" not in str(error.value)


def test_other_integers_are_refused():
    given = {"input": X, "scale": 0.031, "zero_point": 0, **ends(-32768, 32767)}
    with pytest.raises(UnsupportedError, match="integers of int16; expected uint8 or int8"):
        run("quantize_per_tensor.default", given, "int16")


def test_an_exported_graph_runs_on_integers(monkeypatch):
    torch = pytest.importorskip("torch")
    pytest.importorskip("torch.ao.quantization.fx._decomposed")  # it defines the operators

    monkeypatch.setattr(backend, "missing_type", lambda dtype, _isa: "")
    ops = torch.ops.quantized_decomposed
    generator = torch.Generator().manual_seed(0)

    class Layers(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            for name, shape in (("filters", (8, 3, 3, 3)), ("dense", (5, 8))):
                integers = torch.randint(-64, 64, shape, generator=generator, dtype=torch.int8)
                self.register_buffer(name, integers)
                self.register_buffer(
                    f"{name}_scales", torch.rand(shape[0], generator=generator) * 0.01 + 0.001
                )
                self.register_buffer(f"{name}_zeros", torch.zeros(shape[0], dtype=torch.int64))

        def weights(self, name: str) -> Any:
            numbers = getattr(self, f"{name}_scales"), getattr(self, f"{name}_zeros")
            return ops.dequantize_per_channel(getattr(self, name), *numbers, 0, -127, 127, torch.int8)

        @staticmethod
        def rounded(x: Any) -> Any:
            given = (0.0371, 131, 0, 255, torch.uint8)
            return ops.dequantize_per_tensor(ops.quantize_per_tensor(x, *given), *given)

        def forward(self, x: Any) -> Any:
            x = torch.nn.functional.conv2d(self.rounded(x), self.weights("filters"), padding=1)
            x = self.rounded(self.rounded(x).mean((2, 3)))
            return self.rounded(torch.nn.functional.linear(x, self.weights("dense")))

    model, x = Layers().eval(), torch.randn(2, 3, 9, 7, generator=generator)
    executable = tvm_mxplan.compile(torch.export.export(model, (x,)))
    steps = [step for program in decoded_programs(executable.module) for step in program.steps]
    products = [
        step for step in steps if isinstance(step.attrs, ir.Convolution | ir.MatMul | ir.InnerProduct)
    ]
    assert len(products) == 2 and all(step.is_quantized for step in products)
    answer = executable(x.numpy())
    ours = (answer if hasattr(answer, "numpy") else answer[0]).numpy()
    assert np.abs(ours - model(x).numpy()).max() <= 1.001 * 0.0371
    assert len(np.unique(ours)) > 3
