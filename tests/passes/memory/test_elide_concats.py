"""Concatenation without copies, on plain data: which pieces are made where the whole stands."""

from __future__ import annotations

import pytest

from tvm_mxplan.core.element_types import stored_bytes
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.core.program.builder import ProgramBuilder
from tvm_mxplan.core.program.dims import Symbol
from tvm_mxplan.passes.memory.elide_concats import copied_pieces, elide_concats

RELU = ir.Eltwise("relu", 0.0, 0.0)
SIZE = 4 * 3 * 3


def made(b: ProgramBuilder, channels: int, batch: int = 1) -> int:
    x = b.port("input", f"x{len(b.values)}", (batch, channels, 3, 3), "float32")
    return b.step("relu", RELU, (batch, channels, 3, 3), [("src", x)])


def joined(b: ProgramBuilder, *pieces: int, axis: int = 1) -> int:
    shape = list(b.values[pieces[0]].shape)
    shape[axis] = sum(b.values[piece].shape[axis] for piece in pieces)  # type: ignore[misc]
    return b.step("concat", ir.Concat(axis), tuple(shape), [("src", piece) for piece in pieces])


def elided(b: ProgramBuilder, layout: str = "abcd", dtype: str = "float32") -> ir.Program:
    program = b.finish()
    for number, value in enumerate(program.values):
        tag = layout if value.kind == "local" and len(value.shape) == 4 else value.layout
        nbytes = stored_bytes(value.shape, tag, dtype)
        program = program.with_value(number, layout=tag, nbytes=nbytes, dtype=dtype)
    return elide_concats(program)


def places(program: ir.Program) -> dict[str, tuple[str, object]]:
    """For each value that views another one, whose bytes it stands in and where."""
    return {
        value.name: (program.values[value.alias_of].name, value.alias_offset)
        for value in program.values
        if value.alias_of >= 0
    }


def copies(program: ir.Program) -> list[list[str]]:
    """Names of the pieces that each concatenation still copies."""
    return [
        [program.values[piece].name for piece in copied_pieces(program, step)]
        for step in program.steps
        if isinstance(step.attrs, ir.Concat)
    ]


def test_pieces_stand_one_behind_the_other() -> None:
    b = ProgramBuilder("p")
    joined(b, made(b, 3), made(b, 5), made(b, 2))
    program = elided(b)
    assert places(program) == {
        "relu0": ("concat0", 0), "relu1": ("concat0", 3 * SIZE), "relu2": ("concat0", 8 * SIZE),
    }  # fmt: skip
    assert copies(program) == [[]]


def test_places_are_by_the_bytes_of_the_type() -> None:
    b = ProgramBuilder("p")
    joined(b, made(b, 3), made(b, 5))
    assert places(elided(b, dtype="bfloat16"))["relu1"] == ("concat0", 3 * SIZE // 2)


def test_a_piece_of_another_type_is_copied() -> None:
    b = ProgramBuilder("p")
    whole = joined(b, made(b, 3), made(b, 5))
    program = b.finish()
    for number, value in enumerate(program.values):
        program = program.with_value(number, nbytes=stored_bytes(value.shape, "abcd", value.dtype))
    assert set(places(elide_concats(program))) == {"relu0", "relu1"}
    assert not places(elide_concats(program.with_value(whole, dtype="bfloat16")))


@pytest.mark.parametrize(
    ("layout", "batch", "channels", "axis", "copied"),
    [
        ("abcd", 2, (3, 5), 1, 2),
        ("acdb", 1, (3, 5), 1, 2),
        ("abcd", 2, (3, 3), 0, 0),
        ("acdb", 2, (3, 3), 0, 0),
        ("aBcd16b", 1, (16, 32), 1, 0),
        ("aBcd16b", 1, (16, 17), 1, 0),
        ("aBcd16b", 1, (17, 16), 1, 2),
        ("aBcd16b", 1, (8, 24), 1, 2),
    ],
)
def test_what_is_not_contiguous_is_copied(layout, batch, channels, axis, copied) -> None:
    b = ProgramBuilder("p")
    joined(b, *(made(b, count, batch) for count in channels), axis=axis)
    program = elided(b, layout)
    assert len(copies(program)[0]) == copied
    assert len(places(program)) == 2 - copied


def test_inputs_outputs_and_constants_have_bytes_of_their_own() -> None:
    """The output is value 0."""
    b = ProgramBuilder("p")
    out = b.port("output", "y", (1, 3, 3, 3), "float32")
    x, first = b.port("input", "x", (1, 3, 3, 3), "float32"), made(b, 3)
    b.write_output(first, out)
    joined(b, x, first, made(b, 4))
    program = elided(b)
    assert copies(program) == [["x", "relu0"]]
    assert places(program) == {"relu0": ("y", 0), "relu1": ("concat0", 6 * SIZE)}


def test_a_piece_stands_in_one_place() -> None:
    b = ProgramBuilder("p")
    one, two = made(b, 3), made(b, 2)
    joined(b, one, two, one)
    joined(b, two, one)
    program = elided(b)
    assert copies(program) == [["relu0"], ["relu1", "relu0"]]
    assert places(program) == {"relu0": ("concat0", 0), "relu1": ("concat0", 3 * SIZE)}


def test_wholes_are_pieces_of_larger_ones() -> None:
    b = ProgramBuilder("p")
    inner = joined(b, made(b, 3), made(b, 5))
    joined(b, made(b, 2), inner)
    program = elided(b)
    assert copies(program) == [[], []]
    assert places(program) == {
        "relu0": ("concat0", 0), "relu1": ("concat0", 3 * SIZE),
        "relu2": ("concat1", 0), "concat0": ("concat1", 2 * SIZE),
    }  # fmt: skip
    order = [value.name for value in program.values]
    assert order.index("concat1") < order.index("concat0") < order.index("relu0")


def test_another_view_of_all_bytes_is_as_good_as_the_value() -> None:
    for whole in (True, False):
        b = ProgramBuilder("p")
        flat = b.step("relu", RELU, (1, 54), [("src", b.port("input", "x", (1, 54), "float32"))])
        image = b.reshape(flat, (1, 6, 3, 3))
        joined(b, image, made(b, 2))
        program = elided(b)
        if not whole:
            view = next(n for n, value in enumerate(b.finish().values) if value.alias_of >= 0)
            unlike = b.finish().with_value(view, alias_offset=4)
            for number, value in enumerate(unlike.values):
                unlike = unlike.with_value(
                    number, nbytes=stored_bytes(value.shape, value.layout, value.dtype)
                )
            program = elide_concats(unlike)
        assert ("relu0" in copies(program)[0]) != whole


def test_symbolic_extents_are_copied() -> None:
    b = ProgramBuilder("p")
    joined(b, made(b, 3), made(b, 5))
    program = b.finish()
    shapes = [(Symbol("n"), *value.shape[1:]) for value in program.values]
    for number, shape in enumerate(shapes):
        program = program.with_value(number, shape=shape)
    assert elide_concats(program) == program


def test_the_whole_is_no_piece_of_itself() -> None:
    """Of a step's operands only its sources are pieces, wherever the result stands among them."""
    b = ProgramBuilder("p")
    joined(b, made(b, 3), made(b, 5))
    *sources, dst = b.steps[-1].operands
    b.steps[-1] = ir.Step("concat0", ir.Concat(1), (dst, *sources))
    program = elided(b)
    assert places(program) == {"relu0": ("concat0", 0), "relu1": ("concat0", 3 * SIZE)}
    assert copies(program) == [[]]
