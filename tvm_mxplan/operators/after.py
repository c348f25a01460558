"""A value that is there once another one is, as an operator of Relax: ``mxplan.after``.

    R.mxplan.after(value, event) -> value

What reads the result belongs behind what makes ``event``: grouping operators into regions cannot take it to
the front.  The operator goes away as soon as regions stand (``passes/region/forget_order.py``).
"""

from __future__ import annotations

import tvm
from tvm import relax

from .registration import Operator


def after(value: relax.Expr, event: relax.Expr) -> relax.Call:
    """The call of the operator."""
    return AFTER.call(value, event)


def _type(call: relax.Call) -> tvm.ir.Type:
    return call.args[0].ty


def _legalize(_builder: relax.BlockBuilder, call: relax.Call) -> relax.Expr:
    return call.args[0]


AFTER = Operator("after", "a value that is there once another one is", _type, _legalize)
