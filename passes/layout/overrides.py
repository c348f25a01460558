"""Layouts that a user gives for single steps by name, while looking for what is slow or wrong.

``{"conv2d_3": "nChw16c"}``: the images that this step reads and writes stand so, all others are still chosen.
"""

from __future__ import annotations

from collections.abc import Mapping

from tvm_mxplan.core.layout.layout import parse_layout
from tvm_mxplan.core.layout.layout_names import image_layout, name_of
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.core.step_facts import Layouts
from tvm_mxplan.errors import InvalidInputError

from .candidates import RulesOf, in_layout, options_of
from .queries import StepQueries


def forced_layouts(
    program: ir.Program, layers: Mapping[str, str], queries: StepQueries, rules: RulesOf
) -> dict[str, Layouts]:
    """Layouts of the operands of the steps named in ``layers``; names of other programs' steps are ignored.

    Raises
    ------
    InvalidInputError : a layout that does not fit, or that the library refuses or has reference code for.
    """
    steps = {step.name: step for step in program.steps}
    return {
        name: _forced(program, steps[name], layout, queries, rules)
        for name, layout in layers.items()
        if name in steps
    }


def _forced(program: ir.Program, step: ir.Step, name: str, queries: StepQueries, rules: RulesOf) -> Layouts:
    rank = len(program.values[step.operand("src")].shape)
    try:
        tag = image_layout(name, rank, rules(step).block).tag
    except ValueError as error:
        raise InvalidInputError(f"option layers: {step.name}: {error}") from None
    written = [operand.role for operand in step.operands].index("dst")
    uniform = in_layout(program, step, tag)
    options = options_of(program, step, rules(step))
    # A first layer of three channels takes no blocks, but gives them.
    for layouts in (uniform, *(option for option in options if option[written] == tag)):
        if not _refusal(program, step, layouts, queries):
            return layouts
    taken = [option[written] for option in options if not _refusal(program, step, option, queries)]
    known = ", ".join(name_of(parse_layout(layout)) for layout in dict.fromkeys(taken)) or "no other"
    reason = _refusal(program, step, uniform, queries)
    raise InvalidInputError(
        f"option layers: {step.name} cannot run in {name} ({reason}); the layouts it takes: {known}"
    )


def _refusal(program: ir.Program, step: ir.Step, layouts: Layouts, queries: StepQueries) -> str:
    info = queries.ask(program, step, layouts)
    return info.error or (f"reference code only, {info.implementation}" if info.is_reference else "")
