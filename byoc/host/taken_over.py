"""The steps of a leading library that the host library runs faster.

reductions          oneDNN 3.2 takes 120 to 320 ns for each row
linear resampling   into results, which stand plain, but for short rows: oneDNN 3.2 gathers single elements
                    there (``scripts/bench guests --only "resize, linear half"``)
"""

from __future__ import annotations

import math

from tvm_mxplan.core.program import program as ir
from tvm_mxplan.core.program.dims import static_shape

from .costs import SHORT_ROW


def takes_over(program: ir.Program, step: ir.Step) -> ir.Attributes | None:
    """The attributes that run in the place of the step; None where the leader keeps it."""
    match step.attrs:
        case ir.Reduction() as attrs:
            return attrs
        case ir.Resampling(algorithm="linear") if _grows_into_a_result(program, step):
            return ir.Resize("linear", "half_pixel", "floor", 0.0, False)
    return None


def _grows_into_a_result(program: ir.Program, step: ir.Step) -> bool:
    """Whether more rows are written than read, long ones, all of them where a caller or TVM reads them."""
    src, dst = (program.values[number].shape for number in (step.operand("src"), step.dst))
    if not all(isinstance(dim, int) for dim in (*src, *dst)):
        return False
    rows = [math.prod(static_shape(shape)[2:-1]) for shape in (src, dst)]
    grows = rows[1] > rows[0] and static_shape(dst)[-1] >= SHORT_ROW
    return grows and program.values[program.root(step.dst)].kind == "output"
