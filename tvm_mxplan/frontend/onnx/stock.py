"""TVM's own converters, called for one node at a time."""

from __future__ import annotations

import contextlib
import functools
import io

import numpy as np
import onnx
import tvm
from tvm import relax
from tvm.relax.frontend.onnx import onnx_frontend as stock

from .dimensions.dims import expression
from .node import Emitter, Node
from .values import Symbols, Value, dtype_of, is_float, value_of

_CONVERTERS = stock._get_convert_map()
_TAKE_SHAPES = {"Reshape", "Resize", "ConstantOfShape", "Expand"}
"""Operators whose converters take a shape of Relax for an operand."""


CONTRIBUTED = {
    "com.microsoft": {
        "Attention",
        "BiasGelu",
        "EmbedLayerNormalization",
        "FastGelu",
        "Gelu",
        "MatMulInteger16",
        "SkipLayerNormalization",
    }
}
"""Operators of other domains that TVM converts; the standard ones of these names are others, but Gelu."""
_OTHERS = CONTRIBUTED["com.microsoft"] - {"Gelu"}


def is_known(domain: str, op_type: str) -> bool:
    """Whether TVM converts the operator as its domain means it."""
    if domain:
        return op_type in CONTRIBUTED.get(domain, ())
    return op_type in _CONVERTERS and op_type not in _OTHERS


def converted(emitter: Emitter, node: Node) -> list[Value]:
    """The results of a node as TVM converts it."""
    operands = stock.onnx_input([_operand(emitter, node, value) for value in node.inputs])
    attributes = {
        name: tuple(value) if isinstance(value, list) else value for name, value in node.attributes.items()
    }
    attributes["tvm_custom"] = {"name": node.name, "num_outputs": len(node.outputs)}
    function = _CONVERTERS[node.op_type].get_converter(node.opset)
    with contextlib.redirect_stdout(io.StringIO()):
        result = function(emitter.builder, operands, attributes, [{}, {}])
    results = _results(emitter, result, node)
    return [_in_type(emitter, node, value, at) for at, value in enumerate(results)]


def _in_type(emitter: Emitter, node: Node, value: Value, at: int) -> Value:
    """A result in the type that ONNX says, where it is that of an operand; TVM computes some in another."""
    place = _typed_as(node.domain, node.op_type, node.opset, at)
    if place is None or not isinstance(value, relax.Expr) or not isinstance(value.ty, relax.TensorType):
        return value
    operand = node.input(place)
    if operand is None or isinstance(operand, list) or dtype_of(operand) == dtype_of(value):
        return value
    return emitter.emit(relax.op.astype(value, dtype_of(operand)))


@functools.cache
def _typed_as(domain: str, op_type: str, opset: int, at: int) -> int | None:
    """The first operand that has the type of a result, by the operator's definition; None for no such one."""
    try:
        schema = onnx.defs.get_schema(op_type, opset, domain)
    except onnx.defs.SchemaError:
        return None
    named = {constraint.type_param_str for constraint in schema.type_constraints}
    if at >= len(schema.outputs) or schema.outputs[at].type_str not in named:
        return None
    wanted = schema.outputs[at].type_str
    return next((place for place, one in enumerate(schema.inputs) if one.type_str == wanted), None)


def _operand(emitter: Emitter, node: Node, value: Value) -> relax.Expr | None:
    if value is None:
        return None
    if (
        isinstance(value, Symbols)
        and not is_float(value)
        and node.op_type in _TAKE_SHAPES
        and len(value.shape) == 1
    ):
        return emitter.builder.normalize(relax.ShapeExpr([expression(dim) for dim in value.list()]))
    return emitter.tensor(value)


def _results(emitter: Emitter, result: relax.Expr, node: Node) -> list[Value]:
    if isinstance(result, relax.Expr) and not tvm.ir.is_prim_expr(result):
        result = emitter.builder.normalize(result)
    if isinstance(result, relax.Tuple):
        return [_result(emitter, field) for field in result.fields]
    if isinstance(getattr(result, "ty", None), relax.TupleType):
        bound = emitter.emit(result)
        return [emitter.emit(relax.TupleGetItem(bound, index)) for index in range(len(result.ty.fields))]
    return [_result(emitter, result)]


def _result(emitter: Emitter, result: relax.Expr) -> Value:
    if isinstance(result, relax.ShapeExpr):
        return value_of(list(result.values), (len(result.values),))
    if tvm.ir.is_prim_expr(result):
        return value_of([result], ())
    if isinstance(result, tvm.ir.GenericConst):
        array = result.value.numpy()
        return array if array.dtype == np.dtype(str(result.ty.dtype)) else result
    if isinstance(result.ty, relax.ShapeType):
        return emitter.emit(relax.op.shape_to_tensor(result))
    return result if isinstance(result, relax.Var) else emitter.emit(result)
