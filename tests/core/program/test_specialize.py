"""Programs at typical numbers: batches and extents, and sizes that leave something of every value."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tvm_mxplan.core.program import program as ir
from tvm_mxplan.core.program.dims import Dim, Expr, Symbol
from tvm_mxplan.core.program.specialize import instances, typical, typical_shape

N, H, T = Symbol("n"), Symbol("h"), Symbol("t")


def program(*shapes: tuple[Dim, ...], symbols: tuple[ir.SymbolBinding, ...]) -> ir.Program:
    values = [
        ir.Value(f"v{i}", shape, "float32", "local", "abcd"[: len(shape)]) for i, shape in enumerate(shapes)
    ]
    return ir.Program("p", tuple(values), (), symbols)


def shapes_of(found: ir.Program) -> list[tuple[Dim, ...]]:
    return [value.shape for value in found.values]


def test_first_axes_are_batches():
    p = program((N, 3, H), symbols=(ir.SymbolBinding("n", 0, 0), ir.SymbolBinding("h", 0, 2)))
    assert shapes_of(typical(p)) == [(4, 3, 64)]


def test_images_have_more_pixels_than_texts_have_tokens():
    symbols = (ir.SymbolBinding("n", 0, 0), ir.SymbolBinding("h", 0, 2), ir.SymbolBinding("t", 1, 1))
    p = program((N, 3, H, H), (N, T), symbols=symbols)
    values = [replace(value, kind="input", index=at) for at, value in enumerate(p.values)]
    p = replace(p, values=tuple(values))
    assert shapes_of(typical(p)) == [(4, 3, 224, 224), (4, 64)]
    assert [shapes_of(one) for one in instances(p)] == [
        [(4, 3, 64, 64), (4, 64)],
        [(1, 3, 64, 64), (1, 64)],
    ]


def test_numbers_beside_the_tensors_are_what_they_are_used_for():
    rows = Expr("*", N, T)
    symbols = (ir.SymbolBinding("n", -1, 0), ir.SymbolBinding("t", -1, 1))
    assert shapes_of(typical(program((rows, 8), symbols=symbols))) == [(16, 8)]
    assert shapes_of(typical(program((rows, 8), (N, T, 8), symbols=symbols))) == [(256, 8), (4, 64, 8)]


def test_extents_grow_until_something_is_left_of_every_value():
    shrunk = Expr("-", H, 300)
    p = program((1, 3, H), (1, 3, shrunk), symbols=(ir.SymbolBinding("h", 0, 2),))
    assert shapes_of(typical(p)) == [(1, 3, 512), (1, 3, 212)]


def test_what_is_always_empty_ends_the_search():
    p = program((1, 0, H), symbols=(ir.SymbolBinding("h", 0, 2),))
    (shape,) = shapes_of(typical(p))
    assert shape[1] == 0


@pytest.mark.parametrize(
    ("shape", "expected"), [((N, T), (4, 64)), ((Expr("-", T, 100), 2), (1, 2)), ((), ())]
)
def test_single_shapes_are_never_empty(shape: tuple[Dim, ...], expected: tuple[int, ...]):
    assert typical_shape(shape) == expected


def steps(count: int, capacity: int = 0) -> ir.Program:
    """As many steps over tokens, and attention on caches of so many rows where there are any."""
    p = program((1, T, 8), symbols=(ir.SymbolBinding("t", 0, 1),))
    every = [ir.Step(f"s{at}", ir.Softmax("softmax", 1), (ir.Operand("src", 0),)) for at in range(count)]
    if capacity:
        cache = ir.Value("cache", (1, 2, capacity, 4), "float32", "input", "abcd", 1)
        p = replace(p, values=(*p.values, cache))
        operands = (ir.Operand("past_key", 1), ir.Operand("filled", 0))
        every.append(ir.Step("attention", ir.Attention(1.0), operands))
    return replace(p, steps=tuple(every))


def test_tokens_are_as_many_however_many_steps_there_are():
    assert shapes_of(typical(steps(40))) == [(1, 64, 8)]


@pytest.mark.parametrize(("capacity", "expected"), [(1, 1), (16, 8), (100, 50), (1000, 64)])
def test_tokens_leave_room_in_caches(capacity: int, expected: int):
    assert shapes_of(typical(steps(40, capacity)))[0] == (1, expected, 8)
