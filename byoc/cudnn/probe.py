"""Asking cuDNN about a match before it becomes a composite: its program alone, images channels last.

What has no engine then stays with TVM, with the reason, and the region around it stays whole.
"""

from __future__ import annotations

import tvm
from tvm import relax

from tvm_mxplan.byoc.composite import Composite
from tvm_mxplan.byoc.translate import Table
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.core.program.builder import ProgramBuilder
from tvm_mxplan.passes.relax_types import dtype_of, shape_of


class _Inputs(dict[tvm.ir.Var, int]):
    """The tensors that a match reads, an input of the program for each."""

    def __init__(self, builder: ProgramBuilder) -> None:
        super().__init__()
        self._builder = builder

    def __missing__(self, var: tvm.ir.Var) -> int:
        number = self._builder.port("input", str(var.name), shape_of(var), dtype_of(var))  # type: ignore[arg-type]
        self[var] = number
        return number


def program_of(context: relax.transform.PatternCheckContext, row: str, table: Table) -> ir.Program:
    """The program that a match of a row becomes; UnsupportedError where it becomes none."""
    builder = ProgramBuilder("probe")
    definitions = dict(context.matched_bindings.items())
    inputs = _Inputs(builder)
    for value in definitions.values():
        for arg in value.args if isinstance(value, relax.Call) else ():
            if (
                isinstance(arg, tvm.ir.Var)
                and arg not in definitions
                and isinstance(arg.ty, relax.TensorType)
            ):
                inputs[arg]
    table[row](Composite(builder, inputs, definitions, context.matched_expr))
    return builder.tidied()
