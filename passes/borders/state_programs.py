"""State in region programs: how steps want what outlives a call stored, and programs that store it so.

Before   v0 input w (64, 64, 3, 3) abcd;  v4 = v0 seen as bacd       convolution(x, v0), deconvolution(g, v4)
After    v0 input w (64, 64, 3, 3) ABcd16b16a;  v4 = v0 seen as BAcd16a16b

A step reads weights, or writes their gradient, in the layout that it wants or by a conversion inside of it
(``repacked``).  Winograd's algorithm transforms them out of any layout.  Weights of groups are seen in one
more axis, so their form has that shape.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from tvm_mxplan.core import program as ir
from tvm_mxplan.core.layout.layout import parse_layout, permute_layout, plain_layout, same_bytes
from tvm_mxplan.core.program.graph import Graph
from tvm_mxplan.core.program.operands import operands_of
from tvm_mxplan.core.step_facts import Layouts

from ..layout.queries import StepQueries

CONVERTING = (ir.Convolution, ir.Deconvolution, ir.ConvolutionBackwardWeights)
"""Steps that convert weights, or their gradient, inside of them."""
_ROLES = ("weights", "dst")


@dataclass(frozen=True)
class StoredForm:
    """The storage of a tensor: a shape of as many elements, and the layout of that shape."""

    shape: tuple[int, ...]
    layout: str

    def is_stored_as(self, other: StoredForm | None) -> bool:
        """Whether a tensor in another form, None for the plain one, has its bytes in this one's order."""
        layout = plain_layout(len(self.shape)) if other is None else other.layout
        return same_bytes(self.layout, layout, self.shape)


@dataclass(frozen=True)
class StateWish:
    """The form that a step wants: it makes that of any other by itself, or, giving it, any other of that."""

    step: str
    form: StoredForm
    gives: bool = False


@dataclass(frozen=True)
class SeenValue:
    """A value through a view: the shape that it is seen in, and the order in which its axes then stand."""

    shape: tuple[int, ...]
    order: tuple[int, ...]

    def layout(self, form: StoredForm) -> str:
        """The layout of the view of what is stored in ``form``."""
        axes = [self.order.index(at) for at in range(len(self.order))]
        return permute_layout(form.layout, axes)


def wishes_of(program: ir.Program, port: int, queries: StepQueries) -> list[StateWish] | None:
    """The wishes of the steps that read an input, or write an output; None if others use it too.

    Steps that read any form have none.

    Parameters
    ----------
    port : the number of the value.
    """
    graph, found = Graph(program), list[StateWish]()
    for value, seen in views_of(graph, port).items():
        if seen is None:
            return None
        users = set(graph.readers(value))
        writer = graph.writer(value)
        users |= set() if writer is None else {writer}
        for at in users:
            step = program.steps[at]
            if reads_any_form(step, value):
                continue
            layouts = tuple(program.values[number].layout for _, number in operands_of(step))
            form = wanted_form(program, step, layouts, value, seen, queries)
            if form is None:
                return None
            found.append(StateWish(step.name, form, value in step.results))
    return found


def reads_any_form(step: ir.Step, value: int) -> bool:
    """Whether a step reads a weight that is no constant in whatever form it stands, at no other cost."""
    roles = [role for role, number in operands_of(step) if number == value]
    return (
        isinstance(step.attrs, ir.Convolution | ir.Deconvolution)
        and step.attrs.algorithm != "direct"
        and roles == ["weights"]
    )


def stored(program: ir.Program, forms: Mapping[int, StoredForm]) -> ir.Program:
    """The program with inputs and outputs in these forms, by the numbers of their values."""
    graph, values = Graph(program), list(program.values)
    for port, form in forms.items():
        for value, seen in views_of(graph, port).items():
            assert seen is not None
            shape = form.shape if value == port else values[value].shape
            layout = form.layout if value == port else seen.layout(form)
            if value == port or seen.shape == form.shape:
                values[value] = replace(values[value], shape=shape, layout=layout, nbytes=-1)
    return replace(program, values=tuple(values))


def views_of(graph: Graph, port: int) -> dict[int, SeenValue | None]:
    """The value and all views of it; None for one that is more than a reshape and a permutation."""
    shape = tuple(int(extent) for extent in graph.values[port].shape)  # type: ignore[arg-type]
    found: dict[int, SeenValue | None] = {port: SeenValue(shape, tuple(range(len(shape))))}
    waiting = [port]
    while waiting:
        value = waiting.pop()
        for view in graph.views(value):
            found[view] = _through(graph.values[view], found[value])
            waiting.append(view)
    return found


def _through(view: ir.Value, base: SeenValue | None) -> SeenValue | None:
    """A view of what is seen so already."""
    parsed = parse_layout(view.layout)
    straight = base is not None and base.order == tuple(range(len(base.order)))
    if base is None or view.alias_offset != 0 or parsed.blocks or not straight:
        return None
    shape = tuple(int(extent) for extent in view.shape)  # type: ignore[arg-type]
    stands = tuple(shape[dim] for dim in parsed.order)
    return SeenValue(stands, parsed.order)


def wanted_form(
    program: ir.Program, step: ir.Step, layouts: Layouts, value: int, seen: SeenValue, queries: StepQueries
) -> StoredForm | None:
    """The form in which a step wants what it sees so; None for a step that has to find it as it is.

    Parameters
    ----------
    layouts : of the step's operands; that of ``value`` does not count.
    """
    operands = operands_of(step)
    places = [at for at, (_, number) in enumerate(operands) if number == value]
    if not isinstance(step.attrs, CONVERTING) or len(places) != 1 or operands[places[0]][0] not in _ROLES:
        return None
    if operands[places[0]][0] == "dst" and not isinstance(step.attrs, ir.ConvolutionBackwardWeights):
        return None
    open_ = tuple("any" if at == places[0] else layout for at, layout in enumerate(layouts))
    settled = queries.settle(program, step, open_)
    if settled is None:
        return None
    return StoredForm(seen.shape, permute_layout(settled[places[0]], seen.order))
