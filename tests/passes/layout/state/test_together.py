"""Regions of a function with state are one choice of layouts: forward is laid out for backward too."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
import tvm
from blocks import BLOCKED
from region_passes import region_passes
from relax_programs import parse

from tvm_mxplan.byoc.onednn.backend import OneDNN
from tvm_mxplan.core.decisions.choices import Choices
from tvm_mxplan.core.decisions.journal import Journal
from tvm_mxplan.core.machine import MachineRates, default_rates
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.core.program.operands import operands_of
from tvm_mxplan.passes.layout import InferLayouts
from tvm_mxplan.passes.region.attached import map_programs, program_of, regions

LAST, PLAIN = "acdb", "abcd"
REORDER = 30.0
POOL = "R.nn.max_pool2d({0}, pool_size=[{1}, {1}], padding=[{2}, {2}])"
LINES = f"""
a = {POOL.format("x", 3, 1)}
e = R.max(a, axis=[2, 3], keepdims=True)
b = R.cumsum(e, 1)
m = R.multiply(a, b)
d = {POOL.format("m", 5, 2)}
return d
"""
"""The cumulative sum is left to TVM, so ``a`` goes from one region to another one."""
X = 'x: R.Tensor((1, 64, 8, 8), "float32")'


class Costs:
    """Costs of pools in the layout of their results; what else there is costs nothing, reorders the same."""

    measured = False
    machine: MachineRates = default_rates()

    def __init__(self, first: dict[str, float], second: dict[str, float]) -> None:
        self.table = {3: first, 5: second}

    def __call__(self, _program, step, layouts, _info) -> float:
        if not isinstance(step.attrs, ir.Pooling) or step.attrs.kernel[0] not in self.table:
            return 0.0
        roles = [role for role, _ in operands_of(step)]
        return self.table[step.attrs.kernel[0]][layouts[roles.index("dst")]]

    modelled = __call__

    def knows(self, _program, _step, _layouts) -> bool:
        return False

    def reorder(self, _program, _value, _layout, _sources, _reader) -> float:
        return REORDER

    def copies(self, _program, _step, _layouts) -> float:
        return 1.0


FIRST = {PLAIN: 1000.0, LAST: 100.0, BLOCKED: 101.0}
SECOND = {PLAIN: 1000.0, LAST: 1000.0, BLOCKED: 100.0}


def layouts_of_pools(
    state: bool,
    costs: Costs,
    layers: Mapping[str, str] | None = None,
    journal: Journal | None = None,
    lines: str = LINES,
    parameters: str = X,
    choices: Choices | None = None,
) -> list[list[str]]:
    """The layouts of the results of pools, region by region."""
    mod = parse(lines, parameters)
    backend = OneDNN()
    mod = tvm.transform.Sequential(region_passes(backend, named=True))(mod)
    if state:
        mod = map_programs(mod, backend.name, lambda program: program.with_value(0, state=0)).mod
    mod = InferLayouts(backend, "cost", costs, layers or {}, choices, journal)(mod)
    found = []
    for _, function in sorted(regions(mod, "mxplan_onednn"), key=lambda item: item[0].name_hint):
        program = program_of(function)
        pools = [step for step in program.steps if isinstance(step.attrs, ir.Pooling)]
        timed = [step for step in pools if step.attrs.kernel[0] in costs.table]  # type: ignore[union-attr]
        found.append([program.values[step.dst].layout for step in timed])
    return [row for row in found if row]


@pytest.mark.parametrize(("state", "first"), [(False, LAST), (True, BLOCKED)])
def test_forward_is_laid_out_for_backward_where_state_changes(state: bool, first: str) -> None:
    """Alone the first region gains 1 by channels last, and makes the second one reorder at a cost of 30."""
    found = layouts_of_pools(state, Costs(FIRST, SECOND))
    assert len(found) == 2
    assert found == [[first], [BLOCKED]]


def test_a_layout_that_a_user_states_holds_for_its_step_and_is_told_of_that_alone() -> None:
    journal = Journal()
    found = layouts_of_pools(True, Costs(FIRST, SECOND), {"max_pool2d_0": "nhwc"}, journal)
    assert found == [[LAST], [BLOCKED]]
    forced = [journal.layouts[name].forced for name in sorted(journal.layouts)]
    assert [one for one in forced if one] == [("max_pool2d_0",)]


@pytest.mark.parametrize("state", [False, True])
def test_a_choice_is_taken_again_where_all_regions_that_it_was_made_for_are_the_same(state: bool) -> None:
    first = Choices()
    layouts_of_pools(state, Costs(FIRST, SECOND), choices=first)
    again, other = Choices(known=first.made), Choices(known=first.made)
    layouts_of_pools(state, Costs(FIRST, SECOND), choices=again)
    # The second region's window is another one; the first region is what it was.
    lines = LINES.replace("[5, 5]", "[7, 7]").replace("[2, 2]", "[3, 3]")
    assert lines != LINES
    layouts_of_pools(state, Costs(FIRST, SECOND), lines=lines, choices=other)
    assert (again.used, again.regions) == (first.regions, first.regions)
    assert other.used == (0 if state else first.regions - 1)


def test_regions_of_named_sizes_are_laid_out_alone() -> None:
    """Also where some of their tensors have known sizes."""
    lines = LINES.replace("m = R.multiply(a, b)", "s = R.multiply(a, b)\nm = R.multiply(s, w)")
    named = 'x: R.Tensor(("n", 64, 8, 8), "float32"), w: R.Tensor((1, 64, 1, 1), "float32")'
    for state in (False, True):
        assert layouts_of_pools(state, Costs(FIRST, SECOND), lines=lines, parameters=named)[0] == [LAST]
    known = named.replace('"n"', "2")
    assert layouts_of_pools(True, Costs(FIRST, SECOND), lines=lines, parameters=known)[0] == [BLOCKED]


def test_what_gains_more_than_the_reorder_costs_is_laid_out_on_its_own() -> None:
    found = layouts_of_pools(True, Costs({**FIRST, BLOCKED: 1000.0}, SECOND))
    assert found == [[LAST], [BLOCKED]]
