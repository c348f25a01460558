"""Elementwise operators that TVM's importer converts for some types or versions only."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import onnx
from tvm import relax, te, tirx

from ....errors import UnsupportedError
from .. import stock
from ..dimensions.dims import Dim, divided, expression, product
from ..dimensions.restate import Demand, demanded, met_aside, multiple_of, text_of
from ..node import Emitter, Node, NotTaken
from ..values import Value, dtype_of
from .numbers import constant, is_integer
from .table import converts

_DROPS = "drops elements at random, as in training; expected training_mode = 0"


@converts("Mod")
def _mod(emitter: Emitter, node: Node) -> Value:
    """The remainder of floating-point numbers with the divisor's sign, as numpy has it."""
    left, right = emitter.tensor(node.input(0)), emitter.tensor(node.input(1))
    dtype = dtype_of(left)
    if is_integer(dtype) or node.attribute("fmod", 0):
        raise NotTaken
    emit = emitter.emit
    inner = "float64" if dtype == "float64" else "float32"
    x, y = (emit(relax.op.astype(value, inner)) for value in (left, right))
    zero = constant(0, inner)
    rest = emit(relax.op.mod(x, y))
    infinite = emit(relax.op.equal(relax.op.abs(y), constant(math.inf, inner)))
    finite = relax.op.less(relax.op.abs(x), constant(math.inf, inner))
    rest = emit(relax.op.where(relax.op.logical_and(infinite, finite), x, rest))
    differs = relax.op.logical_xor(relax.op.less(rest, zero), relax.op.less(y, zero))
    moved = relax.op.logical_and(relax.op.not_equal(rest, zero), differs)
    result = emit(relax.op.where(moved, relax.op.add(rest, y), rest))
    return emit(relax.op.astype(result, dtype))


@converts("Sign")
def _sign(emitter: Emitter, node: Node) -> Value:
    """Of numbers that are 0 or more, 0 and 1: TVM's kernel makes a number below 0 for any type."""
    data = emitter.tensor(node.input(0))
    dtype = dtype_of(data)
    if not dtype.startswith("uint"):
        raise NotTaken
    return emitter.emit(relax.op.minimum(data, constant(1, dtype)))


@converts("Clip")
def _clip(emitter: Emitter, node: Node) -> Value:
    """Bounds that are attributes, as numbers of the operand's type."""
    if node.opset >= 11:
        raise NotTaken
    dtype = dtype_of(node.input(0))
    bounds = [node.attribute(name) for name in ("min", "max")]
    inputs = [None if bound is None else np.asarray(bound).astype(dtype) for bound in bounds]
    (result,) = stock.converted(emitter, replace(node, inputs=[node.input(0), *inputs], opset=13))
    return result


@converts("IsInf")
def _is_infinite(emitter: Emitter, node: Node) -> Value:
    data = emitter.tensor(node.input(0))
    dtype = dtype_of(data)
    if dtype not in ("float32", "float64", "float16", "bfloat16"):
        raise NotTaken
    if dtype == "bfloat16":
        data, dtype = emitter.emit(relax.op.astype(data, "float32")), "float32"
    found = [
        relax.op.equal(data, constant(infinity, dtype))
        for name, infinity in (("detect_positive", math.inf), ("detect_negative", -math.inf))
        if node.attribute(name, 1)
    ]
    if not found:
        shape = relax.ShapeExpr([expression(dim) for dim in emitter.shape(data)])
        return emitter.emit(relax.op.full(shape, constant(False, "bool")))
    return emitter.emit(found[0] if len(found) == 1 else relax.op.logical_or(*found))


@converts("BitShift")
def _bit_shift(emitter: Emitter, node: Node) -> Value:
    """Shifts by the width and more leave nothing but the sign; so do those by less than 0, as in numpy."""
    left, right = emitter.tensor(node.input(0)), emitter.tensor(node.input(1))
    dtype = dtype_of(left)
    emit = emitter.emit
    last, zero = constant(np.iinfo(dtype).bits - 1, dtype), constant(0, dtype)
    outside = relax.op.greater(right, last)
    if np.dtype(dtype).kind == "i":
        outside = relax.op.logical_or(outside, relax.op.less(right, zero))
    outside = emit(outside)
    amount = emit(relax.op.where(outside, last, right))
    if node.text("direction") == "LEFT":
        return emit(relax.op.where(outside, zero, relax.op.left_shift(left, amount)))
    shifted = emit(relax.op.right_shift(left, amount))
    return shifted if np.dtype(dtype).kind == "i" else emit(relax.op.where(outside, zero, shifted))


@converts("BitCast")
def _bit_cast(emitter: Emitter, node: Node) -> Value:
    """The same bits as another type of as many."""
    data = emitter.tensor(node.input(0))
    to = np.dtype(onnx.helper.tensor_dtype_to_np_dtype(node.attributes["to"]))
    of = np.dtype(dtype_of(data))
    if of.itemsize != to.itemsize:
        raise NotTaken
    if of.kind == "b" or to.kind == "b":  # a byte of 0 or 1
        return emitter.emit(relax.op.astype(data, str(to)))

    def kernel(tensor: te.Tensor) -> te.Tensor:
        return te.compute(tensor.shape, lambda *index: tirx.reinterpret(str(to), tensor(*index)), "bit_cast")

    return emitter.builder.emit_te(kernel, data, primfunc_name_hint="bit_cast")


@converts("Dropout")
def _dropout(emitter: Emitter, node: Node) -> tuple[Value, ...]:
    """The operand as it is, and a mask of ones: nothing is dropped when a model is not trained."""
    data = node.input(0)
    training = node.input(2) if node.opset >= 12 else None
    if isinstance(training, np.ndarray) and training.reshape(-1)[0]:
        ratio = node.input(1)
        if not isinstance(ratio, np.ndarray) or ratio.reshape(-1)[0]:
            raise UnsupportedError(f"{emitter.importer.called(node)}: {_DROPS}")
    elif isinstance(training, relax.Expr):
        data = _unless_training(emitter, node, training)
    if len(node.outputs) < 2 or not node.outputs[1]:
        return (data,)
    dtype = "bool" if node.opset >= 10 else dtype_of(data)
    shape = relax.ShapeExpr([expression(dim) for dim in emitter.shape(data)])
    return data, emitter.emit(relax.op.full(shape, constant(1, dtype)))


def _unless_training(emitter: Emitter, node: Node, training: relax.Expr) -> relax.Expr:
    """The operand, behind a check that has the model stop where it is told to drop elements."""
    ratio = node.input(1)
    drops = emitter.emit(relax.op.astype(training, "int64"))
    if ratio is not None:
        some = relax.op.not_equal(emitter.tensor(ratio), constant(0, dtype_of(ratio)))
        drops = emitter.emit(relax.op.multiply(drops, relax.op.astype(some, "int64")))
    (found,) = emitter.dims(emitter.emit(relax.op.reshape(drops, [1])))
    words = f"{emitter.importer.called(node)}: {_DROPS}"
    met = tirx.EQ(expression(found), tirx.const(0, "int64"))
    return demanded(emitter, node.input(0), Demand(met, words, "UnsupportedError"))


@converts("SpaceToDepth")
def _space_to_depth(emitter: Emitter, node: Node) -> Value:
    """Blocks as channels before or behind those of the image."""
    data = emitter.tensor(node.input(0))
    block = int(node.attributes["blocksize"])
    n, c, *image = emitter.shape(data)
    _check_blocks(emitter, node, {2 + at: (dim, block) for at, dim in enumerate(image)})
    h, w = (divided(dim, block) for dim in image)
    parts = emitter.viewed(data, [n, c, h, block, w, block])
    order = [0, 3, 5, 1, 2, 4] if node.text("mode", "DCR") == "DCR" else [0, 1, 3, 5, 2, 4]
    moved = emitter.emit(relax.op.permute_dims(parts, order))
    return emitter.viewed(moved, [n, product([c, block * block]), h, w])


@converts("DepthToSpace")
def _depth_to_space(emitter: Emitter, node: Node) -> Value:
    """Behind a check of the channels."""
    block = int(node.attributes["blocksize"])
    _check_blocks(emitter, node, {1: (emitter.shape(node.input(0))[1], block * block)})
    raise NotTaken


def _check_blocks(emitter: Emitter, node: Node, axes: Mapping[int, tuple[Dim, int]]) -> None:
    """Demands of dimensions, by their axes, that they are multiples of numbers."""
    for axis, (dim, number) in axes.items():
        words = f"axis {axis} has {text_of(dim)} elements; expected a multiple of {number}"
        words = f"{emitter.importer.called(node)}: {words}; mend the input's shape"
        met_aside(emitter, *multiple_of(dim, number, words))


@converts("Softplus")
def _softplus(emitter: Emitter, node: Node) -> Value:
    """As one operator: TVM's importer writes out a logarithm that has no digits of what is small."""
    data = emitter.tensor(node.input(0))
    threshold = 40.0 if dtype_of(data) == "float64" else 20.0  # from here on it is its operand
    return emitter.emit(relax.op.nn.softplus(data, 1.0, threshold))
