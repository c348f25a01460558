"""Compilations under the cache: what became of them, and what an executable of one must be."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import onnx
from onnx import helper

import tvm_mxplan
from tvm_mxplan.testing import zoo
from tvm_mxplan.testing.reference import onnxruntime_outputs, worst_relative_l2

X = zoo.random_images((1, 3, 32, 32))


def compiled(model, **options) -> tvm_mxplan.Executable:
    ex = tvm_mxplan.compile(model, options={"cache": "on_compile", **options})
    assert ex.report.regions
    return ex


def outcome(model, **options) -> str:
    return compiled(model, **options).report.cache.outcome


def facts_of(ex: tvm_mxplan.Executable) -> object:
    """The report without what is of one compilation alone."""
    return replace(ex.report, seconds={}, cache=type(ex.report.cache)())


def check(ex: tvm_mxplan.Executable, model: onnx.ModelProto) -> None:
    inputs = zoo.random_inputs(model, seed=3)
    actual = [tensor.numpy() for tensor in ex(**inputs)]
    assert worst_relative_l2(actual, onnxruntime_outputs(model, inputs)) <= 1e-5


def changed(model: onnx.ModelProto, change: Callable[[onnx.GraphProto], object]) -> onnx.ModelProto:
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    change(copy.graph)
    return copy


def one_bit(graph: onnx.GraphProto) -> None:
    tensor = next(tensor for tensor in graph.initializer if len(tensor.raw_data) > 100)
    data = bytearray(tensor.raw_data)
    data[50] ^= 1
    tensor.raw_data = bytes(data)


def other_edge(graph: onnx.GraphProto) -> None:
    relu = next(node for node in graph.node if node.op_type == "Relu")
    reader = next(node for node in graph.node if relu.output[0] in node.input)
    reader.input[list(reader.input).index(relu.output[0])] = relu.input[0]


def other_attribute(graph: onnx.GraphProto) -> None:
    conv = next(node for node in graph.node if node.op_type == "Conv")
    pads = next(attribute for attribute in conv.attribute if attribute.name == "pads")
    conv.attribute.remove(pads)
    conv.attribute.append(helper.make_attribute("auto_pad", "SAME_UPPER"))
