"""Copies of transposed views for the steps that cannot read them.

Before   v1 = x seen as acbd;  v2 = binary mul(v1, s)
After    v1 = x seen as acbd;  v3 = reorder(v1) abcd;  v2 = binary mul(v3, s)

Matrix products read transposed operands as they stand, kernels of our own (attention, rotary places) those
whose last axis is the innermost.  Permuted rows are copied where one matrix multiplies all of them: oneDNN
takes them for many products of few rows, which cost far more than a copy (``merged_rows``).
Most other primitives of oneDNN 3.2 take any order of dimensions too, but compute nonsense from some: layer
norm writes rows to the wrong places, PReLU and post-ops take the wrong elements of vectors, beyond their end
even.  So they are given plain layouts, or channels last, which are what oneDNN is tested with.
"""

from __future__ import annotations

from dataclasses import replace

from tvm_mxplan.byoc.rewrites.graph import Graph
from tvm_mxplan.core.layout.layout import channels_last, parse_layout, plain_layout, same_bytes
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.core.program.operands import POST_OP, operands_of, reorder, with_operands

from .merged_rows import seen_by_all_rows

_BY_ROWS = (ir.Attention, ir.Rotary, ir.RmsNormalization)
"""Kinds that read rows where they stand."""
_PACKED_BY_THE_RUNTIME = (ir.Convolution, ir.Deconvolution, ir.InnerProduct, ir.Recurrent)


def copy_transposed(graph: Graph) -> None:
    """Insert a reorder in front of each step that reads a view it cannot take; each view is copied once."""
    for number, value in enumerate(graph.values):
        if value.alias_of >= 0:
            graph.values[number] = replace(value, layout=_common_name(value))
    copies: dict[int, int] = {}
    for at, step in enumerate(list(graph.steps)):
        if step:
            numbers = [
                value if _takes(graph, step, role, value) else _copy(graph, value, copies, at)
                for role, value in operands_of(step)
            ]
            graph.replace(at, with_operands(step, numbers))


def _takes(graph: Graph, step: ir.Step, role: str, number: int) -> bool:
    value = graph.values[number]
    if role in ir.RESULT_ROLES:
        return True
    if role == POST_OP:
        return _is_common(value)
    if isinstance(step.attrs, ir.FewBitsProduct | ir.GroupedProduct):
        return role == "weights" or value.layout == plain_layout(len(value.shape))
    by_strides = isinstance(step.attrs, (ir.MatMul, *_BY_ROWS))
    if isinstance(step.attrs, ir.Reorder | ir.Quantization) or (_is_common(value) and not by_strides):
        return True
    if role in ("weights", "recurrence") and isinstance(step.attrs, _PACKED_BY_THE_RUNTIME):
        return True
    if isinstance(step.attrs, _BY_ROWS):
        return parse_layout(value.layout).order[-1] == len(value.shape) - 1
    if not isinstance(step.attrs, ir.MatMul):
        return False
    rank = len(value.shape)
    if role == "src" and not _is_common(value) and parse_layout(value.layout).order[-1] == rank - 1:
        return seen_by_all_rows("weights", graph.values[step.operand("weights")]) is None  # else merge_rows
    # Weights that are contiguous along neither rows nor columns make a product reference code.
    along = parse_layout(value.layout).order[-1] >= rank - 2
    return role == "src" or along or graph.constant(number) is not None


def _common_layouts(rank: int) -> list[str]:
    return [plain_layout(rank)] + ([channels_last(rank)] if 3 <= rank <= 5 else [])


def _is_common(value: ir.Value) -> bool:
    return value.layout in _common_layouts(len(value.shape))


def _common_name(value: ir.Value) -> str:
    """The value's layout under a common name if extents of 1 make it the same bytes."""
    if _is_common(value):
        return value.layout
    common = _common_layouts(len(value.shape))
    return next((name for name in common if same_bytes(value.layout, name, value.shape)), value.layout)


def _copy(graph: Graph, number: int, copies: dict[int, int], at: int) -> int:
    if number not in copies:
        value, constant = graph.values[number], graph.constant(number)
        if constant is not None:
            copies[number] = graph.add_constant(constant, value.name, value.dtype)
        else:
            copies[number] = graph.add_local(value.name, value.shape, value.dtype)
            graph.insert_before(at, reorder(f"transpose_{value.name}_{number}", number, copies[number]))
    return copies[number]
