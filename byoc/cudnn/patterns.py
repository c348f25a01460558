"""The composites that cuDNN takes: products with what its engines do behind them, the longest first.

A product, then constants for each channel, a residual, an activation, each there or not: only whole graphs
have engines, so what stands behind a product is matched with it.  Constants become part of filters and bias.
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


_AFFINE = (("mean", "scale", "bias"), ("scale", "bias"), ("bias",), ("scale",), ())
"""Constants for each channel behind a product, innermost first: subtracted, multiplied, added."""


def fusion_patterns(refuse: Refuse) -> list[relax.transform.FusionPattern]:
    """All composites by preference; checks tell ``refuse`` why."""
    found = []
    for row, operator, check in _PRODUCTS:
        images = row == "convolution"
        behind = product(
            _AFFINE if images else (("bias",), ()), (True, False)[not images :], (*ACTIVATIONS, "")
        )
        for affine, residual, activation in sorted(behind, key=_operators, reverse=True):
            pattern, named = _behind(*operator(), affine, residual, activation)
            found.append(
                relax.transform.FusionPattern(f"{NAME}.{row}", pattern, named, _check(check, refuse), None)
            )
    return found


def _operators(behind: tuple[tuple[str, ...], bool, str]) -> int:
    """Counts the operators behind the product."""
    affine, residual, activation = behind
    return len(affine) + residual + bool(activation)


def _behind(
    root: DFPattern, named: dict[str, DFPattern], affine: tuple[str, ...], residual: bool, activation: str
) -> Pattern:
    named = {**named, "product": root}
    for role in affine:
        named[role] = is_const()
        if role == "mean":
            root = is_op("relax.subtract")(root, named[role])
        else:
            root = _either("multiply" if role == "scale" else "add", root, named[role])
    if residual:
        named["residual"] = wildcard()
        root = _either("add", root, named["residual"])
    if activation:
        root = is_op(f"relax.{activation}")(root)
    return root, named


def _either(operator: str, left: DFPattern, right: DFPattern) -> DFPattern:
    return is_op(f"relax.{operator}")(left, right) | is_op(f"relax.{operator}")(right, left)


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
