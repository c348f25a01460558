"""The operators of a region as text, which ``PartitionRegions`` writes on it, to tell who changed it since.

    mxplan_onednn_0, with R.func_attr({"mxplan.contents": "relax.nn.conv2d relax.nn.relu"})

Regions are plain Relax up to ``BuildPrograms``, and a pass of TVM's between the two may rewrite them.
"""

from __future__ import annotations

import tvm
from tvm import relax

_CONTENTS = "mxplan.contents"
_ANOTHER = "(call)"
"""Stands for a call of anything but an operator or a composite of the region."""


def with_contents(region: relax.Function) -> relax.Function:
    """``region`` saying which operators are in it."""
    return region.with_attr(_CONTENTS, _operators(region))


def is_changed(region: relax.Function) -> bool:
    """Whether other operators are in a region than it says; False for one that says nothing."""
    written = region.attrs.get(_CONTENTS)
    return written is not None and str(written) != _operators(region)


def _operators(region: relax.Function) -> str:
    found: list[str] = []

    def visit(expr: relax.Expr) -> None:
        if not isinstance(expr, relax.Call):
            return
        if isinstance(expr.op, tvm.ir.Op):
            found.append(str(expr.op.name))
        elif not isinstance(expr.op, tvm.ir.Var):
            found.append(_ANOTHER)

    relax.analysis.post_order_visit(region, visit)
    return " ".join(found)
