"""Regions know of each other while their layouts are chosen, in the order of their calls."""

from __future__ import annotations

import tvm
from blocks import BLOCKED
from region_passes import region_passes
from relax_programs import parse
from tvm import tirx

from tvm_mxplan.byoc.onednn.backend import OneDNN
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.passes.borders.neighbours import Neighbours
from tvm_mxplan.passes.layout.infer_layouts import infer_layouts
from tvm_mxplan.passes.region.attached import program_of, regions

PARAMETERS = 'x: R.Tensor((1, 64, 8, 8), "float32")'
POOL = "R.nn.max_pool2d({0}, pool_size=[{1}, {1}], padding=[{2}, {2}])"


def regions_of(lines: str) -> tuple[tvm.IRModule, list[ir.Program]]:
    """A module with plain regions, and their programs by name."""
    backend = OneDNN()
    passes = region_passes(backend)
    mod = tvm.transform.Sequential(passes)(parse(lines, PARAMETERS))
    found = sorted(regions(mod, "mxplan_onednn"), key=lambda item: item[0].name_hint)
    return mod, [program_of(function) for _, function in found]


def borders(program: ir.Program) -> tuple[list[str], int]:
    """Layouts of the inputs, and how many outputs there are."""
    return [program.values[value].layout for value in program.of_kind("input")], len(
        program.of_kind("output")
    )


def test_the_second_region_is_told_what_the_first_one_gives():
    lines = f"a = {POOL.format('x', 3, 1)}\nb = R.sin(a)\nc = {POOL.format('b', 5, 2)}\nreturn c"
    for policy, layout in (("channels_last", "acdb"), ("blocked", BLOCKED), ("plain", "abcd")):
        mod, (first, second) = regions_of(lines)
        neighbours = Neighbours(mod, "mxplan_onednn")
        assert borders(neighbours.seen_by(first)) == (["abcd"], 0)  # its result need not be plain
        assert neighbours.seen_by(second) == second  # nothing is known yet, and its result is the function's
        neighbours.chosen(infer_layouts(first, OneDNN(), policy)[0])  # type: ignore[arg-type]
        assert borders(neighbours.seen_by(second)) == ([layout], 1)


def test_a_region_that_is_called_twice_assumes_nothing():
    lines = f"a = {POOL.format('x', 3, 1)}\nb = R.sin(a)\nc = {POOL.format('b', 3, 1)}\nreturn c"
    mod, programs = regions_of(lines)
    (program,) = programs
    neighbours = Neighbours(mod, "mxplan_onednn")
    neighbours.chosen(infer_layouts(program, OneDNN(), "channels_last")[0])
    assert neighbours.seen_by(program) == program


def test_what_is_read_elsewhere_stays_plain():
    lines = f"a = {POOL.format('x', 3, 1)}\nb = R.cumsum(a, 1)\nc = {POOL.format('b', 5, 2)}\nreturn c"
    mod, (first, second) = regions_of(lines)
    neighbours = Neighbours(mod, "mxplan_onednn")
    assert neighbours.seen_by(first) == first
    neighbours.chosen(infer_layouts(first, OneDNN(), "channels_last")[0])
    assert neighbours.seen_by(second) == second


def test_kernels_and_functions_without_regions_say_nothing():
    lines = f"a = {POOL.format('x', 3, 1)}\nb = R.sin(a)\nc = {POOL.format('b', 5, 2)}\nreturn c"
    mod, programs = regions_of(lines)
    alone = [Neighbours(mod, "mxplan_onednn").seen_by(program) for program in programs]
    mod[tvm.ir.GlobalVar("kernel")] = tirx.PrimFunc([], tirx.Evaluate(0))
    mod[tvm.ir.GlobalVar("other")] = parse("return R.exp(x)", PARAMETERS)["main"].with_attr(
        "global_symbol", "other"
    )
    assert [Neighbours(mod, "mxplan_onednn").seen_by(program) for program in programs] == alone
    assert alone != programs
