"""A gradient that passes where a number compares so with a bound, as an operator of Relax: ``mxplan.gate``.

    R.mxplan.gate(data, grad, algorithm, bound)

    data, grad   of one shape
    algorithm    gt, ge or le: how an element of ``data`` has to compare with ``bound``

The result is ``grad`` there and 0 elsewhere: the gradient of a ReLU by its result, half of that of a clip.
"""

from __future__ import annotations

import tvm
from tvm import relax
from tvm.relax import op

from .registration import Operator, dtype_of, same_type

_COMPARISONS = {"gt": op.greater, "ge": op.greater_equal, "le": op.less_equal}


def gate(data: relax.Expr, grad: relax.Expr, algorithm: str, bound: float) -> relax.Call:
    """The call of the operator."""
    return GATE.call(data, grad, algorithm=algorithm, bound=float(bound))


def _type(call: relax.Call) -> tvm.ir.Type:
    return same_type(call.args[0])


def _legalize(builder: relax.BlockBuilder, call: relax.Call) -> relax.Expr:
    data, grad = call.args
    dtype = dtype_of(data)
    passes = _COMPARISONS[str(call.attrs["algorithm"])](data, relax.const(float(call.attrs["bound"]), dtype))
    return op.where(builder.emit(passes), grad, relax.const(0, dtype))


GATE = Operator("gate", "a gradient where a number compares so with a bound", _type, _legalize)
