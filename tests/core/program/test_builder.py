"""Views of views: which cost a copy, which see what was copied, and that all see the right elements."""

from __future__ import annotations

import numpy as np
import pytest

from tvm_mxplan.core.layout.layout import parse_layout
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.core.program.builder import ProgramBuilder
from tvm_mxplan.core.program.dims import Expr, Symbol

Move = tuple[str, tuple[int, ...]]


def moved(builder: ProgramBuilder, value: int, moves: list[Move]) -> int:
    for name, numbers in moves:
        value = getattr(builder, name)(value, numbers)
    return value


def elements(builder: ProgramBuilder, value: int, held: dict[int, np.ndarray]) -> np.ndarray:
    """The elements that a value shows of inputs and of copies, by its layout alone."""
    seen, root = builder.values[value], value
    while builder.values[root].alias_of >= 0:
        root = builder.values[root].alias_of
    if root not in held:
        copy = next(step for step in builder.steps if step.dst == root)
        held[root] = elements(builder, copy.operand("src"), held)
    order = parse_layout(seen.layout).order
    return held[root].reshape([seen.shape[axis] for axis in order]).transpose(np.argsort(order))


@pytest.mark.parametrize(
    ("shape", "moves", "copies"),
    [
        ((5, 2, 12), [("permute", (1, 0, 2)), ("reshape", (2, 5, 3, 4))], 0),
        ((5, 2, 12), [("permute", (1, 0, 2)), ("reshape", (1, 2, 5, 1, 12))], 0),
        ((5, 2, 3, 4), [("permute", (1, 0, 2, 3)), ("reshape", (2, 5, 12))], 0),
        ((5, 2, 3, 4), [("permute", (1, 0, 2, 3)), ("reshape", (10, 12))], 1),
        ((5, 2, 12), [("reshape", (5, 6, 4)), ("permute", (1, 0, 2)), ("reshape", (2, 3, 5, 4))], 0),
        # heads in front of places and back, joined with samples on the way
        (
            (5, 2, 12),
            [
                ("permute", (1, 0, 2)),
                ("reshape", (10, 3, 4)),
                ("reshape", (2, 5, 3, 4)),
                ("permute", (0, 2, 1, 3)),
            ],
            0,
        ),
        # copies of copies, both of them seen through
        (
            (2, 3, 4, 5),
            [
                ("permute", (1, 0, 3, 2)),
                ("reshape", (6, 20)),
                ("permute", (1, 0)),
                ("reshape", (120,)),
                ("reshape", (5, 4, 3, 2)),
                ("permute", (3, 2, 1, 0)),
            ],
            0,
        ),
        ((4, 6), [("permute", (1, 0)), ("reshape", (8, 3)), ("reshape", (4, 6))], 1),
    ],
)
def test_views_show_the_elements_that_numpy_would(
    shape: tuple[int, ...], moves: list[Move], copies: int
) -> None:
    builder = ProgramBuilder("views")
    x = builder.port("input", "x", shape, "float32")
    y = builder.step("eltwise", ir.Eltwise("relu", 0.0, 0.0), shape, [("src", x)])
    seen = moved(builder, y, moves)
    array = np.arange(np.prod(shape)).reshape(shape)
    expected = array
    for name, numbers in moves:
        expected = expected.transpose(numbers) if name == "permute" else expected.reshape(numbers)
    np.testing.assert_array_equal(elements(builder, seen, {y: array}), expected)
    builder.step("softmax", ir.Softmax("softmax", 0), expected.shape, [("src", seen)])
    kinds = [step.kind for step in builder.finish().steps]
    assert kinds == ["eltwise", *["reorder"] * copies, "softmax"]


def test_a_copy_that_a_step_reads_stays_beside_views_around_it() -> None:
    builder = ProgramBuilder("views")
    x = builder.port("input", "x", (5, 2, 12), "float32")
    joined = moved(builder, x, [("permute", (1, 0, 2)), ("reshape", (10, 12))])
    apart = builder.reshape(joined, (2, 5, 12))
    for seen in (joined, apart):
        builder.step("softmax", ir.Softmax("softmax", 1), builder.values[seen].shape, [("src", seen)])
    program = builder.finish()
    assert [step.kind for step in program.steps] == ["reorder", "softmax", "softmax"]
    first, second = (program.values[step.operand("src")] for step in program.steps[1:])
    assert first.layout == "ab" and second.layout == "bac"
    assert program.values[second.alias_of].kind == "input"


def test_a_copy_that_is_a_result_stays() -> None:
    builder = ProgramBuilder("views")
    x = builder.port("input", "x", (5, 2, 12), "float32")
    result = builder.port("output", "y", (10, 12), "float32")
    builder.write_output(moved(builder, x, [("permute", (1, 0, 2)), ("reshape", (10, 12))]), result)
    program = builder.finish()
    assert [step.kind for step in program.steps] == ["reorder"]
    assert program.values[program.steps[0].dst].alias_of == result


def test_named_dimensions_are_seen_around_copies() -> None:
    n = Symbol("n")
    builder = ProgramBuilder("views")
    x = builder.port("input", "x", (5, n, 12), "float32")
    turned = builder.permute(x, (1, 0, 2))
    heads = builder.permute(builder.reshape(turned, (n, 5, 3, 4)), (0, 2, 1, 3))
    assert builder.values[heads].layout == "cabd" and not builder.steps
    joined = builder.reshape(turned, (Expr("*", 5, n), 12))
    assert builder.values[joined].layout == "ab" and len(builder.steps) == 1


def test_a_scalar_that_shares_its_bytes_with_another_result_is_copied_as_a_vector() -> None:
    builder = ProgramBuilder("views")
    x = builder.port("input", "x", (1, 1), "float32")
    results = [builder.port("output", name, shape, "float32") for name, shape in (("y", (1, 1)), ("z", ()))]
    y = builder.step("softmax", ir.Softmax("softmax", 1), (1, 1), [("src", x)])
    builder.write_output(y, results[0])
    builder.write_output(builder.reshape(y, ()), results[1])
    program = builder.finish()
    (copy,) = (step for step in program.steps if step.kind == "reorder")
    read, written = (program.values[copy.operand(role)] for role in ("src", "dst"))
    assert read.shape == written.shape == (1,) and written.alias_of == results[1]
