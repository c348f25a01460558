"""Products of two tensors, and attention as two of them around a softmax.

In 16 bits attention is one step.  It is its parts in float32, which cuDNN's attention does not take, and
where a row may see nothing and is to be 0: what cuDNN's attention gives for scores that all are infinities
below, it does not say.  The parts give 0:

    bounded = max(scores, least)                        the least finite number: their softmax is no NaN
    weights = softmax(bounded) * (scores >= least)      by 1 or 0: what is hidden weighs nothing

Queries and keys are taken to be numbers: a model that turns each NaN behind its softmax into 0 hides those of
such operands as well.
"""

from __future__ import annotations

import math
from dataclasses import replace

import ml_dtypes
import numpy as np

from tvm_mxplan.byoc.composite import Composite
from tvm_mxplan.core.element_types import item_bytes, numpy_type
from tvm_mxplan.core.layout.layout import parse_layout, plain_layout, same_bytes
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.core.program.dims import static_shape
from tvm_mxplan.errors import UnsupportedError
from tvm_mxplan.operators.attention import Attention, attention_of
from tvm_mxplan.passes.relax_types import constant_of, dtype_of, static_shape_of

from ..graphs.products import batch_stride
from ..products import in_groups

_ALIGNED = 16
"""Bytes at whose multiples engines take tensors to begin."""


class Products:
    """Products of two tensors, src [..., M, K] x weights [..., K, N] -> [..., M, N].

    ``exact``: float32 is not rounded to TF32.  cuDNN multiplies in convolutions alone then, which want the
    rows of src and dst in front of several batches (``in_groups``).
    """

    def __init__(self, exact: bool) -> None:
        self._exact = exact

    def matmul(self, c: Composite) -> int:
        src, weights = (c.builder.align(c.value(arg), len(c.shape)) for arg in c.root.args)
        order = self._order(c, weights)
        return _back(c, self._multiply(c, c.builder.permute(src, order), weights), order)

    def attention(self, c: Composite) -> int:
        kind = attention_of(c.root)
        roles = ("src", "key", "value", "mask")
        operands = [(role, c.value(arg)) for role, arg in zip(roles, c.root.args, strict=False)]
        kind = replace(kind, nan_is_zero=kind.nan_is_zero and _may_hide_all(c, kind))
        if dtype_of(c.result) == "float32" or kind.nan_is_zero:
            return self._attention_parts(c, kind, dict(operands))
        # Heads stand in front of rows in operands, behind them in the result, as all that follows wants it.
        batch, heads, rows, width = c.shape
        dst = c.builder.step("attention", kind, (batch, rows, heads, width), operands, dtype_of(c.result))
        return c.builder.permute(dst, (0, 2, 1, 3))

    def _attention_parts(self, c: Composite, kind: Attention, operands: dict[str, int]) -> int:
        """Scores, their scale, masks and softmax, and the product with values."""
        dtype = dtype_of(c.result)
        heads, rows, _ = static_shape(c.shape)[1:]
        key, value = (_of_each_head(c, operands[role], heads) for role in ("key", "value"))
        columns = static_shape(c.builder.values[key].shape)[2]
        if kind.causal == "last" and rows > columns and not kind.nan_is_zero:
            raise UnsupportedError("attention whose rows may see nothing: a softmax of nothing is NaN")
        order = self._order(c, key)

        def step(
            name: str, attrs: ir.Attributes, *reads: tuple[str, int], behind: tuple[ir.PostOp, ...] = ()
        ) -> int:
            shape = c.builder.values[reads[0][1]].shape
            return c.builder.step(name, attrs, shape, list(reads), dtype, behind)

        turned = c.builder.permute(key, (0, 1, 3, 2))
        scores = self._multiply(c, c.builder.permute(operands["src"], order), turned)
        scores = step("eltwise", ir.Eltwise("linear", kind.scale, 0.0), ("src", scores))
        masks = [c.builder.align(operands["mask"], 4)] if "mask" in operands else []
        if kind.causal != "no":
            masks.append(c.builder.constant(_causal_mask(rows, columns, kind.causal, dtype)))
        for mask in masks:
            scores = step("binary", ir.Binary("add"), ("src", scores), ("src1", _stored(c, mask, order)))
        if not kind.nan_is_zero:
            weights = step("softmax", ir.Softmax("softmax", 3), ("src", scores))
        else:
            least = _least(dtype)
            bounded = step("eltwise", ir.Eltwise("clip_v2", float(least), math.inf), ("src", scores))
            weights = step("softmax", ir.Softmax("softmax", 3), ("src", bounded))
            bound = c.builder.constant(np.full((1, 1, 1, 1), least))
            seen = (("src", scores), ("src1", bound))
            weights = step("gate", ir.Binary("ge"), *seen, behind=(ir.BinaryPostOp("mul", weights),))
        return _back(c, self._multiply(c, weights, value), order)

    def _order(self, c: Composite, weights: int) -> tuple[int, ...]:
        """The axes of src and dst as ``_multiply`` wants them."""
        axes = tuple(range(len(c.shape)))
        batches = math.prod(static_shape(c.builder.values[weights].shape)[:-2])
        return (axes[-2], *axes[:-2], axes[-1]) if self._in_groups(c) and batches > 1 else axes

    def _multiply(self, c: Composite, src: int, weights: int) -> int:
        if self._in_groups(c):
            return in_groups(c, src, weights)
        source, factor = (static_shape(c.builder.values[number].shape) for number in (src, weights))
        batches = np.broadcast_shapes(source[:-2], factor[:-2])
        shape = (*batches, source[-2], factor[-1])
        operands = [("src", _in_one_row(c, src)), ("weights", _in_one_row(c, weights))]
        return c.builder.step("matmul", ir.MatMul(), shape, operands, dtype_of(c.result))

    def _in_groups(self, c: Composite) -> bool:
        return self._exact and dtype_of(c.result) == "float32"


def _in_one_row(c: Composite, value: int) -> int:
    """Matrices one behind the other, as cuDNN knows one dimension of batches: a copy where they are not."""
    told = c.builder.values[value]
    shape = static_shape(told.shape)
    stand_so = batch_stride(shape, parse_layout(told.layout).strides(shape)) is not None
    return value if stand_so else c.builder.plain_copy(value)


def _of_each_head(c: Composite, value: int, heads: int) -> int:
    """Keys or values [N, G, T, D] for each head, H / G in a row the same."""
    batch, groups, rows, width = static_shape(c.builder.values[value].shape)
    if groups == heads:
        return value
    dtype = c.builder.values[value].dtype
    if rows * width * item_bytes(dtype) % _ALIGNED:
        raise UnsupportedError(f"attention of {heads} heads to {groups} heads of {rows}x{width} numbers")
    times = heads // groups
    one = c.builder.reshape(value, (batch, groups, 1, rows, width))
    shape = (batch, groups, times, rows, width)
    whole = c.builder.step("concat", ir.Concat(2), shape, [("src", one)] * times, dtype)
    return c.builder.reshape(whole, (batch, heads, rows, width))


def _stored(c: Composite, value: int, order: tuple[int, ...]) -> int:
    """A value with its axes in another order, stored so."""
    found = c.builder.permute(value, order)
    seen = c.builder.values[found]
    if same_bytes(seen.layout, plain_layout(len(order)), seen.shape):
        return c.builder.reshape(value, seen.shape)
    return c.builder.plain_copy(found)


def _back(c: Composite, value: int, order: tuple[int, ...]) -> int:
    """A value whose axes are in another order as it was."""
    return c.builder.permute(value, [order.index(axis) for axis in range(len(order))])


def _may_hide_all(c: Composite, kind: Attention) -> bool:
    """Whether a row may see nothing: unless no mask, or one of constants, leaves it a column."""
    rows, columns = static_shape(c.shape)[2], static_shape_of(c.root.args[1])[2]
    seen = np.ones((1, 1, rows, columns), bool)
    if kind.causal != "no":
        seen = np.isfinite(_causal_mask(rows, columns, kind.causal, "float32"))
    if len(c.root.args) > 3:
        mask = constant_of(c.definition(c.root.args[3]))
        if mask is None:
            return True
        seen = seen & np.isfinite(mask.astype("float32"))
    return not seen.any(axis=-1).all()


def _causal_mask(rows: int, columns: int, causal: str, dtype: str) -> np.ndarray:
    """Zero where a row sees a column, else an infinity below."""
    last = np.arange(rows) + (columns - rows if causal == "last" else 0)
    hidden = np.arange(columns) > last[:, None]
    return np.where(hidden, -np.inf, 0.0).astype(numpy_type(dtype))[None, None]


def _least(dtype: str) -> np.generic:
    """The least finite number of a type."""
    return ml_dtypes.finfo(numpy_type(dtype)).min
