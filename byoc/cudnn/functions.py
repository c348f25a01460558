"""Steps that are functions of cuDNN's own, for every device: no engine is chosen, and they carry no plan.

Conversions of layouts, what moves boxes, and softmax have no engines.  Pools have some, but cuDNN 9.19's
compute bfloat16 wrong on SM 90, and take two and a half times as long for the largest of windows as its
function does (both seen on an H200, ``docs/figures/cudnn.md``).

A conversion is of any rank: the runtime merges neighbouring axes, and calls cuDNN's function several times
where more are left than it takes (``layout_rules.conversion_calls``).
"""

from __future__ import annotations

from tvm_mxplan.core.description import StepInfo
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.core.program.dims import static_shape

from . import layout_rules

TRANSFORM = "transform_tensor"
SOFTMAX = "softmax_forward"
POOLING = "pooling_forward"
"""Names of the functions, in the place of an engine's."""
_MOST_AXES = 5
"""Of the images of a pool."""


def info(program: ir.Program, step: ir.Step) -> StepInfo | None:
    """The description of a step that such a function runs, with an error where none does; None of others."""
    if isinstance(step.attrs, ir.Reorder):
        return _reorder(program, step)
    if isinstance(step.attrs, ir.Concat | ir.Slice):
        return _moved(program, step)
    if isinstance(step.attrs, ir.Softmax):
        return _softmax(program, step)
    return _pooling(program, step) if isinstance(step.attrs, ir.Pooling) else None


def _reorder(program: ir.Program, step: ir.Step) -> StepInfo:
    src, dst = program.values[step.operand("src")], program.values[step.dst]
    error = ""
    if src.dtype != dst.dtype or src.dtype not in layout_rules.TYPES:
        error = f"{src.dtype} to {dst.dtype}"
    return _told(step, TRANSFORM, error, f"{src.layout} {dst.layout}")


def _moved(program: ir.Program, step: ir.Step) -> StepInfo:
    """A conversion of each piece to where it stands in the whole, or of a box from there."""
    error = layout_rules.why_not(program, step)
    layouts = " ".join(program.values[one.value].layout for one in step.operands)
    return _told(step, TRANSFORM, error, f"{step.attrs} {layouts}")


def _softmax(program: ir.Program, step: ir.Step) -> StepInfo:
    src, dst = program.values[step.operand("src")], program.values[step.dst]
    error = ""
    if step.post_ops or src.layout != dst.layout or src.dtype not in layout_rules.TYPES:
        error = f"{src.dtype} from {src.layout} to {dst.layout}"
    return _told(step, SOFTMAX, error, f"{step.attrs} {src.layout}")


def _pooling(program: ir.Program, step: ir.Step) -> StepInfo | None:
    """None where an engine is better, or right where the function cannot be asked."""
    src, dst = program.values[step.operand("src")], program.values[step.dst]
    assert isinstance(step.attrs, ir.Pooling)
    if layout_rules.why_not(program, step):
        return None  # engines say so
    narrow = "bfloat16" in (src.dtype, dst.dtype)
    if not narrow and (step.attrs.algorithm != "max" or src.dtype not in layout_rules.TYPES):
        return None
    reason = _why_no_function(step.attrs, src, dst)
    if step.post_ops:
        reason = "functions behind a pool"
    if reason and not narrow:
        return None
    error = f"{reason}, which only engines have, and those compute bfloat16 wrong" if reason else ""
    return _told(step, POOLING, error, f"{step.attrs} {src.dtype} {src.shape} {src.layout}")


def _why_no_function(attrs: ir.Pooling, src: ir.Value, dst: ir.Value) -> str:
    """Returns the reason why cuDNN's function is not that of a pool, '' if it is."""
    if src.dtype != dst.dtype or src.layout != dst.layout:
        return f"{src.dtype} in {src.layout} to {dst.dtype} in {dst.layout}"
    if not 3 <= len(src.shape) <= _MOST_AXES:
        return f"images of rank {len(src.shape)}"
    if any(apart != 1 for apart in attrs.dilation):
        return "dilated windows"
    # Of windows that are padded by as much at the end as in front, rounded down.
    sizes, results = static_shape(src.shape)[2:], static_shape(dst.shape)[2:]
    axes = zip(sizes, results, attrs.kernel, attrs.strides, attrs.padding, strict=False)
    for size, result, kernel, stride, pad in axes:
        if pad >= kernel or result != (size + 2 * pad - kernel) // stride + 1:
            return "padding that differs at both ends"
    return ""


def _told(step: ir.Step, function: str, error: str, descriptor: str) -> StepInfo:
    told = f"{step.kind} {step.name}: {error}" if error else ""
    return StepInfo("" if error else function, 0, 0, told, descriptor=descriptor)
