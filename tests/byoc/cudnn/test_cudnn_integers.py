"""Quantised networks as programs of cuDNN, worked out as their graphs say, against TVM's kernels."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from cudnn_programs import checked_module
from cudnn_stand_in import StandIn
from tvm import relax

from tvm_mxplan.core.program import program as ir

U8 = (0.0237, 121, "uint8")
S8 = (0.0411, -7, "int8")
Z8 = (0.0191, 0, "uint8")
Numbers = tuple[float, int, str]


class Network:
    """A function of Relax, written operator by operator; ``shape`` is that of its one input, ``x``."""

    def __init__(self, *shape: int) -> None:
        self.random = np.random.default_rng(5)
        self.x = relax.Var("x", relax.TensorType(shape, "float32"))
        self.shape = shape
        self.builder = relax.BlockBuilder()
        self._scope = self.builder.function("main", [self.x])
        self._scope.__enter__()
        self._block = self.builder.dataflow()
        self._block.__enter__()

    def emit(self, call: relax.Expr) -> relax.Var:
        return self.builder.emit(call)

    def rounded(self, data: relax.Expr, numbers: Numbers = U8) -> relax.Var:
        """Converted into integers and back."""
        scale, zero = relax.const(numbers[0], "float32"), relax.const(numbers[1], numbers[2])
        whole = self.emit(relax.op.quantize(data, scale, zero, axis=-1, out_dtype=numbers[2]))
        return self.emit(relax.op.dequantize(whole, scale, zero, axis=-1, out_dtype="float32"))

    def weights(self, *shape: int, axis: int = 0, zero: int = 0) -> relax.Var:
        integers = relax.const(self.random.integers(-63, 64, shape).astype("int8"))
        row = relax.const(self.random.uniform(0.002, 0.006, shape[axis]).astype("float32"))
        zeros = relax.const(np.full(shape[axis], zero, "int8"))
        return self.emit(relax.op.dequantize(integers, row, zeros, axis=axis, out_dtype="float32"))

    def convolution(
        self, data: relax.Expr, filters: Sequence[int], bias: bool = True, zero: int = 0, **attrs: object
    ) -> relax.Var:
        weights = self.weights(*filters, zero=zero)
        call = relax.op.nn.conv2d if len(filters) == 4 else relax.op.nn.conv1d
        made = self.emit(call(data, weights, **attrs))
        if not bias:
            return made
        row = self.random.standard_normal((1, filters[0], *(1,) * (len(filters) - 2))).astype("float32")
        return self.emit(relax.op.add(made, relax.const(row)))

    def checked(self, result: relax.Expr) -> tuple[ir.Program, tuple[ir.Step, ...]]:
        """The program and its steps; its numbers are those of TVM's kernels."""
        done = self.builder.emit_output(result)
        self._block.__exit__(None, None, None)
        self.builder.emit_func_output(done)
        self._scope.__exit__(None, None, None)
        x = self.random.standard_normal(self.shape).astype("float32")
        return checked_module(self.builder.finalize(), {"x": x})


def _kinds(steps: Sequence[ir.Step]) -> list[str]:
    return [step.kind for step in steps]


def _integer_nodes(planner: StandIn) -> list[dict]:
    """The convolutions of integers that cuDNN was asked for."""
    return [
        node
        for request in planner.requests
        for node in request["nodes"]
        if node["kind"] == "convolution" and node.get("compute") == "INT32"
    ]


CONVOLUTIONS = {
    "padded": ((2, 5, 9, 7), (6, 5, 3, 3), {"padding": (1, 1, 1, 1)}, S8),
    "padded on one side, with strides": (
        (1, 5, 9, 7), (6, 5, 3, 2), {"padding": (2, 0, 1, 1), "strides": (2, 1)}, U8,
    ),
    "pointwise": ((2, 5, 6, 7), (3, 5, 1, 1), {}, U8),
    "pointwise without a zero point": ((2, 5, 6, 7), (3, 5, 1, 1), {}, (0.03, 0, "int8")),
    "uint8 from 0": ((2, 5, 6, 7), (3, 5, 3, 3), {"padding": (1, 1, 1, 1)}, Z8),
    "in groups": ((1, 6, 6, 7), (4, 3, 3, 3), {"padding": (1, 1, 1, 1), "groups": 2}, U8),
    "dilated": ((1, 3, 9, 9), (4, 3, 3, 3), {"padding": (2, 2, 2, 2), "dilation": (2, 2)}, S8),
    "of one axis": ((2, 3, 11), (4, 3, 3), {"padding": (1, 1)}, U8),
}  # fmt: skip


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("case", CONVOLUTIONS)
def test_a_convolution_between_conversions_multiplies_integers(
    planner: StandIn, case: str, bias: bool
) -> None:
    shape, filters, attrs, numbers = CONVOLUTIONS[case]
    network = Network(*shape)
    made = network.convolution(network.rounded(network.x, numbers), filters, bias, **attrs)
    steps = network.checked(network.rounded(network.emit(relax.op.nn.relu(made)), Z8))
    assert _kinds(steps) == ["quantization", "convolution", "quantization"]
    assert steps[1].is_quantized and _integer_nodes(planner)


def test_weights_with_a_zero_point_are_centred(planner: StandIn) -> None:
    network = Network(1, 5, 6, 7)
    made = network.convolution(network.rounded(network.x), (3, 5, 1, 1), zero=4)
    steps = network.checked(made)
    assert _kinds(steps) == ["quantization", "convolution"] and steps[1].is_quantized


def test_products_follow_each_other_in_integers(planner: StandIn) -> None:
    network = Network(1, 5, 8, 7)
    middle = network.convolution(network.rounded(network.x), (6, 5, 3, 3), padding=(1, 1, 1, 1))
    last = network.convolution(network.rounded(middle, S8), (4, 6, 3, 3), padding=(1, 1, 1, 1))
    steps = network.checked(last)
    assert _kinds(steps) == ["quantization", "convolution", "convolution"]
    assert all(step.is_quantized for step in steps[1:])


@pytest.mark.parametrize("both", [False, True])
def test_a_residual_is_added_in_the_later_product(planner: StandIn, both: bool) -> None:
    """Its own result is rounded to the model's integers first, and the other's are read as they stand."""
    network = Network(1, 6, 8, 7)
    x = network.rounded(network.x, S8)
    first = network.rounded(network.convolution(x, (6, 6, 3, 3), padding=(1, 1, 1, 1)), U8)
    second = network.rounded(network.convolution(first, (6, 6, 1, 1)), U8)
    beside = network.rounded(network.convolution(x, (6, 6, 1, 1)), S8) if both else x
    total = network.emit(relax.op.nn.relu(network.emit(relax.op.add(second, beside))))
    steps = network.checked(network.rounded(total, Z8))
    assert _kinds(steps) == ["quantization", *["convolution"] * (3 if both else 2), "quantization"]
    last = steps[-2]
    names = [getattr(one, "algorithm", "") for one in last.post_ops]
    assert "round" in names and names.count("add") >= 1 and names[-1] == "relu"


@pytest.mark.parametrize("transposed", [False, True])
def test_a_dense_layer_multiplies_integers(planner: StandIn, transposed: bool) -> None:
    network = Network(4, 10)
    x = network.rounded(network.x, S8)
    if transposed:
        weights = network.emit(relax.op.permute_dims(network.weights(7, 10)))
    else:
        weights = network.weights(10, 7, axis=1)
    bias = relax.const(network.random.standard_normal(7).astype("float32"))
    steps = network.checked(network.emit(relax.op.add(network.emit(relax.op.matmul(x, weights)), bias)))
    assert _kinds(steps) == ["quantization", "convolution"] and steps[1].is_quantized


def test_what_has_no_engine_for_integers_is_computed_in_real_numbers(
    planner: StandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask = planner.plan

    def refusing(request: dict) -> dict:
        integers = any(node.get("compute") == "INT32" for node in request["nodes"])
        return {"error": "no engine"} if integers else ask(request)

    monkeypatch.setattr("tvm_mxplan.byoc.cudnn.library.plan", refusing)
    network = Network(1, 5, 6, 7)
    steps = network.checked(network.convolution(network.rounded(network.x), (3, 5, 1, 1)))
    assert not any(step.is_quantized for step in steps)
    assert _kinds(steps) == ["quantization", "quantization", "convolution"]


def test_long_chains_without_an_engine_are_taken_apart(
    planner: StandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask = planner.plan

    def refusing(request: dict) -> dict:
        rounds = sum(node.get("mode") == "FLOOR" for node in request["nodes"])
        return {"error": "no engine"} if rounds > 1 else ask(request)

    monkeypatch.setattr("tvm_mxplan.byoc.cudnn.library.plan", refusing)
    network = Network(1, 6, 8, 7)
    x = network.rounded(network.x, S8)
    second = network.rounded(network.convolution(x, (6, 6, 1, 1)), U8)
    total = network.emit(relax.op.nn.relu(network.emit(relax.op.add(second, x))))
    steps = network.checked(network.rounded(total, Z8))
    products = [step for step in steps if step.kind == "convolution"]
    assert len(products) == 1 and products[0].is_quantized
    assert _kinds(steps)[-1] == "quantization"
