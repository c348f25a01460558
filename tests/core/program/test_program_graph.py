"""Programs opened for rewriting: each answer after every change equals what a program written anew says."""

from __future__ import annotations

import random

import pytest

from tvm_mxplan.core.program import program as ir
from tvm_mxplan.core.program.graph import Graph
from tvm_mxplan.core.program.operands import operands_of, with_operands
from tvm_mxplan.core.program.renumber import sort_values

RELU = ir.Eltwise("relu", 0.0, 0.0)


def value(name: str, kind: ir.ValueKind = "local", index: int = -1, alias_of: int = -1) -> ir.Value:
    return ir.Value(name, (7,), "float32", kind, "a", index, alias_of)


def relu(name: str, src: int, dst: int) -> ir.Step:
    return ir.Step(name, RELU, (ir.Operand("src", src), ir.Operand("dst", dst)))


def lstm(src: int, *results: int) -> ir.Step:
    roles = zip(("dst", "last_hidden", "last_cell"), results, strict=True)
    operands = (ir.Operand("src", src), *(ir.Operand(role, number) for role, number in roles))
    return ir.Step("lstm", ir.Recurrent("lstm", "forward"), operands)


def chain(*steps: ir.Step, count: int = 6) -> ir.Program:
    """Value 0 is the input x, 1 the output y, the others a, b, c, ... are locals."""
    values = [value("x", "input", 0), value("y", "output", 0)]
    values += [value(chr(ord("a") + at)) for at in range(count)]
    return ir.Program("p", tuple(values), steps)


def written(program: ir.Program) -> list[str]:
    """Steps as ``name(read, ...) -> written, ...``, by the names of values."""
    names = [value.name for value in program.values]
    lines = []
    for step in program.steps:
        results = ", ".join(names[number] for number in step.results)
        lines.append(f"{step.name}({', '.join(names[number] for number in step.reads())}) -> {results}")
    return lines


# --- steps come and go --------------------------------------------------------------------------------------


def test_every_result_has_its_writer() -> None:
    graph = Graph(chain(lstm(0, 2, 3, 4), relu("r", 3, 5)))
    assert [graph.writer(number) for number in (0, 2, 3, 4, 5)] == [None, 0, 0, 0, 1]
    assert graph.producer(3) == 0 and graph.producer(2) is None
    graph.drop(0)
    assert [graph.writer(number) for number in (2, 3, 4)] == [None] * 3


def test_inserted_steps_stand_around_in_the_order_of_their_calls() -> None:
    graph = Graph(chain(relu("one", 0, 2), relu("two", 2, 1)))
    graph.insert_before(1, relu("before", 0, 3))
    at = graph.insert_before(1, relu("again", 0, 4))
    graph.insert_after(0, relu("after", 0, 5))
    graph.insert_before(at, relu("inner", 0, 6))
    graph.insert_after(1, relu("last", 2, 7))
    order = ["one", "after", "before", "inner", "again", "two", "last"]
    assert [step.name for step in graph.finish().steps] == order
    graph.drop(1)
    graph.drop(at)
    order = ["one", "after", "before", "inner", "last"]
    assert [step.name for step in graph.finish().steps] == order


def test_readers_count_each_operand() -> None:
    twice = ir.Step(
        "mul", ir.Binary("mul"), tuple(ir.Operand(r, v) for r, v in (("src", 2), ("src1", 2), ("dst", 1)))
    )
    graph = Graph(chain(relu("one", 0, 2), twice, relu("two", 2, 3)))
    assert (graph.readers(2), graph.reads(2)) == ([1, 2], 3)
    graph.drop(1)
    assert (graph.readers(2), graph.reads(2), graph.is_private(2)) == ([2], 1, True)
    assert (graph.readers(9), graph.reads(9), graph.views(9)) == ([], 0, [])


# --- values -------------------------------------------------------------------------------------------------


def test_roots_follow_every_alias() -> None:
    """Also through values that owned their bytes when they were asked for."""
    graph = Graph(chain(relu("one", 0, 2)))
    view = graph.add(value("view", alias_of=2))
    deeper = graph.add(value("deeper", alias_of=view))
    assert (graph.root(deeper), graph.views(2), graph.is_private(2)) == (2, [view], False)
    graph.alias(2, 3, 28)
    assert (graph.root(deeper), graph.values[2].alias_offset) == (3, 28)
    assert graph.chain(deeper) == [deeper, view, 2, 3]
    with pytest.raises(AssertionError, match="a has no bytes of its own"):
        graph.alias(2, 4)


def test_a_view_in_the_place_of_what_a_step_wrote() -> None:
    """As when a step is put before the view that it read; what viewed its source is forgotten."""
    program = chain(relu("one", 0, 2), relu("two", 3, 4), relu("three", 4, 1))
    graph = Graph(program.with_value(3, alias_of=2))
    assert not graph.is_private(2)
    made = graph.add(value("made"))
    graph.replace(1, relu("two", 2, made))
    graph.forget_views(2)
    graph.alias(4, made, layout="a")
    assert (graph.root(4), graph.views(made), graph.views(2)) == (made, [4], [])
    assert graph.is_private(2) and graph.producer(2) == 0 and not graph.is_private(made)
    finished = sort_values(graph.finish())
    assert written(finished) == ["one(x) -> a", "two(a) -> made", "three(c) -> y"]
    assert [one.name for one in finished.values] == ["x", "y", "a", "made", "c"]


def test_a_renamed_value_is_gone_everywhere() -> None:
    post_op = ir.Step("mul", ir.Binary("mul"), relu("", 0, 3).operands, (ir.BinaryPostOp("add", 2),))
    graph = Graph(chain(relu("one", 0, 2), post_op, relu("two", 3, 1)))
    view = graph.add(value("view", alias_of=2))
    assert graph.root(view) == 2
    graph.insert_after(2, relu("three", view, 4))
    graph.rename(2, 5)
    assert (graph.root(view), graph.writer(2), graph.writer(5), graph.readers(5)) == (5, None, 0, [1])
    assert written(graph.finish()) == ["one(x) -> d", "mul(x, d) -> b", "two(b) -> y", "three(view) -> c"]
    assert "a" not in [one.name for one in graph.finish().values]


def test_unused_locals_go_and_ports_stay() -> None:
    graph = Graph(chain(relu("one", 0, 2), relu("two", 2, 1)))
    constant = graph.add(value("k", "constant", 0))
    assert [one.name for one in graph.finish().values] == ["x", "y", "a", "k"]
    assert [one.name for one in graph.finish({constant}).values] == ["x", "y", "a"]
    graph.drop(1)
    assert [one.name for one in graph.finish({1, constant}).values] == ["x", "a"]


@pytest.mark.parametrize("seed", range(30))
def test_random_changes_leave_the_same_answers(seed: int) -> None:
    """After each change the graph answers as one that is opened anew."""
    chance = random.Random(seed)
    count = 9
    steps = [relu(f"s{at}", chance.randrange(at + 1), at + 1) for at in range(count)]
    values = [value("v0", "input", 0), *(value(f"v{at + 1}") for at in range(count))]
    graph = Graph(ir.Program("p", tuple(values), tuple(steps)))
    for turn in range(12):
        alive = [at for at, step in enumerate(graph.steps) if step]
        number, at = chance.randrange(len(graph.values)), chance.choice(alive)
        step = graph.steps[at]
        assert step
        match chance.randrange(5):
            case 0 if len(alive) > 2:
                graph.drop(at)
            case 1:
                graph.insert_before(at, relu(f"i{turn}", number, graph.add(value(f"n{turn}"))))
            case 2:
                graph.replace(at, with_operands(step, [number, step.dst]))
            case 3:
                graph.rename(number, graph.add(value(f"n{turn}")))
            case 4:
                graph.add(value(f"n{turn}", alias_of=number))
        everything = [s for s in graph.steps if s]
        anew = Graph(ir.Program("p", tuple(graph.values), tuple(everything)))
        for one in range(len(graph.values)):
            assert graph.reads(one) == anew.reads(one)
            assert graph.root(one) == anew.root(one)
            assert sorted(graph.views(one)) == sorted(anew.views(one))
            assert graph.is_private(one) == anew.is_private(one)
            mine, theirs = graph.writer(one), anew.writer(one)
            assert (mine is None) == (theirs is None)
    finished = sort_values(graph.finish())
    names = [one.name for one in finished.values]
    assert sorted(names[number] for step in finished.steps for _, number in operands_of(step)) == sorted(
        graph.values[number].name for step in graph.steps if step for _, number in operands_of(step)
    )


def test_values_that_no_step_took_are_forgotten_with_their_views() -> None:
    graph = Graph(chain(relu("first", 0, 2), relu("second", 2, 1)))
    count = len(graph.values)
    view = graph.add(value("view", alias_of=2))
    graph.add(value("view of it", alias_of=view))
    of_input = graph.add(value("view of x", alias_of=0))
    assert (graph.views(2), graph.views(0)) == ([view], [of_input]) and not graph.is_private(2)
    graph.forget(count)
    assert len(graph.values) == count and graph.views(2) == graph.views(0) == []
    assert graph.is_private(2) and graph.root(2) == 2
