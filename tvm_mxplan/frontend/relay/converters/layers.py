"""Convolutions, normalisations and what stands beside them in networks."""

from __future__ import annotations

import numpy as np
from tvm import relax

from ...constants import constant
from ..node import Node, Value, dtype_of
from .layouts import PLAIN, padding, reordered
from .table import converts


@converts("nn.conv1d", "nn.conv2d", "nn.conv3d")
def _convolution(node: Node) -> Value:
    return _any_convolution(node, transposed=False)


@converts("nn.conv1d_transpose", "nn.conv2d_transpose", "nn.conv3d_transpose")
def _deconvolution(node: Node) -> Value:
    return _any_convolution(node, transposed=True)


def _any_convolution(node: Node, *, transposed: bool) -> Value:
    """Channels first, whatever layouts are stated: libraries take that, and transposes are planned away."""
    rank = int(node.operator.removesuffix("_transpose")[-2])
    plain = PLAIN[rank]
    stated, kernel = node.text("data_layout"), ("IO" if transposed else "OI") + plain[2:]
    src = reordered(node, node.tensor(0), stated, plain)
    weights = reordered(node, node.tensor(1), node.text("kernel_layout"), kernel)
    if node.rank(src) != rank + 2 or node.rank(weights) != rank + 2:
        node.wrong(f"expected operands of rank {rank + 2}, got {node.rank(src)} and {node.rank(weights)}")
    if node.dtype("out_dtype", dtype_of(src)) != dtype_of(src):
        node.unsupported(
            f"results of {node.text('out_dtype')} from {dtype_of(src)}; expected one element type"
        )
    name = f"conv{rank}d_transpose" if transposed else f"conv{rank}d"
    more = {"output_padding": node.each("output_padding", rank)} if transposed else {}
    dst = getattr(relax.op.nn, name)(
        src,
        weights,
        strides=node.each("strides", rank),
        padding=padding(node, rank),
        dilation=node.each("dilation", rank),
        groups=node.integer("groups"),
        data_layout=plain,
        kernel_layout=kernel,
        **more,
    )
    return reordered(node, node.emit(dst), plain, node.text("out_layout") or stated)


@converts("nn.bias_add")
def _bias_add(node: Node) -> Value:
    src, bias = node.tensor(0), node.tensor(1)
    rank = node.rank(src)
    behind = rank - 1 - node.axis("axis", rank)
    if behind:
        bias = node.emit(relax.op.reshape(bias, [*node.shape(bias), *[1] * behind]))
    return relax.op.add(src, bias)


@converts("nn.batch_norm")
def _batch_norm(node: Node) -> Value:
    src = node.tensor(0)
    result = node.emit(
        relax.op.nn.batch_norm(
            *(node.tensor(index) for index in range(5)),
            axis=node.axis("axis", node.rank(src)),
            epsilon=node.number("epsilon"),
            center=node.flag("center"),
            scale=node.flag("scale"),
            training=False,
        )
    )
    return [node.emit(relax.TupleGetItem(result, index)) for index in range(3)]


@converts("nn.layer_norm")
def _layer_norm(node: Node) -> Value:
    src = node.tensor(0)
    axis = node.axis("axis", node.rank(src))
    gamma, beta = _factors(node)
    return relax.op.nn.layer_norm(src, gamma, beta, [axis], node.number("epsilon"))


@converts("nn.instance_norm")
def _instance_norm(node: Node) -> Value:
    src = node.tensor(0)
    rank = node.rank(src)
    channels = node.axis("axis", rank)
    axes = [axis for axis in range(1, rank) if axis != channels]
    gamma, beta = _factors(node)
    return relax.op.nn.instance_norm(src, gamma, beta, channels, axes, node.number("epsilon"))


@converts("nn.group_norm")
def _group_norm(node: Node) -> Value:
    src = node.tensor(0)
    rank = node.rank(src)
    channels = node.axis("axis", rank)
    axes = [axis for axis in range(1, rank) if axis != channels]
    gamma, beta = _factors(node)
    if node.integer("num_groups") < 1:
        node.wrong(f"num_groups = {node.integer('num_groups')}; expected a number from 1 on")
    return relax.op.nn.group_norm(
        src, gamma, beta, node.integer("num_groups"), channels, axes, node.number("epsilon")
    )


def _factors(node: Node) -> tuple[relax.Expr, relax.Expr]:
    """Scale and shift, 1 and 0 where the attributes leave them out."""
    gamma, beta = node.tensor(1), node.tensor(2)
    if not node.flag("scale"):
        gamma = node.emit(relax.op.ones_like(gamma))
    if not node.flag("center"):
        beta = node.emit(relax.op.zeros_like(beta))
    return gamma, beta


@converts("nn.lrn")
def _lrn(node: Node) -> Value:
    """x / (bias + alpha * mean of squares nearby) ** beta, as a pooling over a window of channels."""
    src = node.tensor(0)
    rank, size = node.rank(src), node.integer("size")
    axis = node.axis("axis", rank)
    if size < 1 or not size % 2:
        node.wrong(f"size = {size}; expected an odd number from 1 on")
    if rank != 4:
        node.unsupported(f"an operand of rank {rank}; expected 4")
    order = [0, axis, *(one for one in range(1, rank) if one != axis)]
    squares = node.emit(relax.op.multiply(src, src))
    if order != list(range(rank)):
        squares = node.emit(relax.op.permute_dims(squares, order))
    window = node.emit(relax.op.expand_dims(squares, [1]))
    before = size // 2
    mean = node.emit(
        relax.op.nn.avg_pool3d(
            window,
            pool_size=(size, 1, 1),
            strides=(1, 1, 1),
            padding=(before, 0, 0, before, 0, 0),
            dilation=(1, 1, 1),
            count_include_pad=True,
        )
    )
    mean = node.emit(relax.op.squeeze(mean, [1]))
    if order != list(range(rank)):
        mean = node.emit(relax.op.permute_dims(mean, [order.index(one) for one in range(rank)]))
    scaled = node.emit(relax.op.multiply(mean, node.like(node.number("alpha"), src)))
    shifted = node.emit(relax.op.add(scaled, node.like(node.number("bias"), src)))
    return relax.op.divide(src, node.emit(relax.op.power(shifted, node.like(node.number("beta"), src))))


@converts("nn.l2_normalize")
def _l2_normalize(node: Node) -> Value:
    src = node.tensor(0)
    squares = node.emit(relax.op.multiply(src, src))
    total = node.emit(relax.op.sum(squares, node.ints("axis"), keepdims=True))
    least = node.emit(relax.op.maximum(total, node.like(node.number("eps"), src)))
    return relax.op.divide(src, node.emit(relax.op.sqrt(least)))


@converts("nn.softmax", "nn.fast_softmax")
def _softmax(node: Node) -> Value:
    return relax.op.nn.softmax(node.tensor(0), node.axis("axis", node.rank(node.tensor(0))))


@converts("nn.log_softmax")
def _log_softmax(node: Node) -> Value:
    return relax.op.nn.log_softmax(node.tensor(0), node.axis("axis", node.rank(node.tensor(0))))


_PADS = {"constant": "constant", "edge": "replicate", "reflect": "reflect"}


@converts("nn.pad")
def _pad(node: Node) -> Value:
    value = node.known(node.args[1]) if len(node.args) > 1 else np.zeros(())
    mode = node.text("pad_mode")
    if mode not in _PADS:
        node.wrong(f"pad_mode = {mode!r}; expected {', '.join(_PADS)}")
    if value is None or value.size != 1:
        node.unsupported("a value for the pads that is computed; expected a constant")
    return relax.op.nn.pad(node.tensor(0), _widths(node), _PADS[mode], float(value.reshape(-1)[0]))


@converts("nn.mirror_pad")
def _mirror_pad(node: Node) -> Value:
    if node.text("mode") != "REFLECT":
        node.unsupported(f"mode = {node.text('mode')!r}; expected REFLECT")
    return relax.op.nn.pad(node.tensor(0), _widths(node), "reflect")


def _widths(node: Node) -> list[int]:
    """Before and behind each axis, one after the other."""
    pairs, rank = node.attribute("pad_width"), node.rank(node.tensor(0))
    fits = isinstance(pairs, list) and len(pairs) == rank
    if not fits or not all(isinstance(pair, list) and len(pair) == 2 for pair in pairs):
        node.wrong(f"expected a pair of numbers for each of {rank} axes as pad_width, got {pairs!r}")
    numbers = [number for pair in pairs for number in pair]
    if not all(isinstance(number, int) and 0 <= number < 1 << 31 for number in numbers):
        node.wrong(f"expected numbers from 0 to 2^31 as pad_width, got {pairs!r}")
    return numbers


_MOST_CLASSES = 1 << 24


@converts("one_hot")
def _one_hot(node: Node) -> Value:
    indices = node.tensor(0)
    depth, rank = node.integer("depth"), node.rank(indices)
    axis = node.integer("axis")
    axis = rank if axis == -1 else axis
    if not 0 <= axis <= rank or not 0 <= depth <= _MOST_CLASSES:
        node.wrong(f"depth {depth} at axis {axis}; expected 0 to {_MOST_CLASSES:,}, and an axis up to {rank}")
    numbers = np.arange(depth, dtype=dtype_of(indices))
    spread = node.emit(relax.op.expand_dims(indices, [axis]))
    shape = [1] * (rank + 1)
    shape[axis] = depth
    chosen = node.emit(relax.op.equal(spread, constant(numbers.reshape(shape))))
    return relax.op.where(chosen, node.tensor(1), node.tensor(2))
