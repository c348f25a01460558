"""A branch that no call can run, since its shapes contradict each other: an error in the place of its nodes.

    if rate == 16000 then [576 samples fit] else [576 samples are two steps, and the layer takes one]

Results have the types of the other branch's, so that whatever reads them is built for these; the error comes
where the model runs the branch.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tvm import relax, te, tirx
from tvm.script.ir_builder import IRBuilder
from tvm.script.ir_builder import tirx as T

from ...dimensions.restate import emit_unfused
from ...node import Emitter


def refused(
    emitter: Emitter, condition: relax.Expr, runs_where: bool, words: str, types: Sequence[relax.TensorType]
) -> list[relax.Var]:
    """Tensors of these types, which are never made.

    Parameters
    ----------
    condition : decides which branch runs: this one where it is ``runs_where``.
    words : the error.
    """

    def kernel(chosen: te.Tensor, shape: Sequence[tirx.Expr], dtype: str) -> te.Tensor:
        def body(ins: Any, _outs: Any) -> tirx.Stmt:
            read = tirx.BufferLoad(ins[0], [])
            other = tirx.Not(read) if runs_where else read
            with (
                IRBuilder() as builder,
                T.serial(0, 1),
                T.Assert(other, words, "tvm_mxplan.InvalidInputError"),
            ):
                pass
            return builder.get()

        return te.extern([shape], [chosen], body, dtype=[dtype], name="refused")

    return [
        emit_unfused(
            emitter,
            emitter.builder.call_te(
                kernel, condition, _shape(one), str(one.dtype), primfunc_name_hint="refused"
            ),
        )
        for one in types
    ]


def _shape(kind: relax.TensorType) -> list[tirx.Expr]:
    """Numbers as they are, and no elements where an extent is none: what names it may not be known here."""
    dims = kind.shape.values if isinstance(kind.shape, relax.ShapeExpr) else [None] * int(kind.ndim)
    return [dim if isinstance(dim, tirx.IntImm) else tirx.const(0, "int64") for dim in dims]
