"""The composites that oneDNN takes: one table, read top to bottom, first match wins.

Nearly all are a single Relax operator; what oneDNN fuses is decided later on the region program, where
chains of any length and order are plain data.  Only what an importer spreads over several operators, and
oneDNN has as one, is matched here as a whole.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import tvm
from tvm import relax
from tvm.relax.backend.utils import has_leaking_intermediate_variables
from tvm.relax.dpl import DFPattern, is_op, wildcard

from tvm_mxplan.byoc.backend import Refuse
from tvm_mxplan.byoc.own_operators import own_operator
from tvm_mxplan.byoc.rewrites.quantized import composites as quantized
from tvm_mxplan.byoc.spelled_out import norms
from tvm_mxplan.byoc.spelled_out.activations import ACTIVATIONS
from tvm_mxplan.operators import attention as attention_operator
from tvm_mxplan.operators import (
    batch_norm,
    convolution_gradients,
    layer_norm,
    pooling_gradients,
    recurrent_training,
)
from tvm_mxplan.operators import quantized as quantized_operators
from tvm_mxplan.operators.attention import ROTARY
from tvm_mxplan.operators.attention.caches import CACHED_ATTENTION
from tvm_mxplan.operators.gate import GATE
from tvm_mxplan.operators.products.grouped_product import GROUPED_PRODUCT
from tvm_mxplan.operators.recurrent import GATES, PREFIX, register
from tvm_mxplan.operators.registration import Operator
from tvm_mxplan.passes.relax_types import permutation_of, shape_of

from . import checks
from .checks import Match
from .families import attention, experts, few_bits, lrn, recurrent, rows, training

NAME = "mxplan_onednn"


@dataclass(frozen=True)
class Row:
    """One row: a pattern with names for what the check and the code generator look at.

    Attributes
    ----------
    name : what ``codegen.TRANSLATE`` knows it by.
    pattern : root pattern and named sub-patterns; ``root`` is added.
    check : None, or why a match is refused.
    tensors_ok : the same for element types and shapes, which is asked first.
    """

    name: str
    pattern: Callable[[], tuple[DFPattern, dict[str, DFPattern]]]
    check: Callable[[Match], str | None]
    label: str
    tensors_ok: Callable[[Match], str | None] = checks.tensors_ok


def _accept(_match: Match) -> str | None:
    return None


def _single(operator: str, arity: int) -> Callable[[], tuple[DFPattern, dict[str, DFPattern]]]:
    return lambda: (is_op(f"relax.{operator}")(*[wildcard() for _ in range(arity)]), {})


def _operators(name: str, arity: int, check: Callable[[Match], str | None], *operators: str) -> list[Row]:
    return [Row(name, _single(operator, arity), check, operator) for operator in operators]


def _check_instance_norm(match: Match) -> str | None:
    spatial = list(range(2, len(shape_of(match["root"]))))  # type: ignore[arg-type]
    return norms.of_axes(match, spatial, "those after the channels")


def _channel_shuffle() -> tuple[DFPattern, dict[str, DFPattern]]:
    x = wildcard()
    split = is_op("relax.reshape")(x, wildcard())
    swapped = is_op("relax.permute_dims")(split)
    return is_op("relax.reshape")(swapped, wildcard()), {"x": x, "split": split, "swapped": swapped}


def _check_channel_shuffle(match: Match) -> str | None:
    shape, split = shape_of(match["x"]), shape_of(match["split"])
    rank = len(shape)  # type: ignore[arg-type]
    order = permutation_of(match["swapped"])
    if shape != shape_of(match["root"]) or order != [0, 2, 1, *range(3, rank + 1)]:
        return "not a channel shuffle"
    if split[0] != shape[0] or split[3:] != shape[2:]:  # type: ignore[index]
        return "not a channel shuffle"
    return None


def _transposed_weights() -> tuple[DFPattern, dict[str, DFPattern]]:
    weights = wildcard()
    transpose = is_op("relax.permute_dims")(weights)
    return is_op("relax.matmul")(wildcard(), transpose), {"transpose": transpose}


def _check_transposed_weights(match: Match) -> str | None:
    if permutation_of(match["transpose"]) != [1, 0]:
        return "not a transposed matrix"
    return checks.matmul(match)


def _recurrent(kind: str) -> Callable[[], tuple[DFPattern, dict[str, DFPattern]]]:
    def pattern() -> tuple[DFPattern, dict[str, DFPattern]]:
        register()
        return is_op(f"{PREFIX}{kind}")(varg_default_wildcard=True), {}

    return pattern


def _any_operands(operator: Operator) -> Callable[[], tuple[DFPattern, dict[str, DFPattern]]]:
    def pattern() -> tuple[DFPattern, dict[str, DFPattern]]:
        operator.register()
        return is_op(operator.full_name)(varg_default_wildcard=True), {}

    return pattern


def _attention() -> tuple[DFPattern, dict[str, DFPattern]]:
    attention_operator.register()
    return is_op(attention_operator.NAME)(varg_default_wildcard=True), {}


def _cached_attention() -> tuple[DFPattern, dict[str, DFPattern]]:
    CACHED_ATTENTION.register()
    return is_op(CACHED_ATTENTION.full_name)(varg_default_wildcard=True), {}


_SPATIAL = ("1d", "2d", "3d")

_CONVOLUTIONS = [f"nn.conv{n}" for n in _SPATIAL]
_DECONVOLUTIONS = [f"nn.conv{n}_transpose" for n in _SPATIAL]

COMPOSITES: list[Row] = [
    Row(
        "few_bits_product", few_bits.pattern, _accept, "matmul with few bits", few_bits.check,
    ),
    Row("grouped_product", own_operator(GROUPED_PRODUCT, 3), _accept, "grouped_product", experts.check),
    # integers that stand for real numbers
    *[
        Row(operator, quantized.conversion(operator), _accept, operator, quantized.conversion_ok)
        for operator in ("quantize", "dequantize")
    ],
    *[
        Row(operator.name, own_operator(operator, arity), _accept, operator.name, quantized.dynamic_ok)
        for operator, arity in ((quantized_operators.QUANTIZE, 1), (quantized_operators.DEQUANTIZE, 3))
    ],
    *[
        Row(name, pattern, check, f"{name} of integers", quantized.weights_ok)
        for name, check, operators in (
            ("convolution", checks.convolution, _CONVOLUTIONS),
            ("deconvolution", checks.convolution, _DECONVOLUTIONS),
            ("matmul", checks.matmul, ["matmul"]),
        )
        for pattern in quantized.product(*operators)
    ],
    Row(
        "matmul_transposed", quantized.transposed_product, _check_transposed_weights, "matmul of integers",
        quantized.weights_ok,
    ),
    # what an importer spreads over several operators
    Row("lrn", lrn.pattern, lrn.check, "LRN"),
    Row("instance_norm", norms.by_variance, _check_instance_norm, "instance norm"),
    Row("layer_norm_parts", norms.by_squares, norms.of_last_axes, "layer norm"),
    *[Row(*row) for row in ACTIVATIONS],
    Row("channel_shuffle", _channel_shuffle, _check_channel_shuffle, "channel shuffle"),
    Row("matmul_transposed", _transposed_weights, _check_transposed_weights, "matmul, transposed"),
    # one operator each
    *_operators("convolution", 2, checks.convolution, *_CONVOLUTIONS),
    *_operators("deconvolution", 2, checks.convolution, *_DECONVOLUTIONS),
    *[
        Row(name, own_operator(operator, 2), check, operator.name)
        for name, operator, check in (
            ("convolution_backward_data", convolution_gradients.BACKWARD_DATA, _accept),
            (
                "convolution_backward_weights",
                convolution_gradients.BACKWARD_WEIGHTS,
                checks.convolution_backward_weights,
            ),
        )
    ],
    *[
        Row(name, own_operator(operator, arity), check, operator.name)
        for name, operator, arity, check in (
            ("batch_norm", batch_norm.BATCH_NORM, 5, training.ranks),
            ("batch_norm_backward", batch_norm.BACKWARD, 5, training.ranks),
            ("layer_norm_backward", layer_norm.BACKWARD, 3, training.rows),
            ("gate", GATE, 2, training.gated),
            ("pooling_backward", pooling_gradients.MAX_BACKWARD, 2, training.pool),
            ("pooling_backward", pooling_gradients.AVERAGE_BACKWARD, 2, training.pool),
        )
    ],
    *_operators("matmul", 2, checks.matmul, "matmul"),
    *_operators("pooling", 1, checks.pooling, *[f"nn.{k}_pool{n}" for k in ("max", "avg") for n in _SPATIAL]),
    *_operators(
        "adaptive_pooling", 1, checks.adaptive_pooling, *[f"nn.adaptive_avg_pool{n}" for n in _SPATIAL]
    ),
    *[Row("recurrent", _recurrent(kind), _accept, kind, recurrent.check) for kind in GATES],
    *[
        Row(operator.name, _any_operands(operator), _accept, operator.name)
        for operator in (recurrent_training.TRAINING, recurrent_training.BACKWARD)
    ],
    Row("attention", _attention, _accept, "attention", attention.check),
    Row("cached_attention", _cached_attention, _accept, "attention", attention.check_cached),
    *_operators("softmax", 1, checks.softmax, "nn.softmax", "nn.log_softmax"),
    Row("rotary", own_operator(ROTARY, 3), rows.check_rotary, "rotary"),
    *_operators("rms_norm", 2, rows.check_rms_norm, "nn.rms_norm"),
    *_operators("layer_norm", 3, checks.normalized_axes, "nn.layer_norm"),
    *_operators("channel_norm", 3, checks.channel_normalization, "nn.group_norm", "nn.instance_norm"),
    *_operators("prelu", 2, checks.prelu, "nn.prelu"),
    *_operators("resize", 2, checks.resize, "image.resize2d", "image.resize3d"),
    *_operators("pad", 1, checks.pad, "nn.pad"),
    *_operators("reduction", 1, checks.reduction, "mean", "sum", "max", "min", "prod"),
    *_operators("concat", 1, checks.concat, "concat"),
    *[row for arity in (4, 5) for row in _operators("slice", arity, checks.strided_slice, "strided_slice")],
    *_operators("binary", 2, checks.binary, "add", "subtract", "multiply", "divide", "maximum", "minimum"),
    *_operators("power", 2, checks.power, "power"),
    *_operators("clip", 3, checks.clip, "clip"),
    *_operators("softplus", 1, checks.softplus, "nn.softplus"),
    *_operators("exp", 1, _accept, "exp"),
    *_operators("leaky_relu", 1, checks.leaky_relu, "nn.leakyrelu"),
    *_operators(
        "eltwise", 1, _accept,
        "nn.relu", "nn.gelu", "nn.gelu_tanh", "nn.silu", "tanh", "sigmoid",
        "abs", "sqrt", "square", "negative",
    ),
    # views: no work unless a layout asks for it
    *_operators("reshape", 2, checks.reshape, "reshape"),
    *_operators("reshape", 1, checks.reshape, "squeeze", "expand_dims", "flatten", "nn.batch_flatten"),
    *_operators("permute", 1, _accept, "permute_dims"),
]  # fmt: skip


def fusion_patterns(refuse: Refuse) -> list[relax.transform.FusionPattern]:
    """The table as TVM's fusion patterns, which tell ``refuse`` what their checks refuse."""
    return [_fusion_pattern(row, refuse) for row in COMPOSITES]


def _fusion_pattern(row: Row, refuse: Refuse) -> relax.transform.FusionPattern:
    root, named = row.pattern()

    def check(context: relax.transform.PatternCheckContext) -> bool:
        if has_leaking_intermediate_variables(context):
            return False  # it is its parts, then, which other rows match
        match = {**dict(context.annotated_expr), "root": context.matched_expr}
        reason = row.tensors_ok(match) or row.check(match)
        if reason is not None:
            refuse(_key(context.matched_expr), f"{row.label}: {reason}")
        return reason is None

    return relax.transform.FusionPattern(f"{NAME}.{row.name}", root, named, check, None)


def _key(expr: relax.Expr) -> str:
    return expr.op.name if isinstance(expr.op, tvm.ir.Op) else str(expr.op)
