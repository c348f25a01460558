"""Scales of products of integers that take in the lines before and behind their post-ops.

    product * w, linear 1/s, round, clip, linear s, dst_scale d
        product * (w/s), round, clip, dst_scale d/s
    product, round, clip, linear s, add v, dst_scale d
        product, round, clip, add v/s, dst_scale d/s

A product multiplies its sums by the scales of its operands, and its result by that of its integers, whether
or not these are 1.  A line of its own takes as long as either.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tvm_mxplan.core.program import program as ir

from ..graph import Graph

_NORMAL = np.finfo("float32").tiny


def fold_scales(graph: Graph) -> None:
    """Let scales of products of integers take in lines; see the module's text."""
    for at, step in enumerate(graph.steps):
        if step and step.is_quantized and isinstance(step.attrs, ir.PRODUCTS) and not step.has_depthwise:
            graph.replace(at, _behind(graph, _before(graph, step)))


def _before(graph: Graph, step: ir.Step) -> ir.Step:
    """The step with its first line in the scales of its weights, and in its bias."""
    line = _line(step.post_ops[0]) if step.post_ops else None
    roles = {operand.role: operand.value for operand in step.operands}
    if line is None or "weights_scale" not in roles:
        return step
    scale = graph.constant(roles["weights_scale"])
    bias = graph.constant(roles["bias"]) if "bias" in roles else None
    if scale is None or ("bias" in roles and bias is None) or (bias is None and line.beta != 0.0):
        return step
    with np.errstate(over="ignore"):
        scaled = np.asarray(scale * np.float64(line.alpha), "float32")
    if not _are_scales(scaled):
        return step
    new = {"weights_scale": graph.add_constant(scaled, f"{step.name}.weights_scale")}
    if bias is not None:
        moved = bias * np.float64(line.alpha) + line.beta
        new["bias"] = graph.add_constant(np.asarray(moved, "float32"), f"{step.name}.bias")
    return _with(step, new, step.post_ops[1:])


def _behind(graph: Graph, step: ir.Step) -> ir.Step:
    """The step with its last line in the scale of its integers, behind what that may be exchanged with."""
    roles = {operand.role: operand.value for operand in step.operands}
    scale = graph.constant(roles["dst_scale"]) if "dst_scale" in roles else None
    at = next((at for at, one in reversed([*enumerate(step.post_ops)]) if _line(one)), None)
    if scale is None or at is None:
        return step
    line = step.post_ops[at]
    assert isinstance(line, ir.EltwisePostOp)
    with np.errstate(over="ignore"):
        scaled = np.asarray(scale / np.float64(line.alpha), "float32")
    behind = _exchanged(graph, line, step.post_ops[at + 1 :])
    if behind is None or not _are_scales(scaled):
        return step
    new = {"dst_scale": graph.add_constant(scaled, f"{step.name}.dst_scale")}
    return _with(step, new, (*step.post_ops[:at], *behind))


def _exchanged(
    graph: Graph, line: ir.EltwisePostOp, behind: tuple[ir.PostOp, ...]
) -> tuple[ir.PostOp, ...] | None:
    """The post-ops ``behind`` a line, rewritten to stand before the line's factor.

    None where no such post-ops give the same results.
    """
    factor, number = np.float64(line.alpha), line.beta
    found: list[ir.PostOp] = []
    for post_op in behind:
        if isinstance(post_op, ir.BinaryPostOp):
            added = graph.constant(post_op.value) if post_op.algorithm == "add" else None
            if added is None or graph.values[post_op.value].dtype != "float32":
                return None
            name = f"{graph.values[post_op.value].name}.scaled"
            with np.errstate(over="ignore"):
                moved = np.asarray((added + np.float64(number)) / factor, "float32")
            if not np.isfinite(moved).all():
                return None
            found.append(ir.BinaryPostOp("add", graph.add_constant(moved, name)))
            number = 0.0
        elif not isinstance(post_op, ir.EltwisePostOp) or number != 0.0:
            return None
        elif post_op.algorithm == "relu":
            found.append(post_op)
        elif post_op.algorithm == "clip":
            ends = (float(end / factor) for end in (post_op.alpha, post_op.beta))
            found.append(ir.EltwisePostOp("clip", *ends))
        else:
            return None
    return tuple(found) if number == 0.0 else None


def _line(post_op: ir.PostOp) -> ir.EltwisePostOp | None:
    """A post-op that multiplies by a number above 0, and adds one."""
    if isinstance(post_op, ir.EltwisePostOp) and post_op.algorithm == "linear" and post_op.alpha > 0.0:
        return post_op
    return None


def _are_scales(scales: np.ndarray) -> bool:
    return bool(np.isfinite(scales).all() and (scales >= _NORMAL).all())


def _with(step: ir.Step, new: dict[str, int], post_ops: tuple[ir.PostOp, ...]) -> ir.Step:
    operands = tuple(replace(one, value=new.get(one.role, one.value)) for one in step.operands)
    return replace(step, operands=operands, post_ops=post_ops)
