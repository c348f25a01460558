"""``CountFromEitherEnd``: indices as they are given, where an importer made them count from the front.

Before   below = R.less(i, 0); counted = R.add(i, extent)
         y = R.take(table, R.where(below, counted, i), axis=0)
After    y = R.take(table, i, axis=0)

Whoever runs the operator counts negative indices from the end, and says which are out of bounds: kernels of
the host library, ``CheckIndices`` in front of TVM's.  Counted twice, an index as far below zero as twice the
extent would pass.  So it is for targets where indices are checked, and before regions are made.
"""

from __future__ import annotations

import tvm
from tvm import relax

from tvm_mxplan.errors import InvalidInputError

from ..canonicalize.rewriter import Site, rewrite_bindings
from .from_the_end import from_the_end
from .operands import IndexOperand, UnknownShape, with_indices


def _rule(site: Site, value: relax.Expr) -> relax.Expr | None:
    def as_given(indices: relax.Expr, one: IndexOperand) -> relax.Expr:
        given = from_the_end(indices, one.extents, site.definition)
        return indices if given is None else given

    def field(operand: relax.Expr, at: int) -> relax.Expr:
        written = site.definition(operand)
        is_written = isinstance(written, relax.Tuple)
        return written.fields[at] if is_written else site.emit(relax.TupleGetItem(operand, at))

    if not isinstance(value, relax.Call):
        return None
    try:
        changed = with_indices(value, as_given, field)
    except (UnknownShape, InvalidInputError):  # said later, by the operator's name
        return None
    return None if changed.same_as(value) else changed


@tvm.transform.module_pass(opt_level=0, name="CountFromEitherEnd")
class CountFromEitherEnd:
    """Module pass; see the module's text."""

    def transform_module(self, mod: tvm.IRModule, _ctx: tvm.transform.PassContext) -> tvm.IRModule:
        return rewrite_bindings(mod, _rule)
