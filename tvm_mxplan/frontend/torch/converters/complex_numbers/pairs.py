"""Arithmetic of complex numbers, and movements of tensors that hold them.

A complex tensor [a, b] is one of real numbers, [a, b, 2]: real parts, imaginary parts. ``Node.complex`` names
the operands that are such pairs; where a real one meets them, its imaginary part is zero.
"""

from __future__ import annotations

from typing import Any

from tvm import relax

from .....errors import UnsupportedError
from ....onnx.dimensions.dims import Dim
from ...node import Emitter, Node, dims_of, dtype_of, is_tensor
from ..activations import length
from ..table import converts_complex

Parts = tuple[relax.Expr, relax.Expr | None]
"""Real and imaginary parts; None for imaginary parts that are zero."""


def parts_of(emitter: Emitter, node: Node, name: str) -> Parts:
    """The parts of an operand, which may be real, or a number."""
    value = node[name]
    if name in node.complex:
        return _part(emitter, value, 0), _part(emitter, value, 1)
    if isinstance(value, complex):
        dtype = _dtype(node)
        return relax.const(value.real, dtype), relax.const(value.imag, dtype)
    return emitter.operand(value, _dtype(node)), None


def _dtype(node: Node) -> str:
    """The type of the parts."""
    return next(dtype_of(node[name]) for name in node.complex) if node.complex else node.result.dtype


def _part(emitter: Emitter, pairs: relax.Expr, which: int) -> relax.Expr:
    dims = dims_of(pairs)
    last = len(dims) - 1
    sliced = emitter.emit(relax.op.strided_slice(pairs, [last], [which], [which + 1]))
    return emitter.reshaped(sliced, dims[:-1])


def pair(emitter: Emitter, real: relax.Expr, imaginary: relax.Expr | None) -> relax.Expr:
    """A tensor of complex numbers made of its parts."""
    if imaginary is None:
        imaginary = emitter.emit(relax.op.zeros_like(real))
    real, imaginary = _alike(emitter, real, imaginary)
    return emitter.emit(relax.op.stack([real, imaginary], -1))


def _alike(emitter: Emitter, left: relax.Expr, right: relax.Expr) -> tuple[relax.Expr, relax.Expr]:
    """Both in the shape that they are broadcast to."""
    if len(dims_of(left)) == len(dims_of(right)) and dims_of(left) == dims_of(right):
        return left, right
    zero = emitter.emit(relax.op.zeros_like(left)), emitter.emit(relax.op.zeros_like(right))
    return emitter.emit(relax.op.add(left, zero[1])), emitter.emit(relax.op.add(right, zero[0]))


def _plus(emitter: Emitter, left: relax.Expr | None, right: relax.Expr | None) -> relax.Expr | None:
    if left is None or right is None:
        return left if right is None else right
    return emitter.emit(relax.op.add(left, right))


def _minus(emitter: Emitter, left: relax.Expr | None, right: relax.Expr | None) -> relax.Expr | None:
    if right is None:
        return left
    if left is None:
        return emitter.emit(relax.op.negative(right))
    return emitter.emit(relax.op.subtract(left, right))


def _multiplied(emitter: Emitter, left: Parts, right: Parts, operator: Any) -> relax.Expr:
    """(a + bi) (c + di), for a product of any kind."""

    def times(one: relax.Expr | None, other: relax.Expr | None) -> relax.Expr | None:
        return None if one is None or other is None else emitter.emit(operator(one, other))

    real = _minus(emitter, times(left[0], right[0]), times(left[1], right[1]))
    assert real is not None
    return pair(emitter, real, _plus(emitter, times(left[0], right[1]), times(left[1], right[0])))


@converts_complex("complex.default")
def _complex(emitter: Emitter, node: Node) -> relax.Expr:
    return pair(emitter, node["real"], node["imag"])


@converts_complex("polar.default")
def _polar(emitter: Emitter, node: Node) -> relax.Expr:
    angle = node["angle"]
    waves = (emitter.emit(operator(angle)) for operator in (relax.op.cos, relax.op.sin))
    real, imaginary = (emitter.emit(relax.op.multiply(node["abs"], wave)) for wave in waves)
    return pair(emitter, real, imaginary)


@converts_complex(
    "view_as_real.default",
    "view_as_complex.default",
    "clone.default",
    "alias.default",
    "contiguous.default",
    "resolve_conj.default",
    "resolve_neg.default",
)
def _same(emitter: Emitter, node: Node) -> relax.Expr:
    return next(iter(node.operands.values()))


@converts_complex("real.default", "imag.default")
def _one_part(emitter: Emitter, node: Node) -> relax.Expr:
    return _part(emitter, node["self"], int(node.operator == "aten.imag.default"))


@converts_complex("_to_copy.default")
def _converted(emitter: Emitter, node: Node) -> relax.Expr:
    """To complex numbers, or to their real parts."""
    if "self" not in node.complex:
        return pair(emitter, emitter.cast(node["self"], node.result.dtype), None)
    if len(node.result.shape) == len(dims_of(node["self"])):
        return emitter.cast(node["self"], node.result.dtype)
    return emitter.cast(_part(emitter, node["self"], 0), node.result.dtype)


@converts_complex("_conj.default", "conj_physical.default")
def _conjugate(emitter: Emitter, node: Node) -> relax.Expr:
    real, imaginary = parts_of(emitter, node, "self")
    return pair(emitter, real, _minus(emitter, None, imaginary))


@converts_complex("abs.default")
def _absolute(emitter: Emitter, node: Node) -> relax.Expr:
    real, imaginary = parts_of(emitter, node, "self")
    assert imaginary is not None
    return length(emitter, real, imaginary)


@converts_complex("angle.default")
def _angle(emitter: Emitter, node: Node) -> relax.Expr:
    real, imaginary = parts_of(emitter, node, "self")
    return emitter.emit(relax.op.atan2(imaginary, real))


@converts_complex("neg.default")
def _negative(emitter: Emitter, node: Node) -> relax.Expr:
    return emitter.emit(relax.op.negative(node["self"]))


@converts_complex("exp.default")
def _exponential(emitter: Emitter, node: Node) -> relax.Expr:
    real, imaginary = parts_of(emitter, node, "self")
    length = emitter.emit(relax.op.exp(real))
    waves = (emitter.emit(operator(imaginary)) for operator in (relax.op.cos, relax.op.sin))
    return pair(emitter, *(emitter.emit(relax.op.multiply(length, wave)) for wave in waves))


@converts_complex("add.Tensor", "add.Scalar", "sub.Tensor", "sub.Scalar", "rsub.Tensor", "rsub.Scalar")
def _sum(emitter: Emitter, node: Node) -> relax.Expr:
    if node["alpha"] != 1:
        raise UnsupportedError("a sum of complex numbers with alpha; expected alpha=1")
    left, right = (parts_of(emitter, node, name) for name in ("self", "other"))
    if ".rsub." in node.operator:
        left, right = right, left
    combine = _plus if ".add." in node.operator else _minus
    real = combine(emitter, left[0], right[0])
    assert real is not None
    return pair(emitter, real, combine(emitter, left[1], right[1]))


@converts_complex("mul.Tensor", "mul.Scalar")
def _product(emitter: Emitter, node: Node) -> relax.Expr:
    left, right = (parts_of(emitter, node, name) for name in ("self", "other"))
    return _multiplied(emitter, left, right, relax.op.multiply)


@converts_complex("div.Tensor", "div.Scalar")
def _quotient(emitter: Emitter, node: Node) -> relax.Expr:
    """By a real number, or times the inverse."""
    left, (real, imaginary) = (parts_of(emitter, node, name) for name in ("self", "other"))
    if imaginary is None:
        real_part = emitter.emit(relax.op.divide(left[0], real))
        return pair(
            emitter, real_part, None if left[1] is None else emitter.emit(relax.op.divide(left[1], real))
        )
    return _multiplied(emitter, left, _inverse(emitter, real, imaginary), relax.op.multiply)


@converts_complex("reciprocal.default")
def _reciprocal(emitter: Emitter, node: Node) -> relax.Expr:
    real, imaginary = parts_of(emitter, node, "self")
    assert imaginary is not None
    return pair(emitter, *_inverse(emitter, real, imaginary))


def _inverse(emitter: Emitter, real: relax.Expr, imaginary: relax.Expr) -> tuple[relax.Expr, relax.Expr]:
    """The conjugate over the square of the length, of parts whose squares may be beyond the type."""
    emit = emitter.emit
    most = emit(relax.op.maximum(emit(relax.op.abs(real)), emit(relax.op.abs(imaginary))))
    near = [emit(relax.op.divide(part, most)) for part in (real, imaginary)]
    square = emit(relax.op.add(*(emit(relax.op.multiply(part, part)) for part in near)))
    divisor = emit(relax.op.multiply(square, most))
    return (
        emit(relax.op.divide(near[0], divisor)),
        emit(relax.op.divide(emit(relax.op.negative(near[1])), divisor)),
    )


@converts_complex("where.self")
def _chosen(emitter: Emitter, node: Node) -> relax.Expr:
    left, right = (parts_of(emitter, node, name) for name in ("self", "other"))
    zero = relax.const(0.0, _dtype(node))
    real, imaginary = (
        emitter.emit(relax.op.where(node["condition"], *(zero if one is None else one for one in both)))
        for both in zip(left, right, strict=True)
    )
    return pair(emitter, real, imaginary)


@converts_complex("mm.default", "bmm.default", "matmul.default")
def _matrix_product(emitter: Emitter, node: Node) -> relax.Expr:
    left, right = (parts_of(emitter, node, name) for name in list(node.operands)[:2])
    return _multiplied(emitter, left, right, relax.op.matmul)


@converts_complex("sum.dim_IntList", "sum.default", "mean.dim", "mean.default")
def _reduced(emitter: Emitter, node: Node) -> relax.Expr:
    rank = len(dims_of(node["self"])) - 1
    stated = node.operands.get("dim")
    axes = [axis % rank for axis in stated] if stated else list(range(rank))
    operator = relax.op.sum if node.operator.startswith("aten.sum") else relax.op.mean
    return emitter.emit(operator(node["self"], axes, keepdims=bool(node.operands.get("keepdim"))))


@converts_complex(
    "view.default",
    "reshape.default",
    "_unsafe_view.default",
    "unsqueeze.default",
    "squeeze.default",
    "squeeze.dim",
    "squeeze.dims",
)
def _reshaped(emitter: Emitter, node: Node) -> relax.Expr:
    return emitter.reshaped(node["self"], node.result.shape)


@converts_complex("expand.default")
def _expanded(emitter: Emitter, node: Node) -> relax.Expr:
    dims = dims_of(node["self"])
    missing = len(node.result.shape) - len(dims)
    return emitter.broadcast(emitter.reshaped(node["self"], [1] * missing + dims), node.result.shape)


@converts_complex("permute.default")
def _permuted(emitter: Emitter, node: Node) -> relax.Expr:
    rank = len(node["dims"])
    return emitter.emit(relax.op.permute_dims(node["self"], [*(axis % rank for axis in node["dims"]), rank]))


@converts_complex("transpose.int")
def _transposed(emitter: Emitter, node: Node) -> relax.Expr:
    rank = len(dims_of(node["self"])) - 1
    order = list(range(rank + 1))
    first, second = node["dim0"] % rank, node["dim1"] % rank
    order[first], order[second] = order[second], order[first]
    return emitter.emit(relax.op.permute_dims(node["self"], order))


@converts_complex("flip.default")
def _flipped(emitter: Emitter, node: Node) -> relax.Expr:
    found, rank = node["self"], len(dims_of(node["self"])) - 1
    for axis in node["dims"]:
        found = emitter.emit(relax.op.flip(found, axis % rank))
    return found


@converts_complex("select.int")
def _selected(emitter: Emitter, node: Node) -> relax.Expr:
    rank = len(dims_of(node["self"])) - 1
    return emitter.emit(relax.op.take(node["self"], relax.const(node["index"], "int64"), node["dim"] % rank))


@converts_complex("index_select.default")
def _taken(emitter: Emitter, node: Node) -> relax.Expr:
    rank = len(dims_of(node["self"])) - 1
    return emitter.emit(relax.op.take(node["self"], node["index"], node["dim"] % rank))


@converts_complex("slice.Tensor")
def _sliced(emitter: Emitter, node: Node) -> relax.Expr:
    dims = dims_of(node["self"])
    axis = node["dim"] % (len(dims) - 1)
    extent = dims[axis]
    start, end = (_bound(node[name], extent, default) for name, default in (("start", 0), ("end", extent)))
    return emitter.emit(relax.op.strided_slice(node["self"], [axis], [start], [end], [node["step"]]))


def _bound(stated: Any, extent: Dim, default: Dim) -> Dim:
    if stated is None:
        return default
    if not isinstance(extent, int) or not isinstance(stated, int):
        raise UnsupportedError("a part of complex numbers whose size varies; expected a known size")
    return min(max(stated + extent if stated < 0 else stated, 0), extent)


@converts_complex("cat.default")
def _joined(emitter: Emitter, node: Node) -> relax.Expr:
    tensors = node["tensors"]
    if len({dtype_of(tensor) for tensor in tensors}) > 1 or not all(map(is_tensor, tensors)):
        raise UnsupportedError("complex numbers and others in one tensor; expected complex ones")
    return emitter.emit(relax.op.concat(tensors, node["dim"] % (len(dims_of(tensors[0])) - 1)))


@converts_complex("constant_pad_nd.default")
def _padded(emitter: Emitter, node: Node) -> relax.Expr:
    """Zeros around, or less of the tensor where the width is negative."""
    if node["value"]:
        raise UnsupportedError("complex numbers padded with other numbers than zero")
    found, widths = node["self"], node["pad"]
    rank = len(dims_of(found)) - 1
    before, after = [0] * (rank + 1), [0] * (rank + 1)
    for at in range(len(widths) // 2):
        axis, (low, high) = rank - 1 - at, widths[2 * at : 2 * at + 2]
        before[axis], after[axis] = max(low, 0), max(high, 0)
        if low < 0 or high < 0:
            extent = dims_of(found)[axis]
            end = extent + min(high, 0)
            found = emitter.emit(relax.op.strided_slice(found, [axis], [max(-low, 0)], [end]))
    if not any(before + after):
        return found
    pairs = [width for both in zip(before, after, strict=True) for width in both]
    return emitter.emit(relax.op.nn.pad(found, pairs))
