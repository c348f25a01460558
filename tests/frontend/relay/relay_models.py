"""ONNX models as TVM's Relay front end imported them, for ``relay_printer`` to print; and a small BERT."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper
from relay_printer import Call, Const, Item, Param, Tup


@dataclass
class Program:
    """A function: its parameters, inputs first; the values of those that are weights; and its result."""

    params: list[Param] = field(default_factory=list)
    weights: dict[str, np.ndarray] = field(default_factory=dict)
    result: Any = None

    @property
    def inputs(self) -> list[Param]:
        return [param for param in self.params if param.name not in self.weights]


def relay_of(model: onnx.ModelProto, *, constants: bool = False) -> Program:
    """The model in Relay; weights are parameters, or constants inside."""
    program, values = Program(), dict[str, Any]()
    arrays = {tensor.name: numpy_helper.to_array(tensor) for tensor in model.graph.initializer}
    for value in model.graph.input:
        if value.name not in arrays:
            tensor = value.type.tensor_type
            dtype = str(onnx.helper.tensor_dtype_to_np_dtype(tensor.elem_type))
            values[value.name] = Param(value.name, tuple(dim.dim_value for dim in tensor.shape.dim), dtype)
            program.params.append(values[value.name])
    shapes = {
        value.name: [dim.dim_value for dim in value.type.tensor_type.shape.dim]
        for value in onnx.shape_inference.infer_shapes(model).graph.value_info
    } | {param.name: list(param.shape) for param in program.params}
    shapes |= {name: list(array.shape) for name, array in arrays.items()}

    def operand(name: str) -> Any:
        if name not in values:
            array = arrays[name]
            if array.ndim == 0 or constants:
                values[name] = Const(array)
            else:
                values[name] = Param(name, array.shape, str(array.dtype))
                program.params.append(values[name])
                program.weights[name] = array
        return values[name]

    for node in model.graph.node:
        attributes = {one.name: onnx.helper.get_attribute_value(one) for one in node.attribute}
        if node.op_type == "Constant":
            arrays[node.output[0]] = numpy_helper.to_array(attributes["value"])
            continue
        context = _Context(node, attributes, operand, arrays, shapes)
        values[node.output[0]] = _CONVERTERS[node.op_type](context)
    program.result = values[model.graph.output[0].name]
    return program


@dataclass
class _Context:
    node: onnx.NodeProto
    attributes: dict[str, Any]
    operand: Callable[[str], Any]
    arrays: dict[str, np.ndarray]
    shapes: dict[str, list[int]]

    def src(self, index: int) -> Any:
        return self.operand(self.node.input[index])

    def shape(self, index: int) -> list[int]:
        return self.shapes[self.node.input[index]]

    def get(self, name: str, default: Any) -> Any:
        value = self.attributes.get(name, default)
        return list(value) if isinstance(value, tuple | list) else value

    def numbers(self, index: int) -> list[int]:
        return [int(number) for number in self.arrays[self.node.input[index]]]


def _conv(c: _Context) -> Any:
    weights = c.shape(1)
    dst = Call(
        "nn.conv2d",
        [c.src(0), c.src(1)],
        {
            "strides": c.get("strides", [1, 1]),
            "padding": c.get("pads", [0] * 4),
            "dilation": c.get("dilations", [1, 1]),
            "groups": c.get("group", 1),
            "channels": weights[0],
            "kernel_size": weights[2:],
        },
    )
    return Call("nn.bias_add", [dst, c.src(2)]) if len(c.node.input) > 2 else dst


def _batch_norm(c: _Context) -> Any:
    stated = {"epsilon": c.get("epsilon", 1e-5)}
    return Item(Call("nn.batch_norm", [c.src(index) for index in range(5)], stated), 0)


def _pool(operator: str) -> Callable[[_Context], Any]:
    def convert(c: _Context) -> Any:
        stated = {
            "pool_size": c.get("kernel_shape", None),
            "strides": c.get("strides", [1, 1]),
            "padding": c.get("pads", [0] * 4),
            "ceil_mode": bool(c.get("ceil_mode", 0)),
        }
        if operator == "nn.avg_pool2d":
            stated["count_include_pad"] = bool(c.get("count_include_pad", 0))
        return Call(operator, [c.src(0)], stated)

    return convert


def _gemm(c: _Context) -> Any:
    assert c.get("transB", 0) and not c.get("transA", 0)
    src = c.src(0) if len(c.shape(0)) == 2 else Call("nn.batch_flatten", [c.src(0)])
    dst = Call("nn.dense", [src, c.src(1)], {"units": c.shape(1)[0]})
    return Call("add", [dst, c.src(2)]) if len(c.node.input) > 2 else dst


def _matmul(c: _Context) -> Any:
    """Dense layers where the second operand is a matrix, else batched products of flattened batches."""
    a, b = c.shape(0), c.shape(1)
    if len(b) == 2:
        rows = Call("reshape", [c.src(0)], {"newshape": [-1, a[-1]]})
        turned = Call("transpose", [c.src(1)], {"axes": [1, 0]})
        dst = Call("nn.dense", [rows, turned], {"units": b[1]})
        return Call("reshape", [dst], {"newshape": [*a[:-1], b[1]]})
    left = Call("reshape", [c.src(0)], {"newshape": [-1, *a[-2:]]})
    right = Call("reshape", [c.src(1)], {"newshape": [-1, *b[-2:]]})
    right = Call("transpose", [right], {"axes": [0, 2, 1]})
    dst = Call("nn.batch_matmul", [left, right], {"out_dtype": "float32", "transpose_b": True})
    return Call("reshape", [dst], {"newshape": [*a[:-1], b[-1]]})


def _layer_norm(c: _Context) -> Any:
    """Written out, as the front end did."""
    src, axes = c.src(0), {"axis": [-1], "keepdims": True}
    mean = Call("mean", [src], axes)
    centred = Call("subtract", [src, mean])
    squares = Call("power", [centred, Const(np.float32(2.0).reshape(()))])
    variance = Call("mean", [squares], axes)
    shifted = Call("add", [variance, Const(np.asarray(c.get("epsilon", 1e-5), "float32"))])
    normal = Call("divide", [centred, Call("sqrt", [shifted])])
    return Call("add", [Call("multiply", [normal, c.src(1)]), c.src(2)])


def _clip(c: _Context) -> Any:
    low, high = (float(c.arrays[name]) for name in c.node.input[1:])
    return Call("clip", [c.src(0)], {"a_min": low, "a_max": high})


def _simple(operator: str) -> Callable[[_Context], Any]:
    return lambda c: Call(operator, [c.src(index) for index in range(len(c.node.input))])


_CONVERTERS: dict[str, Callable[[_Context], Any]] = {
    "Conv": _conv,
    "BatchNormalization": _batch_norm,
    "MaxPool": _pool("nn.max_pool2d"),
    "AveragePool": _pool("nn.avg_pool2d"),
    "GlobalAveragePool": _simple("nn.global_avg_pool2d"),
    "Gemm": _gemm,
    "MatMul": _matmul,
    "LayerNormalization": _layer_norm,
    "Clip": _clip,
    "Relu": _simple("nn.relu"),
    "Add": _simple("add"),
    "Mul": _simple("multiply"),
    "Div": _simple("divide"),
    "Erf": _simple("erf"),
    "Tanh": _simple("tanh"),
    "Sqrt": _simple("sqrt"),
    "Flatten": _simple("nn.batch_flatten"),
    "Softmax": lambda c: Call("nn.softmax", [c.src(0)], {"axis": c.get("axis", -1)}),
    "Gather": lambda c: Call("take", [c.src(0), c.src(1)], {"axis": c.get("axis", 0)}),
    "Reshape": lambda c: Call("reshape", [c.src(0)], {"newshape": c.numbers(1)}),
    "Transpose": lambda c: Call("transpose", [c.src(0)], {"axes": c.get("perm", None)}),
    "Concat": lambda c: Call(
        "concatenate", [Tup([c.src(index) for index in range(len(c.node.input))])], {"axis": c.get("axis", 0)}
    ),
    "Slice": lambda c: Call(
        "strided_slice",
        [c.src(0)],
        {"begin": c.numbers(1), "end": c.numbers(2), "strides": [1], "axes": c.numbers(3)},
    ),
}


def bert(tokens: int = 13, width: int = 48, heads: int = 3, layers: int = 2) -> onnx.ModelProto:
    """An encoder as BERT is one: embeddings, attention with a mask, layer norms, GELU by erf."""
    random, inner, words = np.random.default_rng(11), 4 * width, 97
    nodes: list[onnx.NodeProto] = []
    tensors: list[onnx.TensorProto] = []

    def weight(*shape: int, around: float = 0.0) -> str:
        values = around + random.standard_normal(shape, np.float32) / np.float32(np.sqrt(shape[0]))
        return constant(values.astype(np.float32))

    def constant(value: np.ndarray) -> str:
        name = f"bert.w{len(tensors)}.weight"
        tensors.append(numpy_helper.from_array(value, name))
        return name

    def add(operator: str, *srcs: str, **attributes: Any) -> str:
        name = f"{operator.lower()}_{len(nodes)}"
        nodes.append(onnx.helper.make_node(operator, list(srcs), [name], name, **attributes))
        return name

    def norm(src: str) -> str:
        scale, shift = weight(width, around=1.0), weight(width)
        return add("LayerNormalization", src, scale, shift, axis=-1, epsilon=1e-12)

    def dense(src: str, rows: int, columns: int) -> str:
        return add("Add", add("MatMul", src, weight(rows, columns)), weight(columns))

    def split(src: str) -> str:
        shape = constant(np.asarray([1, tokens, heads, width // heads], np.int64))
        return add("Transpose", add("Reshape", src, shape), perm=[0, 2, 1, 3])

    state = norm(add("Add", add("Gather", weight(words, width), "input_ids"), weight(tokens, width)))
    for _ in range(layers):
        query, key, value = (split(dense(state, width, width)) for _ in range(3))
        scores = add("MatMul", query, add("Transpose", key, perm=[0, 1, 3, 2]))
        scores = add("Div", scores, constant(np.asarray(np.sqrt(width / heads), np.float32)))
        mixed = add("MatMul", add("Softmax", add("Add", scores, "mask"), axis=-1), value)
        joined = add("Transpose", mixed, perm=[0, 2, 1, 3])
        joined = add("Reshape", joined, constant(np.asarray([1, tokens, width], np.int64)))
        state = norm(add("Add", dense(joined, width, width), state))
        hidden = dense(state, width, inner)
        erf = add("Erf", add("Div", hidden, constant(np.asarray(np.sqrt(2.0), np.float32))))
        gate = add("Add", erf, constant(np.asarray(1.0, np.float32)))
        gelu = add("Mul", add("Mul", hidden, gate), constant(np.asarray(0.5, np.float32)))
        state = norm(add("Add", dense(gelu, inner, width), state))
    bounds = [constant(np.asarray([number], np.int64)) for number in (0, 1, 1)]
    first = add("Reshape", add("Slice", state, *bounds), constant(np.asarray([1, width], np.int64)))
    add("Tanh", dense(first, width, width))
    info = onnx.helper.make_tensor_value_info
    inputs = [
        info("input_ids", onnx.TensorProto.INT64, [1, tokens]),
        info("mask", onnx.TensorProto.FLOAT, [1, 1, 1, tokens]),
    ]
    outputs = [info(nodes[-1].output[0], onnx.TensorProto.FLOAT, [1, width])]
    graph = onnx.helper.make_graph(nodes, "bert", inputs, outputs, tensors)
    return onnx.helper.make_model(graph, ir_version=8, opset_imports=[onnx.helper.make_opsetid("", 17)])


def smaller(model: onnx.ModelProto, pixels: int) -> onnx.ModelProto:
    """A network of images with another size of these."""
    changed = onnx.ModelProto()
    changed.CopyFrom(model)
    del changed.graph.value_info[:]
    parameters = {tensor.name for tensor in changed.graph.initializer}
    for value in changed.graph.input:
        if value.name not in parameters:
            for dim in value.type.tensor_type.shape.dim[2:]:
                dim.dim_value = pixels
    return changed
