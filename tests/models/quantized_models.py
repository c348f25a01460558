"""Small quantised ONNX models, written node by node, with scales chosen by hand."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

Array = np.ndarray


@dataclass(frozen=True)
class Scale:
    """A scale, or one for each channel, and zero points of a type of integers."""

    scale: float | Array
    zero: int | Array = 0
    dtype: str = "uint8"


class QuantizedModel:
    """Collects nodes; ``finish`` gives the model.  Opset 19 unless another one is given."""

    def __init__(self, seed: int = 7) -> None:
        self.rng = np.random.default_rng(seed)
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []
        self.inputs: list[onnx.ValueInfoProto] = []

    def input(self, name: str, shape: tuple[int, ...], dtype: int = TensorProto.FLOAT) -> str:
        self.inputs.append(helper.make_tensor_value_info(name, dtype, shape))
        return name

    def constant(self, array: Array) -> str:
        name = f"constant{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(array, name))
        return name

    def node(self, kind: str, *inputs: str, **attributes: object) -> str:
        name = f"{kind.lower()}{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, inputs, [name], name=f"node_{name}", **attributes))
        return name

    def numbers(self, by: Scale) -> tuple[str, str]:
        return self.constant(np.asarray(by.scale, "float32")), self.constant(np.asarray(by.zero, by.dtype))

    def quantise(self, x: str, by: Scale) -> str:
        return self.node("QuantizeLinear", x, *self.numbers(by))

    def dequantise(self, x: str, by: Scale, axis: int = 0) -> str:
        return self.node("DequantizeLinear", x, *self.numbers(by), axis=axis)

    def rounded(self, x: str, by: Scale) -> str:
        return self.dequantise(self.quantise(x, by), by)

    def weights(self, shape: tuple[int, ...], by: Scale, axis: int = 0) -> str:
        limits = np.iinfo(by.dtype)
        array = self.rng.integers(limits.min, limits.max + 1, shape).astype(by.dtype)
        return self.dequantise(self.constant(array), by, axis)

    def bias(self, count: int, scale: float = 1 / 256) -> str:
        array = self.rng.integers(-200, 200, count).astype("int32")
        return self.dequantise(self.constant(array), Scale(scale, 0, "int32"))

    def conv(
        self,
        x: str,
        channels: tuple[int, int],
        kernel: int = 3,
        *,
        groups: int = 1,
        per_channel: bool = False,
        bias: bool = True,
        weights: Scale | None = None,
        **attributes: object,
    ) -> str:
        inputs, outputs = channels
        depth = inputs // groups * kernel * kernel
        unit = 1 / (74 * np.sqrt(depth))
        row = unit * np.exp(self.rng.uniform(-0.5, 0.5, outputs)) if per_channel else unit
        by = weights or Scale(row, np.zeros(outputs, "int8") if per_channel else 0, "int8")
        operands = [x, self.weights((outputs, inputs // groups, kernel, kernel), by)]
        if bias:
            operands.append(self.bias(outputs))
        pads = attributes.pop("pads", [kernel // 2] * 4)
        return self.node("Conv", *operands, group=groups, pads=pads, **attributes)

    def finish(self, *results: str, opset: int = 19, domains: tuple[str, ...] = ()) -> onnx.ModelProto:
        outputs = [onnx.ValueInfoProto(name=name) for name in results]
        graph = helper.make_graph(self.nodes, "quantized", self.inputs, outputs, self.constants)
        opsets = [helper.make_opsetid("", opset), *(helper.make_opsetid(domain, 1) for domain in domains)]
        model = helper.make_model(graph, opset_imports=opsets)
        model.ir_version = 9
        return onnx.shape_inference.infer_shapes(model)

    def data(self) -> dict[str, Array]:
        """Random numbers for every input, which go beyond the scales' ranges at both ends."""
        found = {}
        for one in self.inputs:
            shape = [dim.dim_value for dim in one.type.tensor_type.shape.dim]
            found[one.name] = self.rng.normal(0, 1.5, shape).astype("float32")
        return found
