"""Prints programs as TVM 0.19 printed Relay: text, text with metadata, JSON, files of parameters.

It is written by the printer's grammar, the tables of its attribute types and its JSON, and shares nothing
with what reads them here.  Programs are graphs of the classes below; what is read twice stands there once.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from relay_parameters import tensor_bytes


@dataclass(eq=False)
class Param:
    name: str
    shape: tuple[int | None, ...]
    dtype: str = "float32"


@dataclass(eq=False)
class Const:
    value: np.ndarray


@dataclass(eq=False)
class Call:
    operator: str
    args: list[Any]
    attributes: dict[str, Any] = field(default_factory=dict)


@dataclass(eq=False)
class Tup:
    fields: list[Any]


@dataclass(eq=False)
class Item:
    source: Any
    index: int


@dataclass(frozen=True)
class Attribute:
    """``kind`` says how JSON has it: plain (int, float, bool, dtype), or a node (array, integer, string)."""

    name: str
    kind: str
    default: Any = ...


def _window(axes: str, kernel: str, *more: Attribute) -> list[Attribute]:
    rank = len(axes)
    return [
        Attribute("strides", "array", [1] * rank),
        Attribute("padding", "array", [0] * rank),
        Attribute("dilation", "array", [1] * rank),
        Attribute("groups", "int", 1),
        Attribute("channels", "integer", None),
        Attribute("kernel_size", "array", None),
        Attribute("data_layout", "string", f"NC{axes}"),
        Attribute("kernel_layout", "string", f"{kernel}{axes}"),
        Attribute("out_layout", "string", ""),
        *more,
        Attribute("out_dtype", "dtype", ""),
    ]


_POOL = [
    Attribute("pool_size", "array"),
    Attribute("strides", "array", [1, 1]),
    Attribute("dilation", "array", [1, 1]),
    Attribute("padding", "array", [0, 0]),
    Attribute("layout", "std", "NCHW"),
    Attribute("out_layout", "std", ""),
    Attribute("ceil_mode", "bool", False),
]
_REDUCE = [
    Attribute("axis", "array", None),
    Attribute("keepdims", "bool", False),
    Attribute("exclude", "bool", False),
]
_NORM = [
    Attribute("epsilon", "float", 1e-5),
    Attribute("center", "bool", True),
    Attribute("scale", "bool", True),
]
_PRODUCT = [Attribute("units", "integer"), Attribute("out_dtype", "dtype", "")]
_TYPES: dict[str, list[Attribute]] = {
    "BiasAddAttrs": [Attribute("axis", "int", 1)],
    "Conv2DAttrs": _window(
        "HW",
        "OI",
        Attribute("auto_scheduler_rewritten_layout", "string", ""),
        Attribute("meta_schedule_original_shape", "array", None),
    ),
    "Conv2DTransposeAttrs": _window("HW", "IO", Attribute("output_padding", "array", [0, 0])),
    "MaxPool2DAttrs": _POOL,
    "AvgPool2DAttrs": [*_POOL, Attribute("count_include_pad", "bool", False)],
    "GlobalPool2DAttrs": [Attribute("layout", "std", "NCHW"), Attribute("out_layout", "std", "")],
    "SoftmaxAttrs": [Attribute("axis", "int", -1)],
    "DenseAttrs": _PRODUCT,
    "BatchMatmulAttrs": [
        Attribute("out_dtype", "dtype", ""),
        Attribute("transpose_a", "bool", False),
        Attribute("transpose_b", "bool", False),
    ],
    "BatchNormAttrs": [Attribute("axis", "int", 1), *_NORM],
    "LayerNormAttrs": [Attribute("axis", "int", -1), *_NORM],
    "ReshapeAttrs": [Attribute("newshape", "array"), Attribute("allowzero", "bool", False)],
    "TransposeAttrs": [Attribute("axes", "array")],
    "ConcatenateAttrs": [Attribute("axis", "int", 0)],
    "TakeAttrs": [
        Attribute("batch_dims", "integer", 0),
        Attribute("axis", "integer", None),
        Attribute("mode", "string", "clip"),
    ],
    "ClipAttrs": [Attribute("a_min", "float"), Attribute("a_max", "float")],
    "SplitAttrs": [Attribute("indices_or_sections", "boxed"), Attribute("axis", "int", 0)],
    "SqueezeAttrs": [Attribute("axis", "array", None)],
    "ExpandDimsAttrs": [Attribute("axis", "int"), Attribute("num_newaxis", "int", 1)],
    "StridedSliceAttrs": [
        Attribute("begin", "array"),
        Attribute("end", "array"),
        Attribute("strides", "array"),
        Attribute("slice_mode", "string", "end"),
        Attribute("axes", "array"),
    ],
    "CastAttrs": [Attribute("dtype", "dtype")],
    "DropoutAttrs": [Attribute("rate", "float", 0.5)],
    "LRNAttrs": [
        Attribute("size", "int", 5),
        Attribute("axis", "int", 1),
        Attribute("bias", "float", 2.0),
        Attribute("alpha", "float", 0.0001),
        Attribute("beta", "float", 0.75),
    ],
    "ReduceAttrs": _REDUCE,
}
_OPERATORS = {
    "nn.bias_add": "BiasAddAttrs",
    "nn.conv2d": "Conv2DAttrs",
    "nn.conv2d_transpose": "Conv2DTransposeAttrs",
    "nn.max_pool2d": "MaxPool2DAttrs",
    "nn.avg_pool2d": "AvgPool2DAttrs",
    "nn.global_avg_pool2d": "GlobalPool2DAttrs",
    "nn.softmax": "SoftmaxAttrs",
    "nn.dense": "DenseAttrs",
    "nn.batch_matmul": "BatchMatmulAttrs",
    "nn.batch_norm": "BatchNormAttrs",
    "nn.layer_norm": "LayerNormAttrs",
    "reshape": "ReshapeAttrs",
    "transpose": "TransposeAttrs",
    "concatenate": "ConcatenateAttrs",
    "take": "TakeAttrs",
    "clip": "ClipAttrs",
    "split": "SplitAttrs",
    "squeeze": "SqueezeAttrs",
    "expand_dims": "ExpandDimsAttrs",
    "strided_slice": "StridedSliceAttrs",
    "cast": "CastAttrs",
    "nn.dropout": "DropoutAttrs",
    "nn.lrn": "LRNAttrs",
    "mean": "ReduceAttrs",
    "sum": "ReduceAttrs",
}


def attributes_of(operator: str) -> list[Attribute]:
    return _TYPES[_OPERATORS[operator]] if operator in _OPERATORS else []


def operands(node: Any) -> list[Any]:
    if isinstance(node, Call):
        return node.args
    if isinstance(node, Tup):
        return node.fields
    return [node.source] if isinstance(node, Item) else []


def ordered(result: Any) -> list[Any]:
    """All nodes, each behind what it reads."""
    done: dict[int, Any] = {}
    todo = [result]
    while todo:
        node = todo[-1]
        missing = [one for one in operands(node) if id(one) not in done]
        if missing:
            todo += reversed(missing)
        else:
            done.setdefault(id(node), node)
            todo.pop()
    return list(done.values())


# --- text -----------------------------------------------------------------------------------------------


def as_text(params: Sequence[Param], result: Any, *, metadata: bool = True) -> str:
    """The text that ``mod.astext()`` printed."""
    names = {id(param): f"%{param.name}" for param in params}
    lines, constants, number = [], list[np.ndarray](), 0
    for node in ordered(result):
        if isinstance(node, Param):
            continue
        if isinstance(node, Const):
            scalar = _scalar(node.value)
            names[id(node)] = scalar or f"meta[relay.Constant][{len(constants)}]"
            constants += [] if scalar else [node.value]
            continue
        text = _line(node, names)
        if node is result:
            lines.append(f"  {text}")
        else:
            names[id(node)] = f"%{number}"
            lines.append(f"  %{number} = {text};")
            number += 1
    heads = ", ".join(f"%{param.name}: {_type(param)} /* ty={_type(param)} */" for param in params)
    body = "\n".join(lines)
    text = f'#[version = "0.0.5"]\ndef @main({heads}) {{\n{body}\n}}\n'
    if constants and metadata:
        text += f"\n#[metadata]\n{_metadata(constants)}"
    elif constants:
        text += "\n/* For debugging purposes the metadata section has been omitted.\n */\n"
    return text


def _type(param: Param) -> str:
    dims = ", ".join("?" if dim is None else str(dim) for dim in param.shape)
    return f"Tensor[({dims}), {param.dtype}]" if param.shape else param.dtype


def _line(node: Any, names: dict[int, str]) -> str:
    if isinstance(node, Item):
        return f"{names[id(node.source)]}.{node.index}"
    args = [names[id(one)] for one in operands(node)]
    if isinstance(node, Tup):
        return f"({', '.join(args)}{',' if len(args) == 1 else ''})"
    args += [
        f"{one.name}={_printed(node.attributes[one.name], one.kind)}"
        for one in attributes_of(node.operator)
        if one.name in node.attributes and node.attributes[one.name] != one.default
    ]
    return f"{node.operator}({', '.join(args)}) /* span={node.operator}_/a.b:0:0 */"


def _printed(value: Any, kind: str) -> str:
    if kind == "float":
        return f"{value:g}f"
    if isinstance(value, str):
        return f'"{value}"'
    if isinstance(value, list):
        return f"[{', '.join(_printed(one, kind) for one in value)}]"
    return str(value)


def _scalar(value: np.ndarray) -> str:
    """A scalar as it is printed, '' for what the metadata takes; six digits, as a C++ stream prints it."""
    if value.ndim:
        return ""
    if value.dtype == bool:
        return str(bool(value))
    bits = 8 * value.dtype.itemsize
    if value.dtype.kind == "f":
        return f"{float(value):g}f{'' if bits == 32 else bits}"
    return f"{int(value)}{'' if bits == 32 else f'i{bits}'}"


def _metadata(constants: list[np.ndarray]) -> str:
    graph = _Graph()
    members = graph.array([graph.constant(one) for one in constants])
    root = graph.add("Map", keys=["relay.Constant"], data=[members])
    return graph.text(root)


# --- JSON -----------------------------------------------------------------------------------------------


class _Graph:
    """Nodes with numbers; 0 is none."""

    def __init__(self) -> None:
        self.nodes: list[dict[str, Any]] = [{"type_key": ""}]
        self.arrays: list[str] = []
        self.device = self.add("VirtualDevice", {"device_type_int": "-1", "memory_scope": ""})

    def add(self, kind: str, attrs: dict[str, str] | None = None, **rest: Any) -> int:
        self.nodes.append({"type_key": kind, **({"attrs": attrs} if attrs else {}), **rest})
        return len(self.nodes) - 1

    def expr(self, kind: str, **attrs: int) -> int:
        more = {"virtual_device_": self.device, "span": 0, "_checked_type_": 0}
        return self.add(kind, {name: str(value) for name, value in {**attrs, **more}.items()})

    def array(self, members: Sequence[int]) -> int:
        return self.add("Array", data=list(members)) if members else self.add("Array")

    def integer(self, value: int, dtype: str = "int32") -> int:
        return self.add("IntImm", {"dtype": dtype, "value": str(value), "span": "0"})

    def string(self, value: str) -> int:
        return self.add("runtime.String", repr_str=value) if value else self.add("runtime.String")

    def constant(self, value: np.ndarray) -> int:
        self.arrays.append(base64.b64encode(tensor_bytes(value)).decode())
        return self.expr("relay.Constant", data=len(self.arrays) - 1)

    def type(self, param: Param) -> int:
        dims = [
            self.add("tir.Any", {"dtype": "int32"}) if d is None else self.integer(d) for d in param.shape
        ]
        shape = self.array(dims)
        return self.add("relay.TensorType", {"dtype": param.dtype, "shape": str(shape), "span": "0"})

    def attribute(self, value: Any, kind: str) -> str:
        if kind in ("int", "bool"):
            return str(int(value))
        if kind == "float":
            return f"{value:.17g}"
        if kind in ("dtype", "std"):
            return value
        if value is None:
            return "0"
        if kind == "array":
            return str(self.array([self.integer(one) for one in value]))
        if kind == "boxed":
            boxes = [self.add("runtime.BoxInt", repr_str=str(one)) for one in np.atleast_1d(value)]
            return str(self.array(boxes) if isinstance(value, list) else boxes[0])
        return str(self.integer(value) if kind == "integer" else self.string(value))

    def text(self, root: int) -> str:
        attrs = {"tvm_version": "0.19.0"}
        return json.dumps(
            {"root": root, "nodes": self.nodes, "b64ndarrays": self.arrays, "attrs": attrs}, indent=2
        )


def as_json(params: Sequence[Param], result: Any) -> str:
    """The text that ``tvm.ir.save_json(mod)`` wrote."""
    graph = _Graph()
    made: dict[int, int] = {}
    ops: dict[str, int] = {}
    for node in [*params, *ordered(result)]:
        if id(node) in made:
            continue
        inner = [made[id(one)] for one in operands(node)]
        if isinstance(node, Param):
            vid = graph.add("relay.Id", {"name_hint": str(graph.string(node.name))})
            made[id(node)] = graph.expr("relay.Var", vid=vid, type_annotation=graph.type(node))
        elif isinstance(node, Const):
            made[id(node)] = graph.constant(node.value)
        elif isinstance(node, Tup):
            made[id(node)] = graph.expr("relay.Tuple", fields=graph.array(inner))
        elif isinstance(node, Item):
            made[id(node)] = graph.expr("relay.TupleGetItem", tuple_value=inner[0], index=node.index)
        else:
            if node.operator not in ops:
                ops[node.operator] = graph.add("Op", repr_str=node.operator)
            stated = {
                one.name: graph.attribute(node.attributes.get(one.name, one.default), one.kind)
                for one in attributes_of(node.operator)
            }
            kind = _OPERATORS.get(node.operator)
            attrs = graph.add(f"relay.attrs.{kind}", stated) if kind else 0
            args, types = graph.array(inner), graph.array([])
            made[id(node)] = graph.expr(
                "relay.Call", op=ops[node.operator], args=args, attrs=attrs, type_args=types
            )
    function = graph.expr(
        "relay.Function",
        params=graph.array([made[id(param)] for param in params]),
        body=made[id(result)],
        ret_type=0,
        type_params=graph.array([]),
        attrs=0,
    )
    main = graph.expr("GlobalVar", name_hint=graph.string("main"), struct_info_=0)
    functions = graph.add("Map", data=[main, function])
    names = graph.add("Map", keys=["main"], data=[main])
    empty = str(graph.add("Map"))
    fields = {"type_definitions": empty, "global_type_var_map_": empty, "source_map": "0", "attrs": "0"}
    module = {"functions": str(functions), "global_var_map_": str(names), "global_infos": empty, **fields}
    return graph.text(graph.add("IRModule", module))


# --- parameters -----------------------------------------------------------------------------------------
