"""``PlanMemory``: right plans, plans without reuse, and every injected fault caught, twice.

A fault goes to the validator, and past it into a run under watch.  Both must object to the same ones.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import onnx
import pytest
import tvm_ffi
from onnx import helper, numpy_helper

import tvm_mxplan
from tvm_mxplan.byoc.onednn import library
from tvm_mxplan.byoc.onednn.backend import OneDNN
from tvm_mxplan.core.allocation import Plan, Problem, solve, validate
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.core.program.dims import Symbol
from tvm_mxplan.errors import InternalError
from tvm_mxplan.passes.memory import plan_memory as pass_file
from tvm_mxplan.passes.memory.liveness import arena_problem
from tvm_mxplan.passes.memory.plan_memory import PlanMemory, plan_memory, stacked
from tvm_mxplan.report.arena import planned_arena
from tvm_mxplan.report.inspection import decoded_programs
from tvm_mxplan.testing import zoo
from tvm_mxplan.testing.reference import onnxruntime_outputs, worst_relative_l2


def program_of(name: str, **options: str) -> ir.Program:
    (program,) = decoded_programs(tvm_mxplan.compile(zoo.load(name), options=options).module)
    return program


@pytest.fixture(scope="module")
def tiny() -> ir.Program:
    program = program_of("tiny")
    assert len(arena_problem(program).problem.items) > 8
    return program


# --- without reuse -----------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("name", ["tiny", "squeezenet"])
def test_no_reuse_gives_the_same_bits_in_more_bytes(name):
    model = zoo.load(name)
    inputs = zoo.random_inputs(model)
    ex = tvm_mxplan.compile(model)
    apart = tvm_mxplan.compile(model, options={"memory": "no_reuse"})
    assert ex.report.regions
    expected, actual = ([tensor.numpy() for tensor in e(**inputs)] for e in (ex, apart))
    assert all(np.array_equal(a, b) for a, b in zip(expected, actual, strict=True))
    (memory,), (without,) = ex.report.memory, apart.report.memory
    assert without.height == without.no_reuse == memory.no_reuse > memory.height


@pytest.mark.parametrize("symbolic", [(0,), (1,), (0, 1, 2)])
def test_one_extent_that_is_not_known_leaves_the_plan_to_the_runtime(symbolic):
    """Whichever value has it."""
    relu = ir.Eltwise("relu", 0.0, 0.0)
    values = tuple(
        ir.Value(kind, (Symbol("n") if at in symbolic else 4, 3), "float32", kind, "ab", -1 if at == 1 else 0)
        for at, kind in enumerate(("input", "local", "output"))
    )
    steps = tuple(
        ir.Step(f"s{at}", relu, (ir.Operand("src", at), ir.Operand("dst", at + 1))) for at in range(2)
    )
    program = ir.Program("p", values, steps, (ir.SymbolBinding("n", 0, 0),))
    found, plan = plan_memory(program, OneDNN())
    assert plan is None and found.arena_bytes == -1 and found.values == program.values
    fixed = replace(program, values=tuple(replace(value, shape=(4, 3)) for value in values), symbols=())
    assert plan_memory(fixed, OneDNN()).plan is not None


def residual(*dims: str | int) -> onnx.ModelProto:
    """A convolution, and two behind it that are added to its result."""
    random = np.random.default_rng(3)
    weights = [
        numpy_helper.from_array(random.standard_normal((17, depth, 3, 3)).astype("float32") / 9, name)
        for name, depth in (("w0", 3), ("w1", 17), ("w2", 17))
    ]
    nodes = [
        helper.make_node("Conv", ["x", "w0"], ["a"], pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["a"], ["b"]),
        helper.make_node("Conv", ["b", "w1"], ["c"], pads=[1, 1, 1, 1]),
        helper.make_node("Conv", ["c", "w2"], ["d"], pads=[1, 1, 1, 1]),
        helper.make_node("Add", ["b", "d"], ["e"]),
        helper.make_node("GlobalAveragePool", ["e"], ["y"]),
    ]
    x = helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [dims[0], 3, *dims[1:]])
    y = helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, [dims[0], 17, 1, 1])
    graph = helper.make_graph(nodes, "residual", [x], [y], weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def test_named_sizes_have_results_in_place():
    """Right at several sizes, every step under watch."""
    model = residual("N", "H", "W")
    ex = tvm_mxplan.compile(model)
    (program,) = decoded_programs(ex.module)
    assert any(isinstance(op, ir.SumPostOp) for step in program.steps for op in step.post_ops)
    library.set_debug(True)
    try:
        for batch, height, width in ((1, 19, 23), (3, 5, 4), (2, 32, 9)):
            x = np.random.default_rng(batch).standard_normal((batch, 3, height, width), np.float32)
            expected = onnxruntime_outputs(model, {"x": x})
            assert worst_relative_l2(ex.run(x), expected) < 1e-5
    finally:
        library.set_debug(False)


def test_stacked_items_never_share_a_byte(tiny):
    problem = arena_problem(tiny).problem
    plan = stacked(problem)
    assert validate(problem, plan) == []
    forever = tuple(
        replace(item, rectangles=tuple(replace(r, birth=0, death=1) for r in item.rectangles))
        for item in problem.items
    )
    assert validate(Problem(forever), plan) == []


def test_what_is_done_without_being_asked():
    planner = PlanMemory(OneDNN())
    assert planner.reuse and not planner.reorder


def test_the_option_is_checked():
    with pytest.raises(tvm_mxplan.InvalidInputError, match="option memory='none'; expected one of reuse"):
        tvm_mxplan.Options(memory="none")


# --- lives -------------------------------------------------------------------------------------------------


def test_reading_a_whole_that_no_step_writes_keeps_its_pieces():
    """left and right are written into one value, which is read two steps later, then its left half again."""
    half, relu = (1, 8, 2, 2), ir.Eltwise("relu", 0.0, 0.0)
    values = [ir.Value("x", half, "float32", "input", "abcd", 0, nbytes=128)]
    values.append(ir.Value("whole", (1, 16, 2, 2), "float32", "local", "abcd", nbytes=256))
    for name, offset in (("left", 0), ("right", 128)):
        piece = ir.Value(name, half, "float32", "local", "abcd", alias_of=1, alias_offset=offset, nbytes=128)
        values.append(piece)
    values.append(ir.Value("between", half, "float32", "local", "abcd", nbytes=128))
    values.append(ir.Value("last", (1, 16, 2, 2), "float32", "local", "abcd", nbytes=256))
    reads_and_writes = [(0, 2), (0, 3), (0, 4), (1, 5), (2, 4)]
    steps = [
        ir.Step(f"s{at}", relu, (ir.Operand("src", src), ir.Operand("dst", dst)))
        for at, (src, dst) in enumerate(reads_and_writes)
    ]
    problem = arena_problem(ir.Program("region", tuple(values), tuple(steps))).problem
    (whole,) = [item for item in problem.items if item.name == "whole"]
    lives = {(r.offset, r.nbytes): (r.birth, r.death) for r in whole.rectangles}
    assert lives == {(0, 256): (3, 4), (0, 128): (0, 5), (128, 128): (1, 4)}


def test_only_what_owns_bytes_has_an_offset():
    """Value 0 is a local of the arena and value 1 a view of it; nobody touches value 2 and its view."""
    values = [ir.Value("a", (1, 16), "float32", "local", "ab", nbytes=64)]
    values.append(ir.Value("v", (16,), "float32", "local", "a", alias_of=0, nbytes=64))
    values.append(ir.Value("idle", (1, 16), "float32", "local", "ab", nbytes=64))
    values.append(ir.Value("w", (16,), "float32", "local", "a", alias_of=2, nbytes=64))
    values.append(ir.Value("x", (16,), "float32", "input", "a", 0, nbytes=64))
    step = ir.Step("s", ir.Eltwise("relu", 0.0, 0.0), (ir.Operand("src", 4), ir.Operand("dst", 1)))
    program = ir.Program("p", tuple(values), (step,))
    problem = arena_problem(program)
    placed = pass_file.with_offsets(program, problem, Plan((128,), {"global": 192}))
    assert [value.offset for value in placed.values] == [128, -1, 0, -1, -1]
    assert (placed.arena_bytes, placed.steps[0].scratchpad_offset) == (192, 0)


# --- faults ------------------------------------------------------------------------------------------------


def with_offsets(program: ir.Program, plan: Plan) -> ir.Program:
    """The program at other offsets, right or wrong."""
    posed = arena_problem(program)
    values, steps = list(program.values), list(program.steps)
    count = len(posed.values)
    for number, offset in zip(posed.values, plan.offsets[:count], strict=True):
        values[number] = replace(values[number], offset=offset)
    for at, offset in zip(posed.scratchpads, plan.offsets[count:], strict=True):
        steps[at] = replace(steps[at], scratchpad_offset=offset)
    return replace(program, values=tuple(values), steps=tuple(steps), arena_bytes=plan.height)


def run_objects(program: ir.Program) -> bool:
    """Whether the runtime objects to the program's plan: its rules before the run, or the watch over it."""
    rng = np.random.default_rng(0)

    def arrays(kind: ir.ValueKind) -> list[np.ndarray]:
        shapes = [program.values[number].shape for number in program.of_kind(kind)]
        return [rng.standard_normal([int(str(dim)) for dim in shape], np.float32) for shape in shapes]

    tensors = [tvm_ffi.from_dlpack(array) for array in (*arrays("input"), *arrays("output"))]
    try:
        module = library.create_module("region", program, arrays("constant"))
        module["region"](*tensors)
    except (RuntimeError, ValueError) as error:
        assert re.search("overlap|not written yet or overwritten|leaves the arena", str(error))
        return True
    return False


@pytest.fixture
def watched() -> Iterator[None]:
    library.set_debug(True)
    yield
    library.set_debug(False)


def test_the_right_plan_passes_both(tiny, watched):
    arena = planned_arena(tiny)
    assert validate(arena.problem, arena.plan) == []
    assert not run_objects(with_offsets(tiny, arena.plan))


@pytest.mark.parametrize("distance", [64, -64, 4096])
def test_every_offset_that_moved_is_caught(tiny, watched, distance):
    arena = planned_arena(tiny)
    caught = 0
    for at, offset in enumerate(arena.plan.offsets):
        if offset + distance < 0:
            continue
        offsets = list(arena.plan.offsets)
        offsets[at] += distance
        wrong = replace(arena.plan, offsets=tuple(offsets))
        reasons = validate(arena.problem, wrong)
        assert run_objects(with_offsets(tiny, wrong)) == bool(reasons), reasons
        caught += bool(reasons)
    assert caught >= 3


def test_every_life_cut_short_is_caught(tiny, watched):
    """A planner that believes a life ends one step early gives its bytes away too soon."""
    posed = arena_problem(tiny).problem
    caught = 0
    for at, item in enumerate(posed.items):
        longest = max(item.rectangles, key=lambda r: r.death)
        if longest.death - longest.birth < 2:
            continue
        short = tuple(
            replace(r, death=r.death - 1) if r.death == item.death and r.death - r.birth > 1 else r
            for r in item.rectangles
        )
        items = (*posed.items[:at], replace(item, rectangles=short), *posed.items[at + 1 :])
        wrong = solve(Problem(items))
        reasons = validate(posed, replace(wrong, lower_bounds={}))
        assert run_objects(with_offsets(tiny, wrong)) == bool(reasons), reasons
        caught += bool(reasons)
    assert caught >= 3


def test_random_plans_are_judged_alike(tiny, watched):
    arena = planned_arena(tiny)
    rng = random.Random(0)
    verdicts = []
    for spread in (1, 2, 8, 64):
        top = arena.plan.height * spread
        for _ in range(5):
            offsets = tuple(rng.randrange(0, top, 64) for _ in arena.problem.items)
            ends = [o + item.extent for o, item in zip(offsets, arena.problem.items, strict=True)]
            plan = Plan(offsets, {"global": max(ends)})
            verdicts.append(bool(validate(arena.problem, plan)))
            assert run_objects(with_offsets(tiny, plan)) == verdicts[-1]
    assert set(verdicts) == {True, False}


def test_a_wrong_plan_never_leaves_the_pass(tiny, monkeypatch):
    def careless(problem: Problem, **_limits: int) -> Plan:
        return replace(solve(problem), offsets=(0,) * len(problem.items))

    bare = tuple(replace(value, offset=-1) for value in tiny.values)
    monkeypatch.setattr(pass_file, "solve", careless)
    with pytest.raises(InternalError, match=r"the memory plan is wrong: items .* overlap"):
        plan_memory(replace(tiny, values=bare, arena_bytes=-1), OneDNN())
