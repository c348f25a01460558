"""Operators that keep the rows of a batch apart: one table, each with what it asks and where it leaves rows.

A rule gets a call and where rows are in its operands, and gives where they are in its results; RowsMeet with
the reason where a row of a result may depend on more than the same row of operands.  Whoever is not in the
table is not known.
"""

from __future__ import annotations

from collections.abc import Sequence

import tvm
from tvm import relax, tirx

from .row_calls import Call, Placed, Rule, along, first, has_rows, kept
from .row_moves import (
    boxes,
    broadcast_to,
    filled,
    gathered,
    joined,
    padded,
    permuted,
    picked,
    repeated,
    reshaped,
    taken,
    triangle,
)
from .rows import Rows, RowsMeet, dims_of, extent, names, rows_in, shape_dims


def _broadcast(call: Call, operands: Sequence[int] | None = None) -> Placed:
    """Element by element: rows are as far from the last axis in all operands that have them."""
    numbers = range(len(call.expr.args)) if operands is None else operands
    tensors = [(at, call.one(at)) for at in numbers if isinstance(call.expr.args[at].ty, relax.TensorType)]
    ranks = {at: call.rank(at) for at, _ in tensors}
    rank = max(ranks.values())
    places = {rows.moved(rows.axis + rank - ranks[at]) for at, rows in tensors if rows is not None}
    if len(places) > 1:
        raise RowsMeet("operands with the batch in different places")
    if not places:
        return None
    (rows,) = places
    for at, found in tensors:
        axis = rows.axis - rank + ranks[at]
        if found is None and axis >= 0 and extent(dims_of(call.expr.args[at]), axis) != 1:
            raise RowsMeet("an operand with numbers for each row that is no input's")
    return rows


def _reduction(call: Call) -> Placed:
    rows = first(call)
    if not isinstance(rows, Rows):
        return None
    rank, axes = call.rank(), call.attrs.axis
    axes = range(rank) if axes is None else axes if hasattr(axes, "__len__") else [axes]
    reduced = {int(axis) % rank for axis in axes}
    kept(rows, list(reduced), rank, "it sums")
    return rows if call.attrs.keepdims else rows.moved(rows.axis - sum(one < rows.axis for one in reduced))


def _images(layout: str, out: str) -> Rule:
    """Images side by side; filters, or what stands in further operands, are the same for all."""

    def rule(call: Call) -> Placed:
        rows = first(call)
        if not isinstance(rows, Rows):
            return None
        read, written = str(getattr(call.attrs, layout)), str(getattr(call.attrs, out, "") or "")
        if read.find("N") != rows.axis or any(one.isdigit() for one in read):
            raise RowsMeet(f"images {read} with the batch in dimension {rows.axis}")
        return rows.moved((written or read).find("N"))

    return rule


def _norm(call: Call) -> Placed:
    """A norm whose statistics are of some axes."""
    rows = along("axes")(call)
    channel = getattr(call.attrs, "channel_axis", None)
    if isinstance(rows, Rows) and channel is not None:
        kept(rows, [channel], call.rank(), "its channels are")
    return rows


def _batch_norm(call: Call) -> Placed:
    rows = first(call)
    if isinstance(rows, Rows):
        kept(rows, [call.attrs.axis], call.rank(), "its channels are")
        if call.attrs.training:
            raise RowsMeet("its statistics are the batch's")
    return (rows, None, None)


def _dropout(call: Call) -> Placed:
    return (call.one(), call.one())


def _matmul(call: Call) -> Placed:
    left, right = call.one(0), call.one(1)
    ranks = call.rank(0), call.rank(1)
    if min(ranks) < 2:
        raise RowsMeet("a product of a vector")
    rank = max(ranks)
    found: set[Rows] = set()
    for placed, own, depth, free in ((left, ranks[0], ranks[0] - 1, -2), (right, ranks[1], ranks[1] - 2, -1)):
        if placed is None:
            continue
        if placed.axis == depth:
            raise RowsMeet("it sums over the batch")
        free_axis = rank + free
        axis = free_axis if placed.axis == own + free else placed.axis + rank - own
        found.add(placed.moved(axis))
    if len(found) > 1:
        raise RowsMeet("it multiplies each row by each")
    if not found:
        return None
    (rows,) = found
    if rows.axis < rank - 2:
        for at, side in enumerate((left, right)):
            axis = rows.axis - rank + ranks[at]
            if side is None and axis >= 0 and extent(dims_of(call.expr.args[at]), axis) != 1:
                raise RowsMeet("an operand with numbers for each row that is no input's")
    elif left is not None and right is not None:
        raise RowsMeet("it multiplies each row by each")
    return rows


def _quantized(call: Call) -> Placed:
    rows = first(call)
    if isinstance(rows, Rows) and any(call.rank(at) for at in (1, 2)):
        kept(rows, [call.attrs.axis], call.rank(), "its scales are")
    return rows


def _attention(call: Call) -> Placed:
    """Batches of heads; a mask broadcasts to (batch, heads, queries, keys)."""
    places = {rows for rows in call.rows if rows is not None}
    if not places:
        return None
    if places != {Rows(0)} or any(call.rows[at] is None for at in range(3)):
        raise RowsMeet("queries, keys, values and masks with the batch in different places, or without")
    if len(call.rows) > 3 and call.rows[3] is not None and call.rank(3) != 4:
        raise RowsMeet("a mask with the batch in another axis")
    return Rows(0)


def _grid_sample(call: Call) -> Placed:
    """Images, each at the points of its own grid."""
    rows = call.one()
    if rows != call.one(1) or rows not in (None, Rows(0)):
        raise RowsMeet("images and grids with the batch in different places")
    return rows


_ELEMENTS = [
    "abs", "acos", "acosh", "asin", "asinh", "astype", "atan", "atanh", "bitwise_not", "ceil", "cos",
    "cosh", "erf", "exp", "floor", "isfinite", "isinf", "isnan", "log", "logical_not", "negative",
    "round", "rsqrt", "sigmoid", "sign", "sin", "sinh", "sqrt", "square", "tan", "tanh", "trunc",
    "nn.gelu", "nn.gelu_tanh", "nn.relu", "nn.selu", "nn.silu", "add", "atan2", "bitwise_and",
    "bitwise_or", "bitwise_xor", "divide", "equal", "floor_divide", "floor_mod", "greater",
    "greater_equal", "left_shift", "less", "less_equal", "log_add_exp", "logical_and", "logical_or",
    "logical_xor", "maximum", "minimum", "mod", "multiply", "not_equal", "power", "right_shift",
    "subtract", "where", "ewise_fma",
]  # fmt: skip
_OF_THE_FIRST = [
    "clip", "nn.leakyrelu", "nn.softplus", "hint_on_device", "to_vdevice",
]  # fmt: skip
_CONVOLUTIONS = [f"nn.conv{axes}d{kind}" for axes in (1, 2, 3) for kind in ("", "_transpose")]
_POOLS = [f"nn.{kind}_pool{axes}d" for axes in (1, 2, 3) for kind in ("max", "avg", "adaptive_avg")]

RULES: dict[str, Rule] = {
    **dict.fromkeys(_ELEMENTS, _broadcast),
    **dict.fromkeys(_OF_THE_FIRST, first),
    **dict.fromkeys(_CONVOLUTIONS, _images("data_layout", "out_layout")),
    **dict.fromkeys(_POOLS, _images("layout", "out_layout")),
    **dict.fromkeys(("image.resize2d", "image.resize3d"), _images("layout", "layout")),
    "image.grid_sample": _grid_sample,
    **dict.fromkeys(("sum", "mean", "max", "min", "prod", "std", "variance", "argmax", "argmin"), _reduction),
    **dict.fromkeys(("nn.softmax", "nn.log_softmax", "cumsum", "cumprod", "flip"), along("axis")),
    **dict.fromkeys(("sort", "argsort", "topk"), along("axis")),
    **dict.fromkeys(("nn.layer_norm", "nn.rms_norm", "nn.group_norm", "nn.instance_norm"), _norm),
    **dict.fromkeys(("reshape", "flatten", "squeeze", "expand_dims", "nn.batch_flatten"), reshaped),
    **dict.fromkeys(("zeros", "ones", "full", "zeros_like", "ones_like", "full_like"), filled),
    **dict.fromkeys(("quantize", "dequantize"), _quantized),
    **dict.fromkeys(("tril", "triu"), triangle),
    **dict.fromkeys(("concat", "stack"), joined),
    "nn.batch_norm": _batch_norm,
    "nn.dropout": _dropout,
    "nn.prelu": along("axis"),
    "nn.pad": padded,
    "matmul": _matmul,
    "broadcast_to": broadcast_to,
    "permute_dims": permuted,
    "split": along("axis"),
    "strided_slice": boxes,
    "take": taken,
    "gather_elements": gathered,
    "gather_nd": picked,
    "repeat": repeated,
    "mxplan.attention": _attention,
    "mxplan.rotary": _broadcast,
}
"""Rules by the names of operators of Relax."""

TAKES_SHAPES = frozenset(("reshape", "broadcast_to", "zeros", "ones", "full"))
"""Operators whose shapes may have the batch in them; for all others it would be a number to compute with."""


def placed_by(call: Call) -> Placed:
    """The places of the rows of a call's results; RowsMeet with the reason where rows may meet."""
    operator = call.expr.op
    name = str(operator.name).removeprefix("relax.") if isinstance(operator, tvm.ir.Op) else ""
    rule = RULES.get(name)
    computes = name not in TAKES_SHAPES and any(_computes(arg, call.batch) for arg in call.expr.args)
    if computes:
        raise RowsMeet("it computes with the number of rows")
    if rule is None and not any(map(has_rows, call.rows)) and not isinstance(operator, tvm.ir.GlobalVar):
        return _nothing(call.expr.ty, call.batch)
    if rule is None:
        raise RowsMeet("nothing is known of it")
    return rule(call)


def _computes(arg: relax.Expr, batch: tirx.Var) -> bool:
    if isinstance(arg, relax.Tuple):
        return any(_computes(field, batch) for field in arg.fields)
    if isinstance(arg, relax.ShapeExpr):
        return any(names(dim, batch) for dim in arg.values)
    return isinstance(arg, tirx.Expr) and not isinstance(arg.ty, relax.TensorType) and names(arg, batch)


def _nothing(kind: tvm.ir.Type, batch: tirx.Var) -> Placed:
    """Of results of what reads no row: none, where their shapes have no batch."""
    if isinstance(kind, tvm.ir.TupleType):
        return tuple(_nothing(field, batch) for field in kind.fields)
    if isinstance(kind, relax.TensorType) and rows_in(shape_dims(kind), batch) is not None:
        raise RowsMeet("nothing is known of it")
    return None
