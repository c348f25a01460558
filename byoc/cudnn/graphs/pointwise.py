"""Elementwise steps, and the post-ops of others, as pointwise nodes.

eltwise x -> y,  binary x, x1 -> y,  each with a chain of post-ops behind it
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from tvm_mxplan.core.program import program as ir
from tvm_mxplan.errors import UnsupportedError

from .tensors import GraphBuilder, Ints

_BINARY = {
    "add": "ADD",
    "sub": "SUB",
    "mul": "MUL",
    "div": "DIV",
    "max": "MAX",
    "min": "MIN",
    "gt": "CMP_GT",
    "ge": "CMP_GE",
    "le": "CMP_LE",
}
_PLAIN = {
    "tanh": "TANH_FWD",
    "logistic": "SIGMOID_FWD",
    "gelu_erf": "GELU_FWD",
    "gelu_tanh": "GELU_APPROX_TANH_FWD",
    "exp": "EXP",
    "log": "LOG",
    "abs": "ABS",
    "sqrt": "SQRT",
    "rsqrt": "RSQRT",
    "erf": "ERF",
    "floor": "FLOOR",
    "ceil": "CEIL",
    "negative": "NEG",
}
_Nodes = Callable[[GraphBuilder, int, float, float], int]


def _relu(b: GraphBuilder, x: int, alpha: float, _beta: float) -> int:
    return b.pointwise("RELU_FWD", x, slope=alpha) if alpha else b.pointwise("RELU_FWD", x)


def _clip(b: GraphBuilder, x: int, low: float, high: float) -> int:
    # A ReLU with a bound of its own would leave products the slowest engine alone.
    if low == 0.0:
        x = b.pointwise("RELU_FWD", x)
    elif not math.isinf(low):
        x = b.pointwise("MAX", x, b.number(low))
    return x if math.isinf(high) else b.pointwise("MIN", x, b.number(high))


def _linear(b: GraphBuilder, x: int, alpha: float, beta: float) -> int:
    if alpha != 1.0 or beta == 0.0:
        x = b.pointwise("MUL", x, b.number(alpha))
    return b.pointwise("ADD", x, b.number(beta)) if beta else x


def _hardsigmoid(b: GraphBuilder, x: int, alpha: float, beta: float) -> int:
    return _clip(b, _linear(b, x, alpha, beta), 0.0, 1.0)


def _mish(b: GraphBuilder, x: int, _alpha: float, _beta: float) -> int:
    return b.pointwise("MUL", x, b.pointwise("TANH_FWD", b.pointwise("SOFTPLUS_FWD", x, softplus_beta=1.0)))


_NODES: dict[str, _Nodes] = {
    "relu": _relu,
    "clip_v2": _clip,
    "linear": _linear,
    "elu": lambda b, x, alpha, _: b.pointwise("ELU_FWD", x, elu_alpha=alpha),
    "swish": lambda b, x, alpha, _: b.pointwise("SWISH_FWD", x, swish_beta=alpha),
    "soft_relu": lambda b, x, alpha, _: b.pointwise("SOFTPLUS_FWD", x, softplus_beta=alpha),
    "square": lambda b, x, _alpha, _beta: b.pointwise("MUL", x, x),
    "pow": lambda b, x, alpha, beta: b.pointwise("POW", _scaled(b, x, alpha), b.number(beta)),
    "hardsigmoid": _hardsigmoid,
    "hardswish": lambda b, x, alpha, beta: b.pointwise("MUL", x, _hardsigmoid(b, x, alpha, beta)),
    "mish": _mish,
}


def _scaled(b: GraphBuilder, x: int, alpha: float) -> int:
    return x if alpha == 1.0 else b.pointwise("MUL", x, b.number(alpha))


def is_known(attrs: ir.Eltwise | ir.EltwisePostOp) -> bool:
    """Whether an elementwise function has nodes."""
    return attrs.algorithm in _PLAIN or attrs.algorithm in _NODES


def function(b: GraphBuilder, x: int, attrs: ir.Eltwise | ir.EltwisePostOp) -> int:
    """An elementwise function of ``x``."""
    if attrs.algorithm in _PLAIN:
        return b.pointwise(_PLAIN[attrs.algorithm], x)
    if attrs.algorithm not in _NODES:
        raise UnsupportedError(f"cuDNN has no elementwise {attrs.algorithm}")
    return _NODES[attrs.algorithm](b, x, attrs.alpha, attrs.beta)


def behind(
    b: GraphBuilder,
    x: int,
    post_ops: tuple[ir.PostOp, ...],
    read: Callable[[int], int],
    own: Mapping[str, Callable[[GraphBuilder, int], int]] | None = None,
) -> int:
    """The post-ops applied to ``x``; ``read`` gives the tensor of a binary one by its number.

    ``own`` are functions without parameters that a product has in nodes of its own, by their names.
    """
    count = 0
    for post_op in post_ops:
        if isinstance(post_op, ir.EltwisePostOp) and own and post_op.algorithm in own and not post_op.alpha:
            x = own[post_op.algorithm](b, x)
        elif isinstance(post_op, ir.EltwisePostOp):
            x = function(b, x, post_op)
        elif isinstance(post_op, ir.BinaryPostOp):
            x = b.pointwise(_BINARY[post_op.algorithm], x, read(count))
            count += 1
        else:
            raise UnsupportedError("a post-op that is none of cuDNN's")
    return x


def binaries(post_ops: tuple[ir.PostOp, ...]) -> int:
    """Counts the post-ops that read another tensor."""
    return sum(isinstance(post_op, ir.BinaryPostOp) for post_op in post_ops)


def eltwise(b: GraphBuilder, attrs: ir.Eltwise) -> dict[str, Any]:
    return _elementwise(b, ["src"], lambda x, _: function(b, x, attrs))


def binary(b: GraphBuilder, attrs: ir.Binary) -> dict[str, Any]:
    mode = _BINARY[attrs.algorithm]
    return _elementwise(b, ["src", "src1"], lambda x, x1: b.pointwise(mode, x, x1))


def _elementwise(b: GraphBuilder, roles: list[str], function_of: Callable[[int, int], int]) -> dict[str, Any]:
    """One function and the post-ops behind it, on tensors seen with as few axes as do."""
    post_ops = b.step.post_ops
    places = [b.place(role) for role in roles] + [b.post_op(at) for at in range(binaries(post_ops))]
    seen = _merged(b, [*places, b.dst]) or [(b.shape(place), b.strides(place)) for place in [*places, b.dst]]
    *read, (shape, strides) = seen
    b.results(shape, strides)
    tensors = [b.stored(place, *one) for place, one in zip(places, read, strict=True)]
    x = function_of(tensors[0], tensors[len(roles) - 1])
    behind(b, x, post_ops, lambda at: tensors[len(roles) + at])
    return b.request(shape, strides)


_Seen = tuple[Ints, Ints]
"""Shape and strides."""
_MOST_AXES = 3
"""Of tensors some of which are broadcast: cuDNN has engines for every such triple, and few beyond."""


def _merged(b: GraphBuilder, places: list[int]) -> list[_Seen] | None:
    """The tensors with neighbouring axes as one where all have them, or are broadcast along them, alike.

    The last tensor is the result, whose order all have to share.  One plan then does for a function in every
    layout.  None where more axes are left than engines take.
    """
    shape, strides = b.shape(places[-1]), b.strides(places[-1])
    axes = [axis for axis in sorted(range(len(shape)), key=lambda at: -strides[at]) if shape[axis] > 1]
    merged: list[list[int]] = [[] for _ in places]
    before: list[bool] = []
    for axis in axes:
        whole = [b.shape(place)[axis] > 1 for place in places]
        for extents, place in zip(merged, places, strict=True):
            if whole == before:
                extents[-1] *= b.shape(place)[axis]
            else:
                extents.append(b.shape(place)[axis])
        before = whole
    if any(not _is_packed(b, place, axes) for place in places):
        return None
    if len(merged[-1]) < 2 and all(extents == merged[-1] for extents in merged):
        elements = math.prod(shape)
        return [((1, elements, 1, 1), (elements, 1, elements, elements))] * len(places)
    if len(merged[-1]) > _MOST_AXES:
        return None
    return [_of_three(extents) for extents in merged]


def _is_packed(b: GraphBuilder, place: int, axes: list[int]) -> bool:
    """Whether a tensor is stored without gaps in the order of ``axes``."""
    step = 1
    for axis in reversed(axes):
        extent = b.shape(place)[axis]
        if extent > 1 and b.strides(place)[axis] != step:
            return False
        step *= extent
    return True


def _of_three(extents: list[int]) -> _Seen:
    first, second, third = (1,) * (_MOST_AXES - len(extents)) + tuple(extents)
    return (first, second, third), (second * third, third, 1)
