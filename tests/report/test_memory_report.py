"""Bytes by kind, the plan against bounds and yardsticks, and how it all prints, saves and loads."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET

import pytest

import tvm_mxplan
from tvm_mxplan.core.allocation import Item, Plan, Problem, Rectangle, Status, solve, validate
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.passes.memory import plan_memory
from tvm_mxplan.report.arena import memory_report, planned_arena
from tvm_mxplan.report.inspection import decoded_programs
from tvm_mxplan.report.memory_picture import Panel, memory_picture
from tvm_mxplan.report.memory_report import MemoryItem
from tvm_mxplan.report.report import Report
from tvm_mxplan.testing import zoo

SVG = "{http://www.w3.org/2000/svg}"


def value(name: str, kind: ir.ValueKind, shape: tuple[int, ...], layout: str, **fields: int) -> ir.Value:
    return ir.Value(name, shape, "float32", kind, layout, **fields)


def small_program() -> ir.Program:
    """t0 = relu(x); t1 = convolution(t0, w) with a scratchpad; t2 = relu(t1) in place; y = reorder(t2)."""
    shape, plain, blocked = (1, 17, 2, 2), "abcd", "aBcd16b"
    relu = ir.Eltwise("relu", 0.0, 0.0)
    one = ir.Convolution((1, 1), (0, 0, 0, 0), (1, 1), 1)
    values = (
        value("x", "input", shape, blocked, index=0, nbytes=512),
        value("w", "constant", (17, 17, 1, 1), plain, index=0),
        value("t0", "local", shape, blocked, nbytes=512, offset=0),
        value("t1", "local", shape, blocked, nbytes=512, offset=512),
        value("t2", "local", shape, blocked, alias_of=3, nbytes=512),
        value("y", "output", shape, plain, index=0, nbytes=272),
    )
    operands = [{"src": 0, "dst": 2}, {"src": 2, "weights": 1, "dst": 3}, {"src": 3, "dst": 4}]
    operands.append({"src": 4, "dst": 5})
    steps = [
        ir.Step(f"s{at}", attrs, tuple(ir.Operand(*pair) for pair in roles.items()), scratchpad_bytes=0)
        for at, (attrs, roles) in enumerate(zip((relu, one, relu, ir.Reorder()), operands, strict=True))
    ]
    steps[1] = ir.Step("s1", one, steps[1].operands, scratchpad_offset=1024, scratchpad_bytes=100)
    return ir.Program("small", values, tuple(steps), arena_bytes=1152)


def test_exact_bytes_of_a_small_program():
    report = memory_report(small_program())
    assert report.kinds == {
        "values": 1024,
        "scratchpads": 128,
        "constants": 17 * 17 * 4,
        "inputs": 512,
        "outputs": 272,
        "padding": 1024 - 2 * 17 * 4 * 4,
    }
    assert (report.height, report.lower_bound, report.stock, report.no_reuse) == (1152, 1152, 1152, 1152)
    assert report.tensors == 1024
    short = small_program().with_value(1, dtype="bfloat16")
    assert memory_report(short).kinds["constants"] == 17 * 17 * 2
    assert report.status == "optimal: equals the lower bound"
    assert report.items == (
        MemoryItem("t0", "values", 512, 0, 2, 0),
        MemoryItem("t1", "values", 512, 1, 4, 512),
        MemoryItem("s1.scratchpad", "scratchpads", 128, 1, 2, 1024),
    )
    assert str(report).splitlines() == [
        "memory 1,152 bytes (optimal: equals the lower bound; lower bound 1,152), TVM's reuse 1,152, "
        "no reuse 1,152",
        "tensors alone need 1,024; bytes by kind: values 1,024, scratchpads 128, constants 1,156, "
        "inputs 512, outputs 272; padding 480 of the values",
    ]


def test_a_plan_above_its_bound_says_how_much():
    program = small_program()
    wasteful = ir.Program(program.name, program.values, program.steps, arena_bytes=1728)
    assert memory_report(wasteful).status == "at most 50.0 % above the optimum"
    proof = Plan((), {"global": 1728}, {"global": 1152}, Status.EXHAUSTED, nodes=1234)
    assert memory_report(wasteful, proof).status == "optimal: search exhausted after 1,234 placements"
    proof = Plan((), {"global": 1728}, {"global": 1152}, Status.FEASIBLE, nodes=1234)
    expected = "at most 50.0 % above the optimum, 1,234 placements searched"
    assert memory_report(wasteful, proof).status == expected


def test_a_compilation_reports_what_the_solver_knew(monkeypatch):
    """The proof of a plan above its bound is not found again from its offsets."""

    def above(problem: Problem, **limits: int) -> Plan:
        plan = solve(problem, **limits)
        heights = {scope: height + 64 for scope, height in plan.heights.items()}
        return Plan(plan.offsets, heights, plan.lower_bounds, Status.EXHAUSTED, nodes=17)

    monkeypatch.setattr(plan_memory, "solve", above)
    (memory,) = tvm_mxplan.compile(zoo.load("tiny")).report.memory
    assert memory.height == memory.lower_bound + 64
    assert memory.status == "optimal: search exhausted after 17 placements"


def test_what_is_planned_at_run_time_has_no_report():
    program = small_program()
    assert memory_report(ir.Program(program.name, program.values, program.steps)) is None


def test_a_region_without_locals_has_an_empty_report():
    program = small_program()
    (step,) = [ir.Step("s", program.steps[0].attrs, (ir.Operand("src", 0), ir.Operand("dst", 1)))]
    values = (program.values[0], value("y", "output", (1, 17, 2, 2), "aBcd16b", index=0, nbytes=512))
    report = memory_report(ir.Program("direct", values, (step,), arena_bytes=0))
    assert (report.height, report.lower_bound, report.stock, report.no_reuse, report.items) == (
        0,
        0,
        0,
        0,
        (),
    )


@pytest.fixture(scope="module")
def ex() -> tvm_mxplan.Executable:
    ex = tvm_mxplan.compile(zoo.load("squeezenet"))
    assert ex.report.regions
    return ex


@pytest.mark.slow
def test_a_network_reports_its_arena(ex):
    (memory,) = ex.report.memory
    (region,) = ex.report.regions
    assert (memory.region, memory.height) == (region.name, region.arena_bytes)
    assert memory.lower_bound <= memory.height <= memory.stock <= memory.no_reuse
    assert memory.no_reuse == memory.kinds["values"] + memory.kinds["scratchpads"]
    assert memory.kinds["constants"] == region.constant_bytes
    assert memory.kinds["inputs"] == 3 * 224 * 224 * 4
    assert all(line in str(ex.report) for line in str(memory).splitlines())


def test_the_report_survives_json(ex):
    assert Report.from_json(json.loads(json.dumps(ex.report.to_json()))) == ex.report


def test_the_plan_of_a_compiled_module_is_valid_and_that_of_the_report(ex):
    (program,) = decoded_programs(ex.module)
    arena = planned_arena(program)
    assert validate(arena.problem, arena.plan) == []
    assert memory_report(program) == ex.report.memory[0]
    assert [len(names) for names in arena.names] == [len(i.rectangles) for i in arena.problem.items]


# --- the picture -------------------------------------------------------------------------------------------


def texts(svg: str, tag: str) -> list[str]:
    return [node.text or "" for node in ET.fromstring(svg).iter(SVG + tag)]


def test_the_picture_has_a_rectangle_with_a_title_for_each_of_the_plan():
    arena = planned_arena(small_program())
    svg = memory_picture([Panel(arena.name, arena.problem, arena.plan, arena.kinds, arena.names)])
    assert sorted(texts(svg, "title")) == [
        "s1.scratchpad\n128 bytes at 1,024\nsteps 1 to 1",
        "t0\n512 bytes at 0\nsteps 0 to 1",
        "t1\n512 bytes at 512\nsteps 1 to 2",
        "t2\n512 bytes at 512\nsteps 2 to 3",
    ]
    labels = texts(svg, "text")
    assert {"step", "bytes", "lower bound 1,152", "small: 1,152 bytes, lower bound 1,152"} <= set(labels)


def test_places_follow_steps_and_addresses():
    """Two items one after the other and one on top of the other: rectangles touch, and do not overlap."""
    items = (Item("a", (Rectangle(0, 1, 0, 64),)), Item("b", (Rectangle(1, 2, 0, 128),)))
    plan = Plan((0, 64), {"global": 192}, {"global": 128})
    svg = memory_picture([Panel("p", Problem(items), plan, ("values", "scratchpads"), (("a",), ("b",)))])
    root = ET.fromstring(svg)
    a, b = (
        [float(n.get(k)) for k in ("x", "y", "width", "height")]
        for n in root.iter(SVG + "rect")
        if n.find(SVG + "title") is not None
    )
    assert a[0] + a[2] == pytest.approx(b[0])
    assert b[1] + b[3] == pytest.approx(a[1])
    assert b[3] == pytest.approx(2 * a[3], rel=1e-3)


def test_names_are_escaped_and_regions_stacked():
    items = (Item('<a & "b">', (Rectangle(0, 1, 0, 64),)),)
    panel = Panel("<&>", Problem(items), Plan((0,), {"global": 64}), ("values",), (('<a & "b">',),))
    svg = memory_picture([panel, panel])
    assert [text.splitlines()[0] for text in texts(svg, "title")] == ['<a & "b">'] * 2
    assert len(ET.fromstring(svg).findall(SVG + "g")) == 2


def test_an_empty_plan_is_a_picture_too():
    svg = memory_picture([Panel("empty", Problem(()), Plan(()), (), ())])
    (panel,) = ET.fromstring(svg).findall(SVG + "g")
    assert any("empty" in text for text in texts(svg, "text"))
    assert [rect for rect in panel.iter(SVG + "rect") if rect.find(SVG + "title") is not None] == []
