"""The composites that cuDNN takes: products with what its engines do behind them, the longest first.

A product alone, then a bias, a residual, an activation, each there or not: only whole graphs have engines,
so what stands behind a product is matched with it.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import tvm
from tvm import relax
from tvm.relax.backend.utils import has_leaking_intermediate_variables
from tvm.relax.dpl import DFPattern, is_const, is_op, wildcard

from tvm_mxplan.byoc.backend import Refuse

from . import checks
from .checks import Match

NAME = "mxplan_cudnn"
ACTIVATIONS = {"nn.relu": "relu", "sigmoid": "logistic", "tanh": "tanh"}
"""Operators of Relax behind a product, and what region programs call them."""

Pattern = tuple[DFPattern, dict[str, DFPattern]]
"""A root, and names for what the check and the code generator look at."""


def _plain(operator: str) -> Pattern:
    return is_op(f"relax.{operator}")(wildcard(), wildcard()), {}


def _transposed() -> Pattern:
    transpose = is_op("relax.permute_dims")(is_const())
    return is_op("relax.matmul")(wildcard(), transpose), {"transpose": transpose}


_PRODUCTS: list[tuple[str, Callable[[], Pattern], Callable[[Match], str | None]]] = [
    # name for ``codegen.TRANSLATE``, pattern, check
    ("convolution", lambda: _plain("nn.conv2d"), checks.convolution),
    ("matmul", _transposed, checks.matmul),
    ("matmul", lambda: _plain("matmul"), checks.matmul),
]


def fusion_patterns(refuse: Refuse) -> list[relax.transform.FusionPattern]:
    """All composites by preference; checks tell ``refuse`` why."""
    found = []
    behind = list(product(("residual", ""), ("bias", ""), (*ACTIVATIONS, "")))
    for row, operator, check in _PRODUCTS:
        # More operators first: a residual, then a bias, then an activation is missing.
        for residual, bias, activation in sorted(behind, key=lambda parts: -sum(map(bool, parts))):
            if residual and row == "matmul":
                continue
            pattern, named = _behind(*operator(), residual, bias, activation)
            found.append(
                relax.transform.FusionPattern(f"{NAME}.{row}", pattern, named, _check(check, refuse), None)
            )
    return found


def _behind(
    root: DFPattern, named: dict[str, DFPattern], residual: str, bias: str, activation: str
) -> tuple[DFPattern, dict[str, DFPattern]]:
    named = {**named, "product": root}
    if bias:
        named["bias"] = is_const()
        root = _sum(root, named["bias"])
    if residual:
        named["residual"] = wildcard()
        root = _sum(root, named["residual"])
    if activation:
        root = is_op(f"relax.{activation}")(root)
    return root, named


def _sum(left: DFPattern, right: DFPattern) -> DFPattern:
    return is_op("relax.add")(left, right) | is_op("relax.add")(right, left)


def _check(
    accepts: Callable[[Match], str | None], refuse: Refuse
) -> Callable[[relax.transform.PatternCheckContext], bool]:
    def check(context: relax.transform.PatternCheckContext) -> bool:
        if has_leaking_intermediate_variables(context):
            return False  # a shorter composite may fit
        root = context.matched_expr
        match = {**dict(context.annotated_expr), "root": root}
        reason = checks.tensors_ok(match) or accepts(match)
        if reason is not None:
            refuse(root.op.name if isinstance(root.op, tvm.ir.Op) else str(root.op), reason)
        return reason is None

    return check
