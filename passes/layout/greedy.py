"""Layouts one step at a time, in program order: the policies that ``cost`` is compared with.

    channels_last, blocked, plain   that layout wherever a fast kernel takes it
    any                             what the library picks for each step alone when it is asked for ``any``;
                                    steps that pick nothing follow their source
    naive                           channels last, and back to plain after every step

None looks ahead: reorders stand wherever two choices meet, as in a framework without a layout plan.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from tvm_mxplan.core.policies import Policy
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.core.program.operands import operands_of
from tvm_mxplan.core.step_facts import Layouts
from tvm_mxplan.errors import UnsupportedError

from .candidates import RulesOf, candidates, uniform
from .queries import StepQueries

_ANY = "any"
_PICKING_STEPS = (ir.Convolution, ir.Deconvolution)


def choose_greedily(
    program: ir.Program,
    queries: StepQueries,
    policy: Policy,
    rules: RulesOf,
    forced: Mapping[str, Layouts],
) -> list[Layouts]:
    """Layouts of every step's operands: the policy's first that is no reference code.

    Parameters
    ----------
    forced : layouts of single steps by name, which the policy does not decide.

    Raises
    ------
    UnsupportedError : no candidate of some step can be made by the backend.
    """
    homes = {number: value.layout for number, value in enumerate(program.values)}
    choices = []
    for step in program.steps:
        choice = forced.get(step.name)
        if choice is None:
            source = next(operand.value for operand in step.operands if operand.role == "src")
            options = candidates(program, step, homes[source], policy, rules(step))
            if policy == "any" and isinstance(step.attrs, _PICKING_STEPS):
                options = [*_picked(program, step, queries), *options]
            choice = _first_fast(program, step, options, queries)
        choices.append(choice)
        if policy != "naive":
            homes |= {
                operand.value: layout
                for operand, layout in zip(step.operands, choice, strict=False)
                if operand.is_result
            }
    return choices


def _picked(program: ir.Program, step: ir.Step, queries: StepQueries) -> list[Layouts]:
    """Returns the layouts that the library picks for source and destination; nothing if it cannot say."""
    alone = replace(step, post_ops=tuple(p for p in step.post_ops if not isinstance(p, ir.BinaryPostOp)))
    question = tuple(
        _ANY if role in ("src", "dst") else program.values[value].layout for role, value in operands_of(alone)
    )
    answer = queries.settle(program, alone, question)
    if answer is None:
        return []
    roles = [role for role, _ in operands_of(alone)]
    src, dst = answer[roles.index("src")], answer[roles.index("dst")]
    # Whole tensors that post-ops read stand as the destination does.
    whole = uniform(program, step, dst)
    return [
        tuple(
            src if role == "src" else layout
            for (role, _), layout in zip(operands_of(step), whole, strict=True)
        )
    ]


def _first_fast(program: ir.Program, step: ir.Step, options: list[Layouts], queries: StepQueries) -> Layouts:
    slow: Layouts | None = None
    reasons = []
    for option in options:
        answer = queries.ask(program, step, option)
        if answer.error:
            reasons.append(answer.error)
        elif not answer.is_reference:
            return option
        elif slow is None:
            slow = option
    if slow is None:
        raise UnsupportedError(f"{step.name}: {'; '.join(dict.fromkeys(reasons))}")
    return slow
