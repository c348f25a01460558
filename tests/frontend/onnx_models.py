"""Models as text, run by us and by onnxruntime."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import onnx
import tvm
from onnx.reference import ReferenceEvaluator
from tvm import relax

import tvm_mxplan
from tvm_mxplan.frontend.onnx import import_model
from tvm_mxplan.testing.reference import onnxruntime_outputs

RANDOM = np.random.default_rng(7)


def model(text: str, opset: int = 18, domains: str = "") -> onnx.ModelProto:
    """A model of ONNX's text form, without its head; checked."""
    head = f'<ir_version: 9, opset_import: ["": {opset}{domains}]>\n'
    parsed = onnx.parser.parse_model(head + text)
    onnx.checker.check_model(parsed)
    return parsed


def normal(*shape: int) -> np.ndarray:
    return RANDOM.standard_normal(shape).astype("float32")


def check(
    parsed: onnx.ModelProto, inputs: Mapping[str, np.ndarray], atol: float = 1e-5, by_definition: bool = False
) -> None:
    """Hold what TVM's code computes of the imported model against onnxruntime, or ONNX's reference.

    ``by_definition`` takes the reference, for products of 8-bit integers: onnxruntime's sums of two of them
    saturate on processors without VNNI.
    """
    if by_definition:
        expected = ReferenceEvaluator(parsed).run(None, dict(inputs))
    else:
        expected = onnxruntime_outputs(parsed, dict(inputs))
    actual = [np.asarray(result.numpy()) for result in tvm_mxplan.compile(parsed, "llvm")(**inputs)]
    for ours, theirs in zip(actual, expected, strict=True):
        assert ours.dtype == theirs.dtype
        assert ours.shape == theirs.shape
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=atol)


def operators(parsed: onnx.ModelProto) -> list[str]:
    """Names of the Relax operators that the model became, in order, in all functions."""
    found = list[str]()

    def visit(expr: relax.Expr) -> None:
        if isinstance(expr, relax.Call):
            found.append(expr.op.name.removeprefix("relax.") if isinstance(expr.op, tvm.ir.Op) else "call")

    for function in import_model(parsed).functions.values():
        if isinstance(function, relax.Function):
            relax.analysis.post_order_visit(function, visit)
    return found


def of_node(
    node: onnx.NodeProto,
    inputs: Mapping[str, np.ndarray],
    constants: Mapping[str, np.ndarray] | None = None,
    opset: int = 18,
) -> onnx.ModelProto:
    """A model of one node, with inputs and constants like these arrays and results of whatever types."""
    given = [
        onnx.helper.make_tensor_value_info(
            name, onnx.helper.np_dtype_to_tensor_dtype(array.dtype), array.shape
        )
        for name, array in inputs.items()
    ]
    results = [onnx.ValueInfoProto(name=name) for name in node.output if name]
    weights = [
        onnx.numpy_helper.from_array(np.asarray(array), name) for name, array in (constants or {}).items()
    ]
    graph = onnx.helper.make_graph([node], "g", given, results, weights)
    opsets = [onnx.helper.make_opsetid("", opset), onnx.helper.make_opsetid("com.microsoft", 1)]
    made = onnx.helper.make_model(graph, opset_imports=opsets, ir_version=9)
    return onnx.shape_inference.infer_shapes(made)


def answers(parsed: onnx.ModelProto, inputs: Mapping[str, np.ndarray]) -> list[np.ndarray]:
    """The results of the imported model as TVM's code computes them."""
    return [np.asarray(result.numpy()) for result in tvm_mxplan.compile(parsed, "llvm")(**inputs)]
