"""The operators that the host library takes: one table, read top to bottom, a composite for each operator.

The library stands behind others in the order of preference: what they refuse comes here, so rows overlap with
theirs.
"""

from __future__ import annotations

from dataclasses import dataclass

from tvm import relax
from tvm.relax.dpl import is_const, is_op, wildcard

from tvm_mxplan.byoc.backend import Refuse
from tvm_mxplan.operators.put import PUT

from . import checks
from .checks import Check
from .places import places_of

NAME = "mxplan_host"

UNARY = {
    "abs": "abs", "ceil": "ceil", "cos": "cos", "erf": "erf", "exp": "exp", "floor": "floor",
    "log": "log", "negative": "negative", "nn.relu": "relu", "round": "round", "rsqrt": "rsqrt",
    "sign": "sign", "sin": "sin", "sqrt": "sqrt", "square": "square", "trunc": "trunc",
}  # fmt: skip
"""Algorithms of eltwise steps by operators."""
BINARY = {
    "add": "add", "subtract": "sub", "multiply": "mul", "divide": "div", "minimum": "min", "maximum": "max",
    "floor_divide": "div",
}  # fmt: skip
LOGICAL = {"logical_and": "min", "logical_or": "max"}
"""Algorithms of binary steps on truth values."""
REDUCTIONS = {"mean": "mean", "sum": "sum", "max": "max", "min": "min", "prod": "mul"}
COMPARE = ("equal", "not_equal", "less", "less_equal", "greater", "greater_equal")


@dataclass(frozen=True)
class Row:
    """Operators that become one kind of composite.

    Attributes
    ----------
    name : what ``codegen.TRANSLATE`` knows it by.
    arity : operands, shapes and bounds counted.
    check : None, or why a call is refused.
    """

    name: str
    arity: int
    check: Check
    operators: tuple[str, ...]


ROWS = [
    Row("where", 3, checks.where, ("where",)),
    Row("compare", 2, checks.compare, COMPARE),
    Row("compare", 2, checks.truths, ("logical_xor",)),
    Row("logical", 2, checks.truths, tuple(LOGICAL)),
    Row("negation", 1, checks.truths, ("logical_not",)),
    Row("isnan", 1, checks.isnan, ("isnan",)),
    Row("finite", 1, checks.of_floats, ("isfinite", "isinf")),
    Row("cast", 1, checks.cast, ("astype",)),
    Row("put", 2, checks.accept, (PUT.full_name.removeprefix("relax."),)),
    Row("gather_elements", 2, checks.gather_elements, ("gather_elements",)),
    Row("gather_nd", 2, checks.gather_nd, ("gather_nd",)),
    Row("scatter", 3, checks.scatter, ("scatter_nd", "scatter_elements")),
    Row("take", 2, checks.take, ("take",)),
    Row("strided_slice", 4, checks.strided_slice, ("strided_slice",)),
    Row("strided_slice", 5, checks.strided_slice, ("strided_slice",)),
    Row("broadcast", 2, checks.accept, ("broadcast_to",)),
    Row("repeated", 1, checks.repeated, ("tile", "repeat")),
    Row("concat", 1, checks.concat, ("concat",)),
    Row("stack", 1, checks.concat, ("stack",)),
    Row("reduction", 1, checks.reduction, tuple(REDUCTIONS)),
    Row("cumulative_sum", 1, checks.cumulative_sum, ("cumsum",)),
    Row("flip", 1, checks.flip, ("flip",)),
    Row("extreme_index", 1, checks.extreme_index, ("argmax", "argmin")),
    Row("top_k", 1, checks.top_k, ("topk",)),
    Row("sort", 1, checks.sort, ("sort", "argsort")),
    Row("resize", 2, checks.resize, ("image.resize2d", "image.resize3d")),
    Row("grid_sample", 2, checks.grid_sample, ("image.grid_sample",)),
    Row("unary", 1, checks.of_floats, tuple(UNARY)),
    Row("binary", 2, checks.binary, tuple(BINARY)),
    # views: no work unless a layout asks for it
    Row("reshape", 2, checks.reshape, ("reshape",)),
    Row("reshape", 1, checks.reshape, ("squeeze", "expand_dims", "flatten", "nn.batch_flatten")),
    Row("permute", 1, checks.accept, ("permute_dims",)),
]


def fusion_patterns(refuse: Refuse) -> list[relax.transform.FusionPattern]:
    """The table as TVM's fusion patterns, which tell ``refuse`` what their checks refuse."""
    PUT.register()
    single = [_fusion_pattern(row, operator, refuse) for row in ROWS for operator in row.operators]
    return [_sums_from_the_end(), *map(_places, (3, 2, 1)), *single]


def _sums_from_the_end() -> relax.transform.FusionPattern:
    """A cumulative sum of what is turned around, which is turned back: one step that goes the other way."""
    turned = is_op("relax.flip")(wildcard())
    summed = is_op("relax.cumsum")(turned)
    root = is_op("relax.flip")(summed)

    def check(context: relax.transform.PatternCheckContext) -> bool:
        back, sums, turn = (context.annotated_expr[name] for name in ("root", "summed", "turned"))
        if any(checks.tensors_ok(call) for call in (back, sums, turn)) or checks.cumulative_sum(sums):
            return False
        rank = back.ty.ndim
        axes = {
            None if axis is None else int(axis) % rank for axis in (x.attrs.axis for x in (back, sums, turn))
        }
        return len(axes) == 1 and None not in axes

    named = {"root": root, "summed": summed, "turned": turned}
    return relax.transform.FusionPattern(f"{NAME}.cumulative_sum", root, named, check, None)


def _places(count: int) -> relax.transform.FusionPattern:
    """So many reads by constant places, along one axis after the other."""
    root, takes = wildcard(), []
    for _ in range(count):
        root = is_op("relax.take")(root, is_const())
        takes.append(root)
    named = {f"take{number}": take for number, take in enumerate(takes)}

    def check(context: relax.transform.PatternCheckContext) -> bool:
        return places_of([context.annotated_expr[name] for name in named]) is not None

    return relax.transform.FusionPattern(f"{NAME}.places", root, named, check, None)


def _fusion_pattern(row: Row, operator: str, refuse: Refuse) -> relax.transform.FusionPattern:
    def check(context: relax.transform.PatternCheckContext) -> bool:
        call = context.matched_expr
        reason = checks.tensors_ok(call) or row.check(call)
        if reason is not None:
            refuse(str(call.op.name), f"{operator}: {reason}")
        return reason is None

    root = is_op(f"relax.{operator}")(*[wildcard() for _ in range(row.arity)])
    return relax.transform.FusionPattern(f"{NAME}.{row.name}", root, {}, check, None)
