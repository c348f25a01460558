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
from .operands import UnknownShape, index_operands


def _rule(site: Site, value: relax.Expr) -> relax.Expr | None:
    try:
        tensors = index_operands(value)
    except (UnknownShape, InvalidInputError):  # said later, by the operator's name
        return None
    operands, changed = list(getattr(value, "args", ())), False
    for one in tensors:
        operand = operands[one.operand]
        fields = [operand] if one.field is None else list(_fields(site, operand))
        at = one.field or 0
        given = from_the_end(fields[at], one.extents, site.definition)
        if given is not None:
            fields[at], changed = given, True
            operands[one.operand] = given if one.field is None else site.emit(relax.Tuple(fields))
    return relax.Call(value.op, operands, value.attrs, value.ty_args, value.span) if changed else None


def _fields(site: Site, operand: relax.Expr) -> list[relax.Expr]:
    written = site.definition(operand)
    if isinstance(written, relax.Tuple):
        return list(written.fields)
    return [site.emit(relax.TupleGetItem(operand, at)) for at in range(len(operand.ty.fields))]


@tvm.transform.module_pass(opt_level=0, name="CountFromEitherEnd")
class CountFromEitherEnd:
    """Module pass; see the module's text."""

    def transform_module(self, mod: tvm.IRModule, _ctx: tvm.transform.PassContext) -> tvm.IRModule:
        return rewrite_bindings(mod, _rule)
