"""The composites that cuDNN takes: one table, read top to bottom, first match wins.

Constants for each channel behind a convolution or a product with a constant matrix become part of filters and
bias, so they are matched with it.  All else is an operator or what an importer spreads over several; what
stands behind a product is fused on the region program (``fusion.py``).

A composite whose check holds is taken where cuDNN has an engine for it (``probe.py``).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import tvm
from tvm import relax
from tvm.relax.backend.utils import has_leaking_intermediate_variables
from tvm.relax.dpl import DFPattern, is_const, is_op, wildcard

from tvm_mxplan.byoc.backend import Refuse
from tvm_mxplan.byoc.elementwise import BINARY, ELTWISE
from tvm_mxplan.byoc.own_operators import own_operator
from tvm_mxplan.byoc.rewrites.quantized import composites as quantized
from tvm_mxplan.byoc.spelled_out import norms
from tvm_mxplan.byoc.spelled_out.activations import ACTIVATIONS, either
from tvm_mxplan.operators import attention as attention_operator
from tvm_mxplan.operators.batch_norm import BACKWARD, BATCH_NORM
from tvm_mxplan.operators.convolution_gradients import BACKWARD_DATA, BACKWARD_WEIGHTS
from tvm_mxplan.operators.gate import GATE
from tvm_mxplan.operators.pooling_gradients import ADAPTIVE_BACKWARD, AVERAGE_BACKWARD

from . import checks
from .checks import Match
from .families import batch_norms

NAME = "mxplan_cudnn"
Probe = Callable[[relax.transform.PatternCheckContext, str], str | None]
"""Gives the reason why cuDNN has no engine for a match of a row, or None."""
Pattern = tuple[DFPattern, dict[str, DFPattern]]
"""A root, and names for what the check and the code generator look at."""


@dataclass(frozen=True)
class Row:
    """One row: a pattern with names for what the check looks at.

    Attributes
    ----------
    name : what the tables of ``codegen`` know it by.
    check : None, or why a match is refused.
    probed : whether cuDNN is asked for an engine.
    tensors : what is asked of all operands and the result.
    """

    name: str
    pattern: Callable[[], Pattern]
    check: Callable[[Match], str | None]
    probed: bool = True
    tensors: Callable[[Match], str | None] = checks.tensors_ok


def _accept(_match: Match) -> str | None:
    return None


def _any_of(operators: list[str], *arguments: DFPattern) -> DFPattern:
    """A call to one of several operators."""
    first, *others = (is_op(f"relax.{operator}")(*arguments) for operator in operators)
    for other in others:
        first = first | other
    return first


def _single(operators: list[str], arity: int) -> Callable[[], Pattern]:
    return lambda: (_any_of(operators, *[wildcard() for _ in range(arity)]), {})


def _transposed() -> Pattern:
    transpose = is_op("relax.permute_dims")(is_const())
    return is_op("relax.matmul")(wildcard(), transpose), {"transpose": transpose}


_SCALED = ("mean", "scale", "bias", "outer_scale", "outer_bias")
"""Of a batch norm and a scale behind it, as some models have both."""
_AFFINE = (_SCALED, _SCALED[:4], _SCALED[:3], ("scale", "bias"), ("bias",), ("scale",), ())
"""Constants for each channel behind a product, innermost first: subtracted, multiplied, added."""
_CHAINS = (_SCALED, _SCALED[:3], ("scale", "bias", "outer_scale", "outer_bias"), ("scale", "bias"))
"""The same behind any tensor of channels."""


def _behind(product: Callable[[], Pattern], affine: tuple[str, ...]) -> Callable[[], Pattern]:
    def pattern() -> Pattern:
        root, named = product()
        named = {**named, "product": root}
        for role in affine:
            named[role] = is_const()
            if role == "mean":
                root = is_op("relax.subtract")(root, named[role])
            else:
                root = either("relax.multiply" if "scale" in role else "relax.add", root, named[role])
        return root, named

    return pattern


def _products(name: str, product: Callable[[], Pattern], check: Callable[[Match], str | None]) -> list[Row]:
    affine = _AFFINE if name != "dense" else (("bias",), ())
    return [Row(name, _behind(product, behind), check) for behind in affine]


def _any() -> Pattern:
    return wildcard(), {}


def _attention() -> Pattern:
    attention_operator.register()
    return is_op(attention_operator.NAME)(varg_default_wildcard=True), {}


def _spatial(stem: str) -> list[str]:
    return [stem.format(axes) for axes in (1, 2, 3)]


def _integers(name: str, product: Callable[[], Pattern], check: Callable[[Match], str | None]) -> list[Row]:
    """A product whose weights are integers in the model, with what is added for each channel."""
    return [
        Row(name, _behind(product, roles), check, True, quantized.weights_ok) for roles in (("bias",), ())
    ]


COMPOSITES: list[Row] = [
    *[
        Row("conversion", quantized.conversion(operator), checks.conversion, True, quantized.conversion_ok)
        for operator in ("quantize", "dequantize")
    ],
    *[
        row
        for pattern in quantized.product(*_spatial("nn.conv{}d"))
        for row in _integers("convolution", pattern, checks.convolution)
    ],
    *_integers("dense", quantized.transposed_product, checks.dense_of_integers),
    *_integers("dense", quantized.product("matmul")[0], checks.dense_of_integers),
    *_products("convolution", _single(_spatial("nn.conv{}d"), 2), checks.convolution),
    *_products("deconvolution", _single(_spatial("nn.conv{}d_transpose"), 2), checks.convolution),
    Row("backward_data", own_operator(BACKWARD_DATA, 2), _accept),
    Row("backward_weights", own_operator(BACKWARD_WEIGHTS, 2), checks.backward_weights),
    *[
        Row("average_pool_backward", own_operator(operator, 2), checks.average_backward)
        for operator in (AVERAGE_BACKWARD, ADAPTIVE_BACKWARD)
    ],
    Row("batch_norm", own_operator(BATCH_NORM, 5), _accept, True, batch_norms.tensors_ok),
    Row("batch_norm_backward", own_operator(BACKWARD, 5), _accept, True, batch_norms.tensors_ok),
    Row("gate", own_operator(GATE, 2), _accept),
    *_products("dense", _transposed, checks.dense),
    *_products("dense", _single(["matmul"], 2), checks.dense),
    *[Row(name, pattern, check, False) for name, pattern, check, _ in ACTIVATIONS],
    Row("matmul", _single(["matmul"], 2), checks.matmul),
    Row("attention", _attention, _accept),
    Row("norm_chain", norms.by_variance, norms.of_last_axes),
    Row("norm_chain", norms.by_squares, norms.of_last_axes),
    Row("pooling", _single(_spatial("nn.max_pool{}d") + _spatial("nn.avg_pool{}d"), 1), checks.pooling),
    Row("adaptive_pooling", _single(_spatial("nn.adaptive_avg_pool{}d"), 1), checks.adaptive_pooling),
    Row("global_pooling", _single(["mean", "max"], 1), checks.global_pooling),
    Row("reduction", _single(["sum", "max", "min", "mean"], 1), checks.reduction),
    Row("softmax", _single(["nn.softmax", "nn.log_softmax"], 1), _accept),
    Row("layer_norm", _single(["nn.layer_norm"], 3), checks.layer_norm),
    Row("channel_norm", _single(["nn.group_norm", "nn.instance_norm"], 3), checks.channel_norm),
    Row("leaky_relu", _single(["nn.leakyrelu"], 1), _accept, False),
    Row("power", _single(["power"], 2), checks.power),
    Row("clip", _single(["clip"], 3), checks.clip, False),
    *[Row("chain", _behind(_any, roles), checks.chain) for roles in _CHAINS],
    Row("eltwise", _single([*ELTWISE, "exp"], 1), _accept, False),
    Row("binary", _single(list(BINARY), 2), checks.binary),
    *[Row("slice", _single(["strided_slice"], arity), checks.strided_slice, False) for arity in (4, 5)],
    Row("concat", _single(["concat"], 1), checks.concat, False),
    Row("reshape", _single(["reshape"], 2), checks.view, False),
    Row("reshape", _single(["squeeze", "expand_dims", "flatten", "nn.batch_flatten"], 1), checks.view, False),
    Row("permute", _single(["permute_dims"], 1), checks.permute, False),
]


def fusion_patterns(refuse: Refuse, probe: Probe) -> list[relax.transform.FusionPattern]:
    """The table as TVM's fusion patterns, which tell ``refuse`` why something is not taken."""
    return [_fusion_pattern(row, refuse, probe) for row in COMPOSITES]


def _fusion_pattern(row: Row, refuse: Refuse, probe: Probe) -> relax.transform.FusionPattern:
    root, named = row.pattern()

    def check(context: relax.transform.PatternCheckContext) -> bool:
        if has_leaking_intermediate_variables(context):
            return False  # a shorter composite may fit
        found = context.matched_expr
        match = {**dict(context.annotated_expr), "root": found}
        reason = row.tensors(match) or row.check(match)
        if reason is None and row.probed:
            reason = probe(context, row.name)
        if reason is not None:
            refuse(found.op.name if isinstance(found.op, tvm.ir.Op) else str(found.op), reason)
        return reason is None

    return relax.transform.FusionPattern(f"{NAME}.{row.name}", root, named, check, None)
