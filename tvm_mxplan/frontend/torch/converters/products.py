"""Products of matrices, with elements of the operands' type; TVM's converters ask for float32 always.

Distances between rows, which TVM lacks, stand beside them.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from tvm import relax

from ....errors import UnsupportedError
from ..node import Emitter, Node, dims_of
from .images.groups import convolved_by_groups
from .table import converts


@converts("mm.default", "bmm.default", "matmul.default", "mv.default", "dot.default")
def _product(emitter: Emitter, node: Node) -> relax.Expr:
    left, right = list(node.operands.values())[:2]
    return emitter.emit(relax.op.matmul(left, right))


@converts("linear.default")
def _linear(emitter: Emitter, node: Node) -> relax.Expr:
    axes = [1, 0] if len(dims_of(node["weight"])) == 2 else None
    weights = emitter.emit(relax.op.permute_dims(node["weight"], axes))
    result = emitter.emit(relax.op.matmul(node["input"], weights))
    return result if node["bias"] is None else emitter.emit(relax.op.add(result, node["bias"]))


@converts("addmm.default", "addmv.default", "baddbmm.default", "addbmm.default")
def _sum_with_product(emitter: Emitter, node: Node) -> relax.Expr:
    left, right = list(node.operands.values())[1:3]
    result = _scaled(emitter, emitter.emit(relax.op.matmul(left, right)), node["alpha"], node)
    if node.operator == "aten.addbmm.default":
        result = emitter.emit(relax.op.sum(result, 0))
    if node["beta"] == 0:  # the operand is not even read: its NaNs do not count
        return result
    return emitter.emit(relax.op.add(result, _scaled(emitter, node["self"], node["beta"], node)))


def _scaled(emitter: Emitter, tensor: relax.Expr, factor: Any, node: Node) -> relax.Expr:
    if isinstance(factor, int | float) and factor == 1:
        return tensor
    return emitter.emit(relax.op.multiply(tensor, emitter.scalar(factor, node.result.dtype)))


@converts("_cdist_forward.default")
def _distances(emitter: Emitter, node: Node) -> relax.Expr:
    """Distances between all rows of two tensors, from their differences."""
    left = emitter.emit(relax.op.expand_dims(node["x1"], -2))
    right = emitter.emit(relax.op.expand_dims(node["x2"], -3))
    return _norms(emitter, node, left, right)


@converts("_pdist_forward.default")
def _pairwise(emitter: Emitter, node: Node) -> relax.Expr:
    """Distances between each row and those behind it."""
    rows = dims_of(node["self"])[0]
    if not isinstance(rows, int):
        raise UnsupportedError("pairs of rows whose number varies; expected one that is a number")
    pairs = np.triu_indices(rows, 1)
    sides = (relax.op.take(node["self"], relax.const(side.astype("int64"), "int64"), 0) for side in pairs)
    return _norms(emitter, node, *map(emitter.emit, sides))


def _norms(emitter: Emitter, node: Node, left: relax.Expr, right: relax.Expr) -> relax.Expr:
    """The norms of differences along the last axis."""
    apart = emitter.emit(relax.op.abs(emitter.emit(relax.op.subtract(left, right))))
    power = float(node["p"])
    if power == math.inf:
        return emitter.emit(relax.op.max(apart, -1))
    dtype = node.result.dtype
    if power == 0:
        unequal = emitter.emit(relax.op.not_equal(apart, relax.const(0, dtype)))
        return emitter.emit(relax.op.sum(emitter.cast(unequal, dtype), -1))
    if power == 1:
        return emitter.emit(relax.op.sum(apart, -1))
    if power == 2:
        squares = emitter.emit(relax.op.sum(emitter.emit(relax.op.multiply(apart, apart)), -1))
        return emitter.emit(relax.op.sqrt(squares))
    powers = emitter.emit(relax.op.power(apart, relax.const(power, dtype)))
    return emitter.emit(relax.op.power(emitter.emit(relax.op.sum(powers, -1)), relax.const(1 / power, dtype)))


_TRANSPOSED = {
    3: relax.op.nn.conv1d_transpose,
    4: relax.op.nn.conv2d_transpose,
    5: relax.op.nn.conv3d_transpose,
}
_LAYOUTS = {3: ("NCW", "IOW", "OIW"), 4: ("NCHW", "IOHW", "OIHW"), 5: ("NCDHW", "IODHW", "OIDHW")}
_CONVOLUTIONS = {3: relax.op.nn.conv1d, 4: relax.op.nn.conv2d, 5: relax.op.nn.conv3d}


@converts("convolution.default")
def _convolution(emitter: Emitter, node: Node) -> relax.Expr:
    source, weight = node["input"], node["weight"]
    rank = len(dims_of(source))
    axes = rank - 2
    strides, padding, dilation, more = (
        list(node[name]) * (axes if len(node[name]) == 1 else 1)
        for name in ("stride", "padding", "dilation", "output_padding")
    )
    layout, transposed, forward = _LAYOUTS[rank]
    both = [*padding, *padding]
    beyond = [0] * axes
    if not isinstance(node["groups"], int):
        found = convolved_by_groups(emitter, node, strides, padding, dilation)
    elif node["transposed"]:
        if any(extra >= stride for extra, stride in zip(more, strides, strict=True)):
            # Results that no operator has room for are cropped less, and zeros stand behind what there is.
            beyond = [max(extra - pad, 0) for extra, pad in zip(more, padding, strict=True)]
            both = [*padding, *(max(pad - extra, 0) for extra, pad in zip(more, padding, strict=True))]
            more = [0] * axes
        found = _TRANSPOSED[rank](
            source, weight, strides, both, more, dilation, node["groups"], layout, transposed
        )
    else:
        found = _CONVOLUTIONS[rank](source, weight, strides, both, dilation, node["groups"], layout, forward)
    found = emitter.emit(found)
    if any(beyond):
        widths = [0, 0, 0, 0, *(width for extra in beyond for width in (0, extra))]
        found = emitter.emit(relax.op.nn.pad(found, widths, "constant", 0.0))
    if node["bias"] is None:
        return found
    bias = emitter.reshaped(node["bias"], [1, dims_of(node["bias"])[0], *[1] * axes])
    return emitter.emit(relax.op.add(found, bias))


@converts("_trilinear.default")
def _trilinear(emitter: Emitter, node: Node) -> relax.Expr:
    """The product of three operands, each without some axes of the whole, summed over axes of it."""
    rank = max(len(dims_of(node[f"i{at}"])) + len(node[f"expand{at}"]) for at in (1, 2, 3))
    whole = [chr(ord("a") + axis) for axis in range(rank)]
    letters = [
        "".join(letter for axis, letter in enumerate(whole) if axis not in node[f"expand{at}"])
        for at in (1, 2, 3)
    ]
    summed = {whole[axis] for axis in node["sumdim"]}
    left, right, last = letters[0], letters[2], letters[1]
    between = "".join(sorted((set(left) | set(right)) - (summed - set(last))))
    result = "".join(sorted(set("".join(letters)) - summed))
    found = emitter.emit(relax.op.einsum([node["i1"], node["i3"]], f"{left},{right}->{between}"))
    return emitter.emit(relax.op.einsum([found, node["i2"]], f"{between},{last}->{result}"))
