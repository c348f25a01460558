"""Sections of a tensor along one axis: one form for those of a split, and fewer where they meet again.

    split(x, [4], axis=1)[1]                     -> strided_slice(x, [1], [4], [8])
    concat((x[:, 0:4], x[:, 4:8], y), axis=1)    -> concat((x, y), axis=1)

The second is what detectors write (a half goes on through convolutions and is concatenated with both halves):
the whole may then be made where the concatenation wants it, its sections not.
"""

from __future__ import annotations

from dataclasses import dataclass

from tvm import relax

from tvm_mxplan.core.program.dims import is_static

from ...relax_types import shape_of, slice_begin
from ..rewriter import Site, is_call_to


def section_of_split(split: relax.Call, index: int) -> relax.Expr | None:
    """Section ``index`` of a split as a slice; None where extents are not known."""
    sections = len(split.ty.fields) if isinstance(split.ty, relax.TupleType) else 0
    shapes = [shape_of(relax.TupleGetItem(split, i)) for i in range(sections)]
    if not shapes or any(shape is None for shape in shapes):
        return None
    axis = int(split.attrs.axis) % len(shapes[0])  # type: ignore[arg-type]
    extents = [shape[axis] for shape in shapes]  # type: ignore[index]
    if not is_static(tuple(extents)):
        return None
    begin = sum(extents[:index])  # type: ignore[arg-type]
    return _slice(split.args[0], axis, begin, begin + extents[index])  # type: ignore[operator]


def join_sections(site: Site, concat: relax.Call) -> relax.Expr | None:
    """The concatenation with neighbouring sections of one tensor as one; None if there are none."""
    pieces, shape = site.definition(concat.args[0]), shape_of(concat)
    if not isinstance(pieces, relax.Tuple) or concat.attrs.axis is None or shape is None:
        return None
    axis = int(concat.attrs.axis) % len(shape)
    fields: list[relax.Expr] = []
    sections: list[_Section | None] = []
    for piece in pieces.fields:
        section, last = _section(site, piece, axis), sections[-1] if sections else None
        if section and last and last.meets(section):
            joined = _Section(last.source, last.begin, section.end)
            sections[-1], fields[-1] = joined, joined.emit(site, axis)
        else:
            sections.append(section)
            fields.append(piece)
    if len(fields) == len(pieces.fields):
        return None
    return fields[0] if len(fields) == 1 else relax.op.concat(fields, axis)


@dataclass(frozen=True)
class _Section:
    source: relax.Expr
    begin: int
    end: int

    def meets(self, other: _Section) -> bool:
        return self.source.same_as(other.source) and self.end == other.begin

    def emit(self, site: Site, axis: int) -> relax.Expr:
        if (self.begin, self.end) == (0, shape_of(self.source)[axis]):  # type: ignore[index]
            return self.source
        return site.emit(_slice(self.source, axis, self.begin, self.end))


def _section(site: Site, piece: relax.Expr, axis: int) -> _Section | None:
    """The range of ``axis`` that ``piece`` is of another tensor, of which it has all else."""
    call = site.definition(piece)
    begin = slice_begin(call) if is_call_to(call, "strided_slice") else None
    if begin is None:
        return None
    source, shape = shape_of(call.args[0]), shape_of(call)
    if source[:axis] + source[axis + 1 :] != shape[:axis] + shape[axis + 1 :]:  # type: ignore[index]
        return None
    return _Section(call.args[0], begin[axis], begin[axis] + shape[axis])  # type: ignore[index,operator]


def _slice(source: relax.Expr, axis: int, begin: int, end: int) -> relax.Call:
    return relax.op.strided_slice(source, [axis], [begin], [end])
