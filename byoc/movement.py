"""Operators that move data, as steps and views; every library translates them alike."""

from __future__ import annotations

from tvm_mxplan.core.program import program as ir
from tvm_mxplan.passes.relax_types import permutation_of, slice_begin

from .composite import Composite


def concat(c: Composite) -> int:
    axis = int(c.root.attrs.axis) % len(c.shape)
    pieces = [("src", c.value(field)) for field in c.definition(c.root.args[0]).fields]
    return c.emit("concat", ir.Concat(axis), *pieces)


def stack(c: Composite) -> int:
    """A concatenation of views with a new axis."""
    axis = int(c.root.attrs.axis) % len(c.shape)
    shape = (*c.shape[:axis], 1, *c.shape[axis + 1 :])
    fields = c.definition(c.root.args[0]).fields
    pieces = [("src", c.builder.reshape(c.value(field), shape)) for field in fields]
    return c.emit("concat", ir.Concat(axis), *pieces)


def unit_slice(c: Composite) -> int:
    """A slice whose steps are 1; one that takes all there is becomes its source."""
    source = c.value(c.root.args[0])
    if c.builder.values[source].shape == c.shape:
        return source
    return c.emit("slice", ir.Slice(slice_begin(c.root)), ("src", source))  # type: ignore[arg-type]


def reshape(c: Composite) -> int:
    return c.builder.reshape(c.value(c.root.args[0]), c.shape)


def permute(c: Composite) -> int:
    return c.builder.permute(c.value(c.root.args[0]), permutation_of(c.root))
