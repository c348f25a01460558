"""Steps on rows, of the runtime's own kernels: norms by the mean square, rotary places.

Before   v1 = R.nn.rms_norm(x, weight, axes=[-1]);   v2 = mxplan.rotary(q, cosines, sines)
After    v1 = rms_normalization(x, weight);          v2 = rotary(q, cosines, sines)
"""

from __future__ import annotations

import numpy as np

from tvm_mxplan.byoc.composite import Composite, product
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.core.program.dims import Shape, is_static
from tvm_mxplan.passes.relax_types import constant_of, shape_of

from .. import checks
from ..checks import Match

_MOST_AXES = 5
"""As the runtime's ``CheckLayerNormalization`` has it."""


def check_rms_norm(match: Match) -> str | None:
    """None, or the part of a norm that the kernels lack."""
    call = match["root"]
    reason = checks.normalized_axes(match)
    if reason is None and not is_static(shape_of(call.args[0])[-len(call.attrs.axes) :]):  # type: ignore[index]
        return "symbolic extents that are normalized"
    return reason


def check_rotary(match: Match) -> str | None:
    """None, or the part of a rotation that the kernels lack."""
    shapes = [shape_of(arg) for arg in match["root"].args]
    extents = [shape[-1] for shape in shapes]  # type: ignore[index]
    return None if is_static(extents) else "rows of symbolic extents"  # type: ignore[arg-type]


def in_rows(shape: Shape, count: int) -> Shape:
    """A shape whose ``count`` last axes are one; so are the others where a normalization takes no more."""
    leading, last = shape[:-count], product(shape[-count:])
    if len(leading) >= _MOST_AXES:
        leading = (product(leading),)
    return (*leading, last) if leading else (1, last)


def rms_norm(c: Composite) -> int:
    """Over the last axes as one; a weight of ones is left out."""
    call = c.root
    flat = in_rows(c.shape, len(call.attrs.axes))
    last = flat[-1]
    operands = [("src", c.builder.reshape(c.value(call.args[0]), flat))]
    numbers = constant_of(call.args[1])
    if numbers is None or not np.all(numbers == 1.0):
        operands.append(("scale", c.builder.reshape(c.value(call.args[1]), (last,))))
    attrs = ir.RmsNormalization(float(call.attrs.epsilon))
    return c.builder.reshape(c.builder.step("rms_norm", attrs, flat, operands), c.shape)


def rotary(c: Composite) -> int:
    call = c.root
    attrs = ir.Rotary(int(call.attrs["width"]), bool(call.attrs["interleaved"]))
    roles = ("src", "cosines", "sines")
    operands = [(role, c.value(arg)) for role, arg in zip(roles, call.args, strict=True)]
    return c.emit("rotary", attrs, *operands)
