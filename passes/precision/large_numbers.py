"""Values of a program that a shorter type may make infinite: masks that are to vanish behind a softmax.

    v1 = multiply(v0, -3.4028235e38)     infinite in bfloat16: NaN in rows that are all masked
    v3 = add(scores, v2); softmax(v3)    v2 is an input: what it holds is not known here

Numbers are followed from constants, parameters and such inputs through all but functions with bounded
results, of which attention is one in its mask; such inputs are looked for up to products and norms.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from tvm_mxplan.core.program import program as ir
from tvm_mxplan.core.program.operands import operands_of

_BOUNDING = ("logistic", "tanh", "exp")
_OF_ONE_SIZE = ("clip", "clip_v2")
"""Their parameters bound what they read, and are often the ends of float32."""
_ADDING = ("add", "sub")
_BLENDING = (
    *ir.PRODUCTS,
    ir.Attention,
    ir.Softmax,
    ir.LayerNormalization,
    ir.RmsNormalization,
    ir.BatchNormalization,
)
"""Steps that no mask of theirs passes, but for what they add."""


def large_values(
    program: ir.Program, is_large: Callable[[float], bool], narrows: Callable[[int], bool]
) -> set[int]:
    """The values, by what they are views of, that may hold numbers beyond the shorter type.

    Parameters
    ----------
    is_large : whether a finite number is infinite in the shorter type.
    narrows : whether a constant, by its value, keeps its finite numbers there; true of what is none.
    """
    found = {number for number, value in enumerate(program.values) if not narrows(number)}
    found = {program.root(number) for number in found} | _unknown_masks(program)
    for step in program.steps:
        touched = {
            program.root(number)
            for role, number in operands_of(step)
            if role not in ir.RESULT_ROLES and not role.endswith("weights") and not _is_bounded(step, role)
        }
        if _bounds(step):
            continue
        if touched & found or any(map(is_large, _parameters(step))):
            found |= {program.root(result) for result in step.results}
    return found


def _bounds(step: ir.Step) -> bool:
    if step.post_ops:
        return False
    attrs = step.attrs
    return isinstance(attrs, ir.Softmax | ir.Compare) or (
        isinstance(attrs, ir.Eltwise) and attrs.algorithm in _BOUNDING
    )


def _is_bounded(step: ir.Step, role: str) -> bool:
    """Whether what an operand holds decides the shares of others alone: of attention's values."""
    return isinstance(step.attrs, ir.Attention) and role in ("src", "key", "past_key", "mask")


def _parameters(step: ir.Step) -> Iterator[float]:
    for part in (step.attrs, *step.post_ops):
        if isinstance(part, ir.Eltwise | ir.EltwisePostOp) and part.algorithm not in _OF_ONE_SIZE:
            yield from (part.alpha, part.beta)
        elif isinstance(part, ir.Pad):
            yield part.value


def _unknown_masks(program: ir.Program) -> set[int]:
    """Inputs that are added to something whose softmax is taken, also as views or in another order."""
    writers = {program.root(result): step for step in program.steps for result in step.results}
    found: set[int] = set()
    pending = [
        (program.root(step.operand("src")), False)
        for step in program.steps
        if isinstance(step.attrs, ir.Softmax)
    ]
    pending += [
        (program.root(number), True)
        for step in program.steps
        for role, number in operands_of(step)
        if isinstance(step.attrs, ir.Attention) and role == "mask"
    ]
    seen = set(pending)
    while pending:
        root, is_added = pending.pop()
        step = writers.get(root)
        if step is None:
            if is_added and program.values[root].kind == "input":
                found.add(root)
            continue
        for role, number in operands_of(step):
            adds = _adds(step, role, number)
            through = adds or not isinstance(step.attrs, _BLENDING)
            target = (program.root(number), is_added or adds)
            if role not in ir.RESULT_ROLES and through and target not in seen:
                seen.add(target)
                pending.append(target)
    return found


def _adds(step: ir.Step, role: str, number: int) -> bool:
    """Whether a step adds an operand to another one."""
    if role == "post_op":
        return any(
            isinstance(post_op, ir.BinaryPostOp) and post_op.value == number and post_op.algorithm in _ADDING
            for post_op in step.post_ops
        )
    return isinstance(step.attrs, ir.Binary) and step.attrs.algorithm in _ADDING
