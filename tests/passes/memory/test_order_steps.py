"""Steps of a region in an order of smaller peak: what may not change places, exact bytes, and numbers."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest

import tvm_mxplan
from tvm_mxplan.byoc.onednn import library
from tvm_mxplan.byoc.onednn.backend import OneDNN
from tvm_mxplan.core.allocation import lower_bound
from tvm_mxplan.core.ordering import peak_of
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.passes.memory.liveness import arena_problem
from tvm_mxplan.passes.memory.order_steps import order_steps, step_graph
from tvm_mxplan.passes.memory.plan_memory import plan_memory
from tvm_mxplan.report.inspection import decoded_programs
from tvm_mxplan.testing import zoo

WIDE, NARROW = (1, 64, 16, 16), (1, 64, 4, 4)
SQUARE = ir.Eltwise("square", 0.0, 0.0)
POOL = ir.Pooling("max", (4, 4), (4, 4), (0, 0), (1, 1))


class Region:
    """A program in the making: every value is named by the step that writes it."""

    def __init__(self) -> None:
        self.values = [ir.Value("x", WIDE, "float32", "input", "abcd", index=0, nbytes=65536)]
        self.steps: list[ir.Step] = []

    def add(self, attrs: ir.Attributes, shape: tuple[int, ...], *sources: int, **fields: object) -> int:
        nbytes = 4 * int(np.prod(shape))
        place = {"kind": "local", "layout": "abcd", "nbytes": nbytes} | fields
        self.values.append(ir.Value(f"v{len(self.values)}", shape, "float32", **place))  # type: ignore[arg-type]
        dst = len(self.values) - 1
        roles = [ir.Operand("src" if at == 0 else "src1", src) for at, src in enumerate(sources)]
        name = f"s{len(self.steps)}"
        self.steps.append(ir.Step(name, attrs, (*roles, ir.Operand("dst", dst)), scratchpad_bytes=0))
        return dst

    def build(self) -> ir.Program:
        return ir.Program("region", tuple(self.values), tuple(self.steps))


def branches() -> ir.Program:
    """Three wide values, each pooled and then added up; in the given order all wide ones come first."""
    region = Region()
    wide = [region.add(SQUARE, WIDE, 0) for _ in range(3)]
    narrow = [region.add(POOL, NARROW, value) for value in wide]
    total = region.add(ir.Binary("add"), NARROW, *narrow[:2])
    region.add(ir.Binary("add"), NARROW, total, narrow[2], kind="output", index=0)
    return region.build()


def test_branches_run_one_after_the_other():
    program = branches()
    ordered = order_steps(program)
    assert sorted(step.name for step in ordered.steps) == sorted(step.name for step in program.steps)
    assert lower_bound(arena_problem(program).problem) == 3 * 65536 + 4096
    assert lower_bound(arena_problem(ordered).problem) == 65536 + 2 * 4096
    keep = plan_memory(program, OneDNN()).program
    assert [step.name for step in keep.steps] == [step.name for step in program.steps]
    assert plan_memory(program, OneDNN(), reorder=True).program.arena_bytes < keep.arena_bytes


def run(program: ir.Program) -> np.ndarray:
    x = np.random.default_rng(0).standard_normal(WIDE).astype("float32")
    out = np.empty(NARROW, "float32")
    library.create_module("region", program, ())["region"](x, out)
    return out


def test_numbers_stay():
    program = branches()
    expected = run(plan_memory(program, OneDNN()).program)
    assert np.isfinite(expected).all()
    library.set_debug(True)
    try:
        np.testing.assert_array_equal(run(plan_memory(program, OneDNN(), reorder=True).program), expected)
    finally:
        library.set_debug(False)


def in_place() -> ir.Program:
    """v1; v2 = v1^2 in place; v3 reads v1 before that, v4 reads v2 after it."""
    region = Region()
    first = region.add(SQUARE, WIDE, 0)
    region.add(POOL, NARROW, first)
    over = region.add(SQUARE, WIDE, first, alias_of=first)
    region.add(POOL, NARROW, over, kind="output", index=0)
    return region.build()


def test_steps_that_touch_the_same_bytes_keep_their_order():
    """In ``in_place`` no two steps may change places, whatever that would save."""
    graph = step_graph(in_place())
    place = list(graph.edges())
    legal = [
        order
        for order in permutations(range(4))
        if all(order.index(earlier) < order.index(later) for earlier, later in place)
    ]
    assert legal == [(0, 1, 2, 3)]


def test_a_result_in_place_takes_no_bytes_of_its_own():
    program = in_place()
    assert peak_of(step_graph(program), range(4)) == 65536 + 4096
    assert lower_bound(arena_problem(program).problem) == 65536 + 4096


def test_pieces_are_written_in_any_order_but_before_the_whole_is_read():
    region = Region()
    whole = region.add(SQUARE, (1, 128, 16, 16), 0)  # a step to be thrown away: pieces write the whole
    region.steps.clear()
    for at in range(2):
        region.add(SQUARE, WIDE, 0, alias_of=whole, alias_offset=at * 65536)
    region.add(POOL, (1, 128, 4, 4), whole, kind="output", index=0)
    assert set(step_graph(region.build()).edges()) == {(0, 2), (1, 2)}


@pytest.mark.slow
@pytest.mark.parametrize("name", ["resnet18", "squeezenet", "inception_v1"])
def test_networks_are_counted_exactly(name):
    """The order is chosen by the lower bound of the arena."""
    (program,) = decoded_programs(tvm_mxplan.compile(zoo.load(name)).module)
    bound = lower_bound(arena_problem(program).problem)
    assert peak_of(step_graph(program), range(len(program.steps))) == bound


@pytest.mark.slow
def test_shufflenet_needs_less_in_another_order():
    """The shorter branch of a unit waits with less; the order is changed only if asked for."""
    model = zoo.load("shufflenet")
    kept = tvm_mxplan.compile(model)
    ordered = tvm_mxplan.compile(model, options={"order": "memory"})
    (before,), (after,) = kept.report.regions, ordered.report.regions
    assert sorted(s.implementation for s in before.steps) == sorted(s.implementation for s in after.steps)
    assert after.arena_bytes < before.arena_bytes
    x = zoo.random_inputs(model)
    np.testing.assert_array_equal(ordered(**x)[0].numpy(), kept(**x)[0].numpy())
