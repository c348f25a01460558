"""Lists the layouts that a step may be asked for: one tuple, operand by operand, for each candidate.

Nothing is decided here.  A library's rules (``core.layout.layout_rules``) say which kinds of steps are
offered images in each form, and which follow the layout in which their source already is; the rest works on
values as they stand.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeAlias

from tvm_mxplan.core.layout.layout import channels_blocked, channels_last, plain_layout, same_bytes
from tvm_mxplan.core.layout.layout_rules import LayoutRules
from tvm_mxplan.core.policies import Policy
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.core.program.operands import operands_of
from tvm_mxplan.core.step_facts import Layouts

_WEIGHTS = ("weights", "recurrence")
"""Roles of what libraries pack themselves."""
_AS_IT_STANDS = (*_WEIGHTS, "grid")
"""Those, and of what is no image though it has as many axes."""


RulesOf: TypeAlias = Callable[[ir.Step], LayoutRules]
"""Tells the rules of the library that runs a step; see ``Backend.layout_rules``."""


def image_layouts(rank: int, policy: Policy, rules: LayoutRules) -> list[str]:
    """Layouts of an image by preference: the form that the policy names, then the library's order."""
    named = sorted(rules.forms, key=lambda form: form != policy)
    layouts = {
        "last": channels_last(rank),
        "blocked": channels_blocked(rank, rules.block),
        "plain": plain_layout(rank),
    }
    return [layouts[form] for form in named]


def candidates(
    program: ir.Program, step: ir.Step, source_layout: str, policy: Policy, rules: LayoutRules
) -> list[Layouts]:
    """Candidates for ``step``, best guess first; ``source_layout`` is where its first source is now."""
    rank = len(program.values[step.dst].shape)
    own = _own(program, step)
    if isinstance(step.attrs, rules.sources):
        images = image_layouts(len(program.values[step.operand("src")].shape), policy, rules)
        return _distinct([in_layout(program, step, layout) for layout in (source_layout, *images)])
    if isinstance(step.attrs, ir.ConvolutionBackwardWeights):
        images = image_layouts(len(program.values[step.operand("src")].shape), policy, rules)
        return _distinct([*(in_layout(program, step, layout) for layout in images), own])
    if rules.copies and is_copy(program, step):
        images = image_layouts(rank, policy, rules) if 3 <= rank <= 5 else [plain_layout(rank)]
        alike = [(layout, layout) for layout in (source_layout, *images)]
        return _distinct([own, *alike, _plain(program, step)])
    if 3 <= rank <= 5 and rules.casts and is_cast(program, step):
        layouts = [source_layout, *image_layouts(rank, policy, rules)]
        plain = plain_layout(rank)
        mixed = [pair for layout in layouts for pair in ((plain, layout), (layout, plain))]
        pairs = [*((layout, layout) for layout in layouts), *mixed]
        return _distinct([*(_converting(program, step, *pair) for pair in pairs), own])
    if not (3 <= rank <= 5 and isinstance(step.attrs, rules.images + rules.follows)):
        return _distinct([own, _plain(program, step)])
    preferred = image_layouts(rank, policy, rules)
    if isinstance(step.attrs, rules.follows) or policy == "any":
        preferred = [source_layout, *preferred]
    return _distinct([*(uniform(program, step, layout) for layout in preferred), own])


def is_cast(program: ir.Program, step: ir.Step) -> bool:
    """True for a conversion into another type, which may be one into another layout as well."""
    types = (program.values[number].dtype for _, number in operands_of(step))
    return isinstance(step.attrs, ir.Quantization) or (
        isinstance(step.attrs, ir.Reorder) and len(set(types)) > 1
    )


def is_copy(program: ir.Program, step: ir.Step) -> bool:
    """True for a conversion into another layout alone."""
    return isinstance(step.attrs, ir.Reorder) and not is_cast(program, step)


def is_stored_alike(program: ir.Program, step: ir.Step, layouts: Layouts) -> bool:
    """True for a copy whose result, which nobody else sees, has the bytes of its source: it is no work."""
    result = program.values[step.dst]
    if not is_copy(program, step) or step.post_ops:
        return False
    source, target = layouts
    return result.kind == "local" and result.alias_of < 0 and same_bytes(source, target, result.shape)


def _converting(program: ir.Program, step: ir.Step, source: str, target: str) -> Layouts:
    """A cast out of one layout into another, the numbers that it goes by as they are."""
    chosen = {"src": source, "dst": target}
    return tuple(chosen.get(role, program.values[value].layout) for role, value in operands_of(step))


def options_of(program: ir.Program, step: ir.Step, rules: LayoutRules) -> list[Layouts]:
    """Every candidate for ``step``, for a choice by cost."""
    source = program.values[step.operand("src")]
    here = source.layout if is_copy(program, step) else plain_layout(len(source.shape))
    options = candidates(program, step, here, "cost", rules)
    shape = program.values[step.dst].shape
    if isinstance(step.attrs, rules.mixed) and len(shape) == 4:
        # A first layer with three channels may read the plain image and write any layout.
        options += [_with_source(step, option, plain_layout(4)) for option in options]
    few = len(shape) > 1 and isinstance(shape[1], int) and 2 * shape[1] <= rules.block
    if few and isinstance(step.attrs, rules.plain_results):
        # A last layer may read any layout and write the plain image.
        options += [_with_result(program, step, option) for option in options]
    return _distinct(options)


def in_layout(program: ir.Program, step: ir.Step, layout: str) -> Layouts:
    """The candidate that has every image of ``step`` in ``layout``."""
    if isinstance(step.attrs, ir.InnerProduct):
        return _with_source(step, _own(program, step), layout)
    if isinstance(step.attrs, ir.ConvolutionBackwardWeights):
        own = zip(operands_of(step), _own(program, step), strict=True)
        return tuple(plain if role == "dst" else layout for (role, _), plain in own)
    return uniform(program, step, layout)


def _with_source(step: ir.Step, layouts: Layouts, source_layout: str) -> Layouts:
    """``layouts`` with another one for the first source."""
    source = [role for role, _ in operands_of(step)].index("src")
    return (*layouts[:source], source_layout, *layouts[source + 1 :])


def _with_result(program: ir.Program, step: ir.Step, layouts: Layouts) -> Layouts:
    """``layouts`` with the result plain, and with it what is added to it as it stands."""
    shape = program.values[step.dst].shape
    return tuple(
        plain_layout(len(shape))
        if role not in ("src", *_AS_IT_STANDS) and program.values[value].shape == shape
        else layout
        for (role, value), layout in zip(operands_of(step), layouts, strict=True)
    )


def _own(program: ir.Program, step: ir.Step) -> Layouts:
    return tuple(program.values[value].layout for _, value in operands_of(step))


def _plain(program: ir.Program, step: ir.Step) -> Layouts:
    return tuple(
        program.values[value].layout if role in _WEIGHTS else plain_layout(len(program.values[value].shape))
        for role, value in operands_of(step)
    )


def uniform(program: ir.Program, step: ir.Step, layout: str) -> Layouts:
    """Every image in ``layout``; weights and parameters, which the backend packs itself, as they are."""
    rank = len(program.values[step.dst].shape)
    chosen = []
    for role, value in operands_of(step):
        shape, own = program.values[value].shape, program.values[value].layout
        broadcast = role in ("src1", "post_op") and all(dim == 1 for i, dim in enumerate(shape) if i != 1)
        if role == "src1" and shape[1:2] == program.values[step.dst].shape[1:2]:
            # A gate for each channel is read in the layout of what it multiplies, or by reference code.
            broadcast = program.values[program.root(value)].kind == "constant"
        image = role not in _AS_IT_STANDS and len(shape) == rank and not broadcast
        chosen.append(layout if image else own)
    return tuple(chosen)


def _distinct(items: Iterable[Layouts]) -> list[Layouts]:
    return list(dict.fromkeys(items))
