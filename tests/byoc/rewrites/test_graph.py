"""Programs opened for rewriting: what may be taken in, constants behind views, what is left in the end."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tvm_mxplan.byoc.rewrites.graph import Graph
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.core.program.builder import ProgramBuilder
from tvm_mxplan.core.program.dims import Symbol

RELU = ir.Eltwise("relu", 0.0, 0.0)
ARRAY = np.arange(24, dtype="float32").reshape(2, 3, 4)


def chain(count: int) -> tuple[ProgramBuilder, list[int]]:
    """relu2(relu1(relu0(x))), and the values from x on; the last one is the output's."""
    b = ProgramBuilder("p")
    values = [b.port("input", "x", (2, 3), "float32")]
    out = b.port("output", "y", (2, 3), "float32")
    for _ in range(count):
        values.append(b.step("relu", RELU, (2, 3), [("src", values[-1])]))
    b.write_output(values[-1], out)
    return b, values


def view_of(b: ProgramBuilder, value: int, shape: tuple[int, ...], layout: str = "") -> int:
    """A view of a value, whatever that views itself."""
    seen = b.reshape(value, shape)
    b.values[seen] = replace(b.values[seen], alias_of=value, layout=layout or b.values[seen].layout)
    return seen


def test_who_writes_what_only_one_step_reads() -> None:
    b, (x, first, second, last) = chain(3)
    graph = Graph(b.finish(), [])
    assert [graph.producer(value) for value in (x, first, second, last)] == [None, 0, 1, None]


@pytest.mark.parametrize("also", ["reader", "view", "twice"])
def test_what_something_else_sees_is_not_private(also: str) -> None:
    b, (_, first, _, _) = chain(3)
    if also == "reader":
        b.step("relu", RELU, (2, 3), [("src", first)])
    elif also == "view":
        b.reshape(first, (6,))
    else:
        operand = b.steps[1].operands[0]
        b.steps[1] = ir.Step("relu1", RELU, (operand, *b.steps[1].operands))
    graph = Graph(b.finish(), [])
    assert not graph.is_private(first)
    assert graph.producer(first) is None


def test_a_value_with_the_bytes_of_the_first_one_is_not_private() -> None:
    """The output is value 0 here, and what aliases it is seen from outside."""
    b = ProgramBuilder("p")
    out = b.port("output", "y", (2, 3), "float32")
    y = b.step("relu", RELU, (2, 3), [("src", b.port("input", "x", (2, 3), "float32"))])
    b.write_output(y, out)
    b.step("relu", RELU, (2, 3), [("src", y)])
    graph = Graph(b.finish(), [])
    assert graph.values[y].alias_of == 0
    assert not graph.is_private(y)


def test_merged_steps_are_told_by_the_one_that_is_left() -> None:
    b, values = chain(4)
    graph = Graph(b.finish(), [])
    names = [step.name for step in graph.steps if step]
    both = ir.Step(names[1], RELU, (ir.Operand("src", values[0]), ir.Operand("dst", values[2])))
    graph.merge(0, 1, both)
    assert graph.fused() == {names[0]: names[1]}
    graph.drop_into(1, names[3])
    graph.replace(2, ir.Step(names[2], RELU, (ir.Operand("src", values[0]), ir.Operand("dst", values[3]))))
    assert graph.fused() == {names[0]: names[3], names[1]: names[3]}
    program, _ = graph.close()
    assert [step.name for step in program.steps] == names[2:]
    assert [value.name for value in program.values] == ["x", "y", names[2], names[3]]


def test_constants_behind_views() -> None:
    b = ProgramBuilder("p")
    whole = b.constant(ARRAY)
    flat = b.reshape(whole, (6, 4))
    turned = b.permute(flat, (1, 0))
    graph = Graph(b.finish(), b.constants)
    np.testing.assert_array_equal(graph.constant(whole), ARRAY)  # type: ignore[arg-type]
    np.testing.assert_array_equal(graph.constant(flat), ARRAY.reshape(6, 4))  # type: ignore[arg-type]
    np.testing.assert_array_equal(graph.constant(turned), ARRAY.reshape(6, 4).T)  # type: ignore[arg-type]
    cube = b.permute(whole, (2, 0, 1))
    graph = Graph(b.finish(), b.constants)
    np.testing.assert_array_equal(graph.constant(cube), ARRAY.transpose(2, 0, 1))  # type: ignore[arg-type]


def test_what_is_no_whole_constant_has_no_numbers() -> None:
    b = ProgramBuilder("p")
    x, whole = b.port("input", "x", (2, 3, 4), "float32"), b.constant(ARRAY)
    view = view_of(b, view_of(b, whole, (24,)), (6, 4))
    program = b.finish()
    assert Graph(program, b.constants).constant(x) is None
    assert Graph(program, b.constants).constant(view) is not None
    for number in (view, view - 1):
        shifted = Graph(program.with_value(number, alias_offset=16), b.constants)
        assert shifted.constant(view) is None, "a part of it, which may begin anywhere in the chain"
    assert Graph(program.with_value(view, layout="aB4b"), b.constants).constant(view) is None
    assert Graph(program.with_value(view, shape=(Symbol("n"), 4)), b.constants).constant(view) is None
    assert Graph(program.with_value(whole, layout="acb"), b.constants).constant(view) is None


def test_what_is_added_and_what_nothing_uses() -> None:
    b, values = chain(1)
    b.constant(ARRAY, "unused")
    graph = Graph(b.finish(), b.constants)
    weights = graph.add_constant(np.ones((2, 3), "float64"), "w")
    local = graph.add_local("l", (2, 3))
    assert graph.values[local] == ir.Value("l", (2, 3), "float32", "local", "ab")
    assert (graph.values[weights].dtype, graph.values[weights].index) == ("float32", 1)
    operands = (ir.Operand("src", values[0]), ir.Operand("src1", weights), ir.Operand("dst", local))
    graph.insert_before(0, ir.Step("mul", ir.Binary("mul"), operands))
    assert graph.producer(local) is None, "nothing reads it"
    program, constants = graph.close()
    assert [value.name for value in program.values] == ["x", "y", "relu0", "w", "l"]
    assert program.values[3].index == 0
    assert len(constants) == 1 and constants[0].dtype == np.float32


def test_views_follow_what_they_view() -> None:
    """Values in front of both are gone in the end; a view of a view keeps its chain."""
    b = ProgramBuilder("p")
    b.constant(ARRAY, "unused")
    x, out = b.port("input", "x", (2, 12), "float32"), b.port("output", "y", (24,), "float32")
    b.step("relu", RELU, (2, 12), [("src", x)])
    first = b.step("relu", RELU, (2, 12), [("src", x)])
    turned = view_of(b, view_of(b, first, (3, 8)), (8, 3), "ba")
    b.write_output(b.step("relu", RELU, (24,), [("src", turned)]), out)
    graph = Graph(b.finish(), b.constants)
    view = graph.add(ir.Value("again", (8, 3), "float32", "local", "ab", alias_of=turned))
    assert not graph.is_private(turned)
    (at,) = [n for n, step in enumerate(graph.steps) if step and step.operand("src") == turned]
    graph.replace(at, ir.Step("last", RELU, (ir.Operand("src", view), ir.Operand("dst", out))))
    graph.drop_into(0, "last")
    program, constants = graph.close()
    assert constants == []
    names = [value.name for value in program.values]
    (last,) = [step for step in program.steps if step.name == "last"]
    chain_of = [last.operand("src")]
    while program.values[chain_of[-1]].alias_of >= 0:
        chain_of.append(program.values[chain_of[-1]].alias_of)
    assert [program.values[number].shape for number in chain_of] == [(8, 3), (8, 3), (3, 8), (2, 12)]
    assert chain_of[-1] == program.steps[0].dst
    assert program.values[last.dst].name == "y" and "unused" not in names


def test_a_value_that_two_steps_write_belongs_to_the_later_one() -> None:
    """As long as both are there; taking the earlier one away changes nothing."""
    b, (x, first, second, _) = chain(3)
    steps = list(b.steps)
    again = ir.Step("again", RELU, (ir.Operand("src", x), ir.Operand("dst", first)))
    b.steps[:] = [steps[0], again, *steps[1:]]
    graph = Graph(b.finish(), [])
    assert graph.producer(first) == 1
    graph.drop_into(0, "again")
    assert graph.producer(first) == 1
    assert graph.fused() == {steps[0].name: "again"}
    graph.replace(2, ir.Step("other", RELU, (ir.Operand("src", x), ir.Operand("dst", second))))
    assert graph.producer(first) is None, "nobody reads it any more"


def test_an_output_is_not_private_and_inputs_stay() -> None:
    b, (x, first, _) = chain(2)
    unused = b.port("input", "unused", (7,), "float32")
    program = b.finish()
    out = next(number for number, value in enumerate(program.values) if value.name == "y")
    reader, writer = program.steps[1], program.steps[0]
    operands = (ir.Operand("src", x), ir.Operand("dst", out))
    again = (ir.Operand("src", out), ir.Operand("dst", first))
    graph = Graph(program, [])
    for at, (step, other) in enumerate([(writer, operands), (reader, again)]):
        graph.replace(at, ir.Step(step.name, RELU, other))
    assert not graph.is_private(out) and graph.producer(out) is None
    assert not graph.is_private(x)
    finished, _ = graph.close()
    assert {value.name for value in finished.values} >= {"x", "y", "unused"}
    assert finished.values[finished.of_kind("input")[1]] == program.values[unused]


def test_readers_and_views_get_what_holds_the_same() -> None:
    """Also where the value that is taken for another one is the first of all."""
    b = ProgramBuilder("p")
    y, out = b.constant(ARRAY), b.port("output", "y", (24,), "float32")
    view = b.reshape(y, (6, 4))
    b.write_output(b.reshape(b.step("relu", RELU, (6, 4), [("src", view)]), (24,)), out)
    other = b.constant(2 * ARRAY)
    graph = Graph(b.finish(), b.constants)
    number = next(n for n, value in enumerate(graph.values) if value.index == 1 and value.kind == "constant")
    assert y == 0 and graph.values[number].shape == graph.values[y].shape == graph.values[other].shape
    graph.rebuild([step for step in graph.steps if step], {y: number})
    program, constants = graph.close()
    (left,) = constants
    np.testing.assert_array_equal(left, 2 * ARRAY)
    (step,) = program.steps
    seen = program.values[step.operand("src")]
    assert seen.shape == (6, 4) and program.values[seen.alias_of].kind == "constant"
