"""The borders of a region program: what could cross, and the program that lets it."""

from __future__ import annotations

import numpy as np
import pytest
import tvm
from relax_programs import normal

from tvm_mxplan.byoc.onednn import library
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.passes.borders.border_programs import Borders, borders_of, cross_borders, ports_of

PLAIN, LAST, BLOCKED = "abcd", "acdb", "aBcd16b"
SHAPE = (1, 64, 8, 8)


class Builder:
    """A program of values of one shape, written in order."""

    def __init__(self) -> None:
        self.values: list[ir.Value] = []
        self.steps: list[ir.Step] = []

    def value(self, name: str, kind: ir.ValueKind, layout: str = PLAIN, alias_of: int = -1) -> int:
        index = -1 if kind == "local" else sum(value.kind == kind for value in self.values)
        self.values.append(ir.Value(name, SHAPE, "float32", kind, layout, index, alias_of))
        return len(self.values) - 1

    def step(self, attrs: ir.Attributes, src: int, dst: int) -> int:
        name = f"s{len(self.steps)}"
        self.steps.append(ir.Step(name, attrs, (ir.Operand("src", src), ir.Operand("dst", dst))))
        return dst

    def reorder(self, src: int, dst: int) -> int:
        return self.step(ir.Reorder(), src, dst)

    def pool(self, src: int, dst: int) -> int:
        return self.step(ir.Pooling("max", (3, 3), (1, 1), (1, 1), (1, 1)), src, dst)

    def program(self) -> ir.Program:
        return ir.Program("p", tuple(self.values), tuple(self.steps))


def pooling(layout: str = LAST, through_view: bool = False) -> ir.Program:
    """in -> reorder -> pooling -> reorder -> out."""
    b = Builder()
    src, out = b.value("x", "input"), b.value("y", "output")
    pooled = b.pool(b.reorder(src, b.value("x", "local", layout)), b.value("pooled", "local", layout))
    b.reorder(pooled, b.value("view", "local", PLAIN, out) if through_view else out)
    return b.program()


def kinds(program: ir.Program) -> list[str]:
    return [step.kind for step in program.steps]


def ports(program: ir.Program, kind: ir.ValueKind) -> list[str]:
    return [program.values[value].layout for value in program.of_kind(kind)]


def run(program: ir.Program, inputs: list[np.ndarray], outputs: list[np.ndarray]) -> None:
    module = library.create_module("f", program, [])
    tensors = [tvm.runtime.tensor(array) for array in (*inputs, *outputs)]
    module["f"](*tensors)
    for array, tensor in zip(outputs, tensors[len(inputs) :], strict=True):
        array[...] = tensor.numpy()


def test_reorders_at_both_borders() -> None:
    for through_view in (False, True):
        assert borders_of(pooling(through_view=through_view)) == Borders(((LAST,),), (LAST,))


def test_a_view_of_a_result_that_nobody_uses_is_no_reader() -> None:
    """Rewriting leaves such values; one that is used keeps the result plain."""
    for used in (False, True):
        program = pooling()
        (out,) = program.of_kind("output")
        view = ir.Value("view", SHAPE, "float32", "local", PLAIN, -1, out)
        seen = ir.Value("z", SHAPE, "float32", "output", PLAIN, 1)
        number = len(program.values)
        program = ir.Program("p", (*program.values, view, seen), program.steps)
        if used:
            operands = (ir.Operand("src", number), ir.Operand("dst", number + 1))
            program = ir.Program("p", program.values, (*program.steps, ir.Step("s", ir.Reorder(), operands)))
        assert borders_of(program).gives[0] == (PLAIN if used else LAST)


def test_a_step_that_reads_plain_says_so() -> None:
    b = Builder()
    src = b.value("x", "input")
    b.pool(src, b.value("y", "output"))
    b.pool(b.reorder(src, b.value("x", "local", LAST)), b.value("z", "output"))
    assert borders_of(b.program()) == Borders(((PLAIN, LAST),), (PLAIN, PLAIN))


def test_a_view_is_read_plain() -> None:
    b = Builder()
    src = b.value("x", "input")
    b.reorder(b.value("view", "local", PLAIN, src), b.value("y", "output"))
    assert borders_of(b.program()).takes == ((PLAIN,),)


def test_an_output_that_is_read_again_stays_plain() -> None:
    b = Builder()
    pooled = b.pool(b.value("x", "input"), b.value("pooled", "local", LAST))
    out = b.reorder(pooled, b.value("y", "output"))
    b.pool(out, b.value("z", "output"))
    assert borders_of(b.program()).gives == (PLAIN, PLAIN)


def test_an_output_that_is_written_through_a_view_and_read_again_stays_plain() -> None:
    """As where its shape is a step's own, and a cast reads it."""
    b = Builder()
    pooled = b.pool(b.value("x", "input"), b.value("pooled", "local", LAST))
    out = b.value("y", "output")
    b.reorder(pooled, b.value("view", "local", PLAIN, out))
    b.pool(out, b.value("z", "output"))
    assert borders_of(b.program()).gives == (PLAIN, PLAIN)


def test_a_value_that_is_made_inside_an_output_leaves_by_a_reorder() -> None:
    """Its bytes are the first output's, which is value 0: they cannot be the second one's too."""
    b = Builder()
    out, src = b.value("y", "output"), b.value("x", "input")
    b.pool(src, inside := b.value("pooled", "local", LAST, out))
    b.reorder(inside, b.value("z", "output"))
    assert borders_of(b.program()).gives == (PLAIN, PLAIN)


def test_one_value_leaves_as_one_output_only() -> None:
    b = Builder()
    pooled = b.pool(b.value("x", "input"), b.value("pooled", "local", LAST))
    for name in ("y", "z"):
        b.reorder(pooled, b.value(name, "output"))
    assert borders_of(b.program()).gives == (LAST, PLAIN)


@pytest.mark.parametrize(("layout", "given"), [(BLOCKED, PLAIN), (LAST, LAST)], ids=["blocked", "last"])
def test_a_piece_of_a_concat_leaves_by_a_reorder_where_it_can_stand_inside_the_whole(
    layout: str, given: str
) -> None:
    """There it has to be written into the whole; channels last, a concatenation copies all pieces."""
    b = Builder()
    pooled = b.pool(b.value("x", "input"), b.value("pooled", "local", layout))
    b.reorder(pooled, b.value("y", "output"))
    whole = b.value("whole", "local", layout)
    b.values[whole] = ir.Value("whole", (1, 128, 8, 8), "float32", "local", layout)
    operands = (ir.Operand("src", pooled), ir.Operand("src", pooled), ir.Operand("dst", whole))
    program = ir.Program("p", tuple(b.values), (*b.steps, ir.Step("c", ir.Concat(1), operands)))
    assert borders_of(program).gives == (given,)


def test_another_piece_of_the_whole_is_no_reason() -> None:
    """17 channels do not begin where a block does, 16 in front of them do."""
    b = Builder()
    pooled = b.pool(b.value("x", "input"), b.value("pooled", "local", BLOCKED))
    b.reorder(pooled, b.value("y", "output"))
    front, whole = (b.value(name, "local", BLOCKED) for name in ("front", "whole"))
    b.pool(0, front)
    b.values[front] = ir.Value("front", (1, 17, 8, 8), "float32", "local", BLOCKED)
    b.values[whole] = ir.Value("whole", (1, 98, 8, 8), "float32", "local", BLOCKED)
    sources = (b.value("first", "local", BLOCKED), front, pooled)
    b.values[sources[0]] = ir.Value("first", (1, 16, 8, 8), "float32", "local", BLOCKED)
    b.pool(0, sources[0])
    operands = (*(ir.Operand("src", source) for source in sources), ir.Operand("dst", whole))
    program = ir.Program("p", tuple(b.values), (*b.steps, ir.Step("c", ir.Concat(1), operands)))
    assert borders_of(program).gives == (BLOCKED,)


def test_both_reorders_go() -> None:
    for through_view in (False, True):
        crossed = cross_borders(pooling(through_view=through_view), [(LAST,)], [(LAST,)])
        assert kinds(crossed) == ["pooling"]
        assert (ports(crossed, "input"), ports(crossed, "output")) == ([LAST], [LAST])
        assert len(crossed.values) == 2


def test_plain_borders_change_nothing() -> None:
    assert cross_borders(pooling(), [(PLAIN,)], [(PLAIN,)]) == pooling()


def test_a_result_in_every_layout_that_is_wanted() -> None:
    crossed = cross_borders(pooling(), [(LAST,)], [(PLAIN, BLOCKED, LAST)])
    assert kinds(crossed) == ["pooling", "reorder", "reorder"]
    assert ports(crossed, "output") == [PLAIN, BLOCKED, LAST]
    x = normal(0, 1, 8, 8, 64)
    plain, blocked, last = (np.zeros(s, "float32") for s in (SHAPE, (1, 4, 8, 8, 16), (1, 8, 8, 64)))
    run(crossed, [x], [plain, blocked, last])
    reference = np.zeros(SHAPE, "float32")
    run(pooling(), [np.ascontiguousarray(x.transpose(0, 3, 1, 2))], [reference])
    np.testing.assert_array_equal(plain, reference)
    np.testing.assert_array_equal(last, reference.transpose(0, 2, 3, 1))
    np.testing.assert_array_equal(blocked, reference.reshape(1, 4, 16, 8, 8).transpose(0, 1, 3, 4, 2))


def test_another_layout_than_the_one_in_which_it_is() -> None:
    crossed = cross_borders(pooling(), [(PLAIN,)], [(BLOCKED,)])
    assert kinds(crossed) == ["reorder", "pooling", "reorder"]
    assert ports(crossed, "output") == [BLOCKED]


def test_a_result_that_no_reorder_makes_is_given_in_other_layouts_too() -> None:
    """The step that writes it plain stays; reorders stand behind all steps."""
    b = Builder()
    src = b.value("x", "input")
    b.pool(src, b.value("y", "output"))
    b.pool(src, b.value("z", "output"))
    crossed = cross_borders(b.program(), [(PLAIN,)], [(PLAIN, LAST), (PLAIN, BLOCKED)])
    assert kinds(crossed) == ["pooling", "pooling", "reorder", "reorder"]
    assert ports(crossed, "output") == [PLAIN, PLAIN, LAST, BLOCKED]
    x = normal(0, *SHAPE)
    y, z, last, blocked = (np.zeros(s, "float32") for s in (SHAPE, SHAPE, (1, 8, 8, 64), (1, 4, 8, 8, 16)))
    run(crossed, [x], [y, z, last, blocked])
    np.testing.assert_array_equal(last, y.transpose(0, 2, 3, 1))
    np.testing.assert_array_equal(blocked, z.reshape(1, 4, 16, 8, 8).transpose(0, 1, 3, 4, 2))
    np.testing.assert_array_equal(y, z)


def test_what_a_step_of_several_results_shows_first_leaves_by_its_reorder() -> None:
    """One of its results is an output, the others are not: it has shown the value before the reorder does."""
    b = Builder()
    pooled = b.pool(b.value("x", "input"), b.value("pooled", "local", LAST))
    roles = ("dst", "made_scale", "made_zero_point")
    results = [b.value("integers", "output"), b.value("scale", "local"), b.value("zero", "local")]
    operands = (ir.Operand("src", pooled), *map(ir.Operand, roles, results))
    b.steps.append(ir.Step("several", ir.DynamicQuantization(), operands))
    b.reorder(pooled, b.value("y", "output"))
    assert borders_of(b.program()).gives == (PLAIN, PLAIN)


def test_an_input_in_two_layouts() -> None:
    b = Builder()
    src = b.value("x", "input")
    b.pool(src, b.value("y", "output"))
    b.pool(b.reorder(src, b.value("x", "local", LAST)), b.value("z", "output", LAST))
    crossed = cross_borders(b.program(), [(PLAIN, LAST)], [(PLAIN,), (LAST,)])
    assert kinds(crossed) == ["pooling", "pooling"]
    assert ports(crossed, "input") == [PLAIN, LAST]
    assert [crossed.values[step.operand("src")].layout for step in crossed.steps] == [PLAIN, LAST]


def test_what_stands_where() -> None:
    assert ports_of([(PLAIN, LAST), (LAST,)]) == [(0, PLAIN), (1, LAST), (0, LAST)]


def test_bytes_of_what_crosses_are_not_known_yet() -> None:
    """The library says how many there are in the new layout; what stays as it was keeps its own."""
    program = pooling()
    for number in range(len(program.values)):
        program = program.with_value(number, nbytes=4096)
    crossed = cross_borders(program, [(LAST,)], [(PLAIN, LAST)])
    found = {(v.kind, v.index, v.layout): v.nbytes for v in crossed.values if v.kind != "local"}
    assert found == {("input", 0, LAST): -1, ("output", 0, PLAIN): 4096, ("output", 1, LAST): -1}
