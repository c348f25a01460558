"""The choice of layouts over a whole region, with costs given by hand and a library that takes everything."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest
from agreeable_backend import Agreeable, rules

from tvm_mxplan.core.program import program as ir
from tvm_mxplan.core.program.builder import ProgramBuilder
from tvm_mxplan.core.program.operands import operands_of
from tvm_mxplan.errors import UnsupportedError
from tvm_mxplan.passes.layout.choose import LayoutChoice, LayoutChooser
from tvm_mxplan.passes.layout.queries import StepQueries

PLAIN, LAST, BLOCKED = "abcd", "acdb", "aBcd16b"
IMAGE = (1, 17, 6, 5)
POOL = ir.Pooling("max", (3, 3), (1, 1), (1, 1), (1, 1))
REORDER = 3.0


class Costs:
    """Costs of steps by name, in the layout of the result; every reorder costs the same."""

    measured = False

    def __init__(self, table: Mapping[str, Mapping[str, float]]) -> None:
        self.table = table
        self.asked: list[tuple[int, str, tuple[str, ...], str]] = []

    def __call__(self, _program, step, layouts, _info) -> float:
        roles = [role for role, _ in operands_of(step)]
        return self.table[step.name][layouts[roles.index("dst")]]

    def knows(self, _program, _step, _layouts) -> bool:
        return False

    def reorder(self, _program, value, layout, sources, reader) -> float:
        self.asked.append((value, layout, tuple(sources), reader[0].name if reader else ""))
        return REORDER

    def copies(self, _program, _step, _layouts) -> float:
        return 1.0


def prices(plain: float, last: float, blocked: float) -> dict[str, float]:
    return {PLAIN: plain, LAST: last, BLOCKED: blocked}


def chain(shape: tuple[int, ...], count: int = 2, output: bool = True) -> ir.Program:
    """y = pool1(pool0(x)), and so on."""
    b = ProgramBuilder("p")
    y = b.port("input", "x", shape, "float32")
    for _ in range(count):
        y = b.step("pool", POOL, shape, [("src", y)])
    if output:
        b.write_output(y, b.port("output", "y", shape, "float32"))
    return b.finish()


def choose(program: ir.Program, table: Mapping[str, Mapping[str, float]], **forced) -> LayoutChoice:
    queries = StepQueries(Agreeable())  # type: ignore[arg-type]
    return LayoutChooser(program, queries, Costs(table), rules, forced).choose()  # type: ignore[arg-type]


def results(choice: LayoutChoice) -> list[str]:
    return [layouts[-1] for layouts in choice.layouts]


def test_reorders_at_both_ends_are_paid_for():
    """Channels last saves 4 of each step: two reorders cost 6."""
    table = {"pool0": prices(50, 46, 90), "pool1": prices(50, 46, 90)}
    choice = choose(chain(IMAGE), table)
    assert (results(choice), choice.assignment.cost) == ([LAST, LAST], pytest.approx(98))
    table = {"pool0": prices(50, 48, 90), "pool1": prices(50, 48, 90)}
    choice = choose(chain(IMAGE), table)
    assert (results(choice), choice.assignment.cost) == ([PLAIN, PLAIN], pytest.approx(100))


def test_a_result_that_is_made_inside_the_output_is_wanted_plain():
    """The output is value 0 and the last step's result views it: the reorder at the end is paid for."""
    b = ProgramBuilder("p")
    out = b.port("output", "y", IMAGE, "float32")
    y = b.step("pool", POOL, IMAGE, [("src", b.port("input", "x", IMAGE, "float32"))])
    b.write_output(y, out)
    program = b.finish()
    assert program.values[y].alias_of == 0
    choice = choose(program, {"pool0": prices(50, 45, 90)})
    assert (results(choice), choice.assignment.cost) == ([PLAIN], pytest.approx(50))


@pytest.mark.parametrize("shape", [IMAGE, (1, 17, 2, 2), (1, 17, 1, 2), (3, 17, 2, 1)])
@pytest.mark.parametrize(("gain", "reorders"), [(1.0, False), (3.0, True)])
def test_a_reorder_in_the_middle_of_an_image_has_to_gain_two_per_cent(gain, reorders, shape):
    """Of 106 in all: 50 twice, and a reorder at each end."""
    table = {"pool0": prices(90, 50, 90), "pool1": prices(90, 50, 50 - REORDER - gain)}
    choice = choose(chain(shape), table)
    assert results(choice) == [LAST, BLOCKED if reorders else LAST]
    assert choice.assignment.cost == pytest.approx(106 - gain if reorders else 106)
    assert choice.assignment.lower_bound == pytest.approx(106 - gain)


def test_what_is_no_image_is_reordered_for_any_gain():
    """A single pixel: plain and channels last are the same bytes, so only blocks are another form."""
    table = {"pool0": prices(50, 50, 90), "pool1": prices(50, 50, 50 - 2 * REORDER - 0.1)}
    choice = choose(chain((1, 17, 1, 1)), table)
    assert results(choice)[1] == BLOCKED
    assert choice.assignment.cost == pytest.approx(99.9)


def test_a_layout_is_made_of_others_that_are_given() -> None:
    """Those that cost least first; nothing is a source of itself."""
    costs = Costs({"pool0": prices(50, 40, 45), "pool1": prices(50, 46, 90)})
    chooser = LayoutChooser(chain(IMAGE), StepQueries(Agreeable()), costs, rules, {})  # type: ignore[arg-type]
    chooser.choose()
    assert len(costs.asked) >= 6
    assert all(layout not in sources for _, layout, sources, _ in costs.asked)
    between = {layout: (sources, reader) for value, layout, sources, reader in costs.asked if value == 1}
    assert between == {
        PLAIN: ((LAST, BLOCKED), "pool1"),
        LAST: ((BLOCKED, PLAIN), "pool1"),
        BLOCKED: ((LAST, PLAIN), "pool1"),
    }


def test_a_forced_step_has_nothing_to_choose():
    table = {"pool0": prices(50, 40, 90), "pool1": prices(50, 40, 90)}
    choice = choose(chain(IMAGE), table, pool1=(BLOCKED, BLOCKED))
    assert choice.layouts[1] == (BLOCKED, BLOCKED)
    assert [one.layouts for one in choice.weighed["pool1"]] == [(BLOCKED, BLOCKED)]


def test_all_that_was_weighed_is_told():
    table = {"pool0": prices(50.25, 46.0, 47.5), "pool1": prices(50, 44, 90)}
    choice = choose(chain(IMAGE), table)
    told = {one.layouts[0]: (one.cost_us, one.out) for one in choice.weighed["pool0"]}
    assert told == {
        LAST: (46.0, ""),
        BLOCKED: (47.5, "costs 1.5 us more"),
        PLAIN: (50.25, "costs 4.2 us more"),
    }
    cheaper = {"pool0": prices(50.5, 49.0, 60), "pool1": prices(50, 60, 60)}
    told = {one.layouts[0]: one.out for one in choose(chain(IMAGE), cheaper).weighed["pool0"]}
    assert told[LAST] == "costs 1.5 us less alone, but more with the reorders around it"
    assert told[PLAIN] == ""


def test_a_view_wants_what_it_views_as_it_was_declared():
    """A flattened image is read plain; without the view channels last is cheaper."""
    for flattened in (False, True):
        b = ProgramBuilder("p")
        y = b.step("pool", POOL, IMAGE, [("src", b.port("input", "x", IMAGE, "float32"))])
        y = b.step("pool", POOL, IMAGE, [("src", y)])
        if flattened:
            b.reshape(y, (1, 510))
        table = {"pool0": prices(50, 45, 90), "pool1": prices(50, 46, 90)}
        choice = choose(b.finish(), table)
        expected = 45 + 46 + (2 if flattened else 1) * REORDER
        assert choice.assignment.cost == pytest.approx(min(expected, 100)), flattened


def test_a_view_of_a_constant_asks_for_nothing():
    """Constants are stored as they are wanted, and so is what views them."""
    costs = []
    for viewed in (False, True):
        b = ProgramBuilder("p")
        x = b.port("input", "x", IMAGE, "float32")
        slope = b.constant(np.ones((17, 1, 1), "float32"))
        if viewed:
            slope = b.reshape(slope, (1, 17, 1, 1))
        b.step("prelu", ir.PReLU(), IMAGE, [("src", x), ("weights", slope)])
        costs.append(choose(b.finish(), {"prelu0": prices(9, 2, 9)}).assignment.cost)
    assert costs == [pytest.approx(2 + REORDER)] * 2


def test_a_step_that_nothing_can_run_is_named():
    class Refusing(Agreeable):
        def describe(self, program):
            description = super().describe(program)
            steps = tuple(type(step)("", 0, 0, "none of that here") for step in description.steps)
            return type(description)(steps, description.values)

    chooser = LayoutChooser(chain(IMAGE), StepQueries(Refusing()), Costs({}), rules, {})  # type: ignore[arg-type]
    with pytest.raises(UnsupportedError, match=r"pool0: none of that here$"):
        chooser.choose()
