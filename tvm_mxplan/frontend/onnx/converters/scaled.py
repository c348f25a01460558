"""QuantizeLinear and DequantizeLinear in blocks, and to and from floating-point numbers of 8 bits.

What TVM has operators for, which are what libraries look for, is left to TVM's converters.
"""

from __future__ import annotations

import numpy as np
import onnx
from tvm import relax

from ....errors import InvalidInputError, UnsupportedError
from ..node import Emitter, Node, NotTaken
from ..values import Value, dtype_of, shape_of
from .blocked import few_bits
from .casts import SMALL, from_small, to_small
from .numbers import constant
from .table import converts

_WHOLE = ("int8", "uint8", "int16", "uint16", "int32")


@converts("DequantizeLinear")
def _dequantize(emitter: Emitter, node: Node) -> Value:
    of = dtype_of(node.input(0))
    matrix = few_bits(emitter, node)
    if matrix is not None:
        return matrix
    if not node.attribute("block_size", 0) and of not in SMALL:
        raise NotTaken
    if of not in (*SMALL, *_WHOLE):
        raise UnsupportedError(
            f"{emitter.importer.called(node)}: numbers of {of} that the model gets; expected 8 bits and more"
        )
    emit = emitter.emit
    data = from_small(emitter, emitter.tensor(node.input(0)), "float32")
    if node.input(2) is not None:
        zero = from_small(emitter, emitter.tensor(node.input(2)), "float32")
        data = emit(relax.op.subtract(data, _spread(emitter, node, zero)))
    scale = emitter.tensor(node.input(1))
    to = dtype_of(scale)
    wide = scale if to == "float32" else emit(relax.op.astype(scale, "float32"))
    result = emit(relax.op.multiply(data, _spread(emitter, node, wide)))
    stated = node.attribute("output_dtype", 0)
    to = str(np.dtype(onnx.helper.tensor_dtype_to_np_dtype(stated))) if stated else to
    return result if to == "float32" else emit(relax.op.astype(result, to))


@converts("QuantizeLinear")
def _quantize(emitter: Emitter, node: Node) -> Value:
    stated, zero = node.attribute("output_dtype", 0), node.input(2)
    if zero is not None:
        to = dtype_of(zero)
    else:
        to = str(np.dtype(onnx.helper.tensor_dtype_to_np_dtype(stated))) if stated else "uint8"
    if not node.attribute("block_size", 0) and to not in SMALL and dtype_of(node.input(0)) != "int32":
        raise NotTaken
    if to not in (*SMALL, *_WHOLE):
        raise UnsupportedError(
            f"{emitter.importer.called(node)}: numbers of {to} as a result; expected 8 bits and more"
        )
    emit = emitter.emit
    data, scale = (from_small(emitter, emitter.tensor(node.input(at)), "float32") for at in (0, 1))
    steps = emit(relax.op.divide(data, _spread(emitter, node, scale)))
    if to in SMALL:
        return to_small(emitter, steps, to, saturate=bool(node.attribute("saturate", 1)))
    rounded = emit(relax.op.round(steps))
    if zero is not None:
        point = emit(relax.op.astype(emitter.tensor(zero), "float32"))
        rounded = emit(relax.op.add(rounded, _spread(emitter, node, point)))
    ends = np.iinfo(to)
    return emit(relax.op.astype(relax.op.clip(rounded, float(ends.min), float(ends.max)), to))


def _spread(emitter: Emitter, node: Node, row: relax.Expr) -> relax.Expr:
    """A scale or zero point so that it broadcasts over the operand: one, one for a place, or for a block."""
    dims, shape = emitter.shape(node.input(0)), shape_of(row)
    if shape is None:
        raise NotTaken
    if len(shape) == 0 or shape == [1]:
        return emitter.reshaped(row, [])
    block = node.attribute("block_size", 0)
    if not dims or (len(shape) > 1 and not block):
        raise InvalidInputError(
            f"{emitter.importer.called(node)}: scales of shape {shape} for an operand of shape {dims}; "
            "expected a single one, one for each place along an axis, or block_size with them"
        )
    axis = node.attribute("axis", 1) % len(dims)
    if len(shape) == 1 and not block:
        return emitter.reshaped(row, [shape[0] if at == axis else 1 for at in range(len(dims))])
    extent = dims[axis]
    if not isinstance(extent, int) or not isinstance(shape[axis], int):
        raise NotTaken
    if -(-extent // block) != shape[axis]:
        raise InvalidInputError(
            f"{emitter.importer.called(node)}: {shape[axis]} blocks of {block} for {extent} elements; "
            f"expected {-(-extent // block)}"
        )
    places = constant(np.arange(extent) // block, "int64")
    return emitter.emit(relax.op.take(row, places, axis))
