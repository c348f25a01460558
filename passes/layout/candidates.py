"""Lists the layouts that a step may be asked for: one tuple, operand by operand, for each candidate.

Nothing is decided here.  Steps on images (convolution, pooling, ...) are offered channels last, channels
blocked and plain; steps that do not care follow the layout in which their source already is; the rest
works on values as they stand.
"""

from __future__ import annotations

from collections.abc import Iterable

from tvm_mxplan.core.layout.layout import channels_blocked, channels_last, plain_layout, same_bytes
from tvm_mxplan.core.policies import Policy
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.core.step_facts import Layouts, operands_of

IMAGE_STEPS = (
    ir.Convolution,
    ir.Deconvolution,
    ir.Pooling,
    ir.LRN,
    ir.Resampling,
    ir.Resize,
    ir.BatchNormalization,
    ir.Shuffle,
)
_WEIGHTS = ("weights", "recurrence")
"""Roles of what libraries pack themselves."""
AGNOSTIC_STEPS = (
    ir.Eltwise,
    ir.Binary,
    ir.Concat,
    ir.PReLU,
    ir.Pad,
    ir.Slice,
    ir.Reduction,
    ir.Softmax,
    ir.Select,
    ir.Compare,
    ir.Cast,
)


def image_layouts(rank: int, policy: Policy, block: int) -> list[str]:
    """Layouts of an image by preference."""
    last, blocked, plain = channels_last(rank), channels_blocked(rank, block), plain_layout(rank)
    return {"blocked": [blocked, last, plain], "plain": [plain, last, blocked]}.get(
        policy, [last, blocked, plain]
    )


def candidates(
    program: ir.Program, step: ir.Step, source_layout: str, policy: Policy, block: int
) -> list[Layouts]:
    """Candidates for ``step``, best guess first; ``source_layout`` is where its first source is now."""
    rank = len(program.values[step.dst].shape)
    own = _own(program, step)
    if isinstance(step.attrs, ir.InnerProduct):
        images = [
            source_layout,
            *image_layouts(len(program.values[step.operand("src")].shape), policy, block),
        ]
        return _distinct([in_layout(program, step, layout) for layout in images])
    if isinstance(step.attrs, ir.Reorder) and not is_cast(program, step):
        images = image_layouts(rank, policy, block) if 3 <= rank <= 5 else [plain_layout(rank)]
        alike = [(layout, layout) for layout in (source_layout, *images)]
        return _distinct([own, *alike, _plain(program, step)])
    if 3 <= rank <= 5 and is_cast(program, step):
        layouts = [source_layout, *image_layouts(rank, policy, block)]
        plain = plain_layout(rank)
        mixed = [pair for layout in layouts for pair in ((plain, layout), (layout, plain))]
        return _distinct([*((layout, layout) for layout in layouts), *mixed, own])
    if 3 <= rank <= 5 and isinstance(step.attrs, IMAGE_STEPS + AGNOSTIC_STEPS):
        preferred = image_layouts(rank, policy, block)
        if isinstance(step.attrs, AGNOSTIC_STEPS) or policy == "any":
            preferred = [source_layout, *preferred]
    else:
        return _distinct([own, _plain(program, step)])
    return _distinct([*(uniform(program, step, layout) for layout in preferred), own])


def is_cast(program: ir.Program, step: ir.Step) -> bool:
    """True for a conversion into another type, which may be one into another layout as well."""
    types = (program.values[number].dtype for _, number in operands_of(step))
    return isinstance(step.attrs, ir.Reorder) and len(set(types)) > 1


def is_stored_alike(program: ir.Program, step: ir.Step, layouts: Layouts) -> bool:
    """True for a copy whose result, which nobody else sees, has the bytes of its source: it is no work."""
    result = program.values[step.dst]
    if not isinstance(step.attrs, ir.Reorder) or is_cast(program, step) or step.post_ops:
        return False
    return result.kind == "local" and result.alias_of < 0 and same_bytes(*layouts, result.shape)


def options_of(program: ir.Program, step: ir.Step, block: int) -> list[Layouts]:
    """Every candidate for ``step``, for a choice by cost."""
    plain = plain_layout(len(program.values[step.operand("src")].shape))
    if isinstance(step.attrs, ir.Reorder) and not is_cast(program, step):
        plain = program.values[step.operand("src")].layout
    options = candidates(program, step, plain, "cost", block)
    if isinstance(step.attrs, ir.Convolution) and len(program.values[step.dst].shape) == 4:
        # A first layer with three channels may read the plain image and write any layout.
        options += [_with_source(step, option, plain_layout(4)) for option in options]
    return _distinct(options)


def in_layout(program: ir.Program, step: ir.Step, layout: str) -> Layouts:
    """The candidate that has every image of ``step`` in ``layout``."""
    if isinstance(step.attrs, ir.InnerProduct):
        return _with_source(step, _own(program, step), layout)
    return uniform(program, step, layout)


def _with_source(step: ir.Step, layouts: Layouts, source_layout: str) -> Layouts:
    """``layouts`` with another one for the first source."""
    source = [role for role, _ in operands_of(step)].index("src")
    return (*layouts[:source], source_layout, *layouts[source + 1 :])


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
        image = role not in _WEIGHTS and len(shape) == rank and not broadcast
        chosen.append(layout if image else own)
    return tuple(chosen)


def _distinct(items: Iterable[Layouts]) -> list[Layouts]:
    return list(dict.fromkeys(items))
