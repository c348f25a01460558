"""Slices as views, on plain data: which become one, at which byte, and what may share their bytes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from agreeable_backend import Agreeable

from tvm_mxplan.core.layout.layout import parse_layout
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.core.program.builder import ProgramBuilder
from tvm_mxplan.core.program.dims import Symbol
from tvm_mxplan.core.program.renumber import select_values
from tvm_mxplan.passes.memory.elide_concats import copied_pieces, elide_concats
from tvm_mxplan.passes.memory.liveness import arena_problem
from tvm_mxplan.passes.memory.share_in_place import share_in_place
from tvm_mxplan.passes.memory.view_slices import view_slices

RELU = ir.Eltwise("relu", 0.0, 0.0)
POINTWISE = ir.Convolution((1, 1), (0, 0, 0, 0), (1, 1), 1)


def laid_out(builder: ProgramBuilder, layout: str) -> ir.Program:
    """The program with its images in ``layout`` and the bytes of everything."""
    program = builder.finish()
    for number, value in enumerate(program.values):
        tag = layout if value.kind == "local" and len(value.shape) == 4 else value.layout
        nbytes = 4 * parse_layout(tag).elements(value.shape)  # type: ignore[arg-type]
        program = program.with_value(number, layout=tag, nbytes=nbytes)
    return program


def one_slice(
    shape: tuple[int, ...], begin: tuple[int, ...], extents: tuple[int, ...], layout: str
) -> ir.Program:
    """relu(slice(relu(x)))"""
    builder = ProgramBuilder("region")
    x = builder.port("input", "x", shape, "float32")
    out = builder.port("output", "out", extents, "float32")
    whole = builder.step("whole", RELU, shape, [("src", x)])
    part = builder.step("part", ir.Slice(begin), extents, [("src", whole)])
    builder.write_output(builder.step("last", RELU, extents, [("src", part)]), out)
    return laid_out(builder, layout)


def numbered(program: ir.Program) -> dict[str, int]:
    return {value.name: number for number, value in enumerate(program.values)}


VIEWS = [
    ("channels, plain", (1, 34, 5, 5), (0, 17, 0, 0), (1, 17, 5, 5), "abcd", 4 * 17 * 25),
    ("some channels of one image", (3, 34, 5, 5), (2, 1, 0, 0), (1, 3, 5, 5), "abcd", 4 * (2 * 34 + 1) * 25),
    ("whole images", (4, 17, 5, 5), (1, 0, 0, 0), (2, 17, 5, 5), "acdb", 4 * 17 * 25),
    ("rows of one channel", (1, 3, 6, 5), (0, 1, 2, 0), (1, 1, 3, 5), "abcd", 4 * (6 + 2) * 5),
    ("whole blocks", (1, 64, 5, 5), (0, 32, 0, 0), (1, 16, 5, 5), "aBcd16b", 4 * 32 * 25),
    ("blocks up to the padding", (1, 35, 5, 5), (0, 16, 0, 0), (1, 19, 5, 5), "aBcd16b", 4 * 16 * 25),
]  # fmt: skip
COPIES = [
    ("channels of two images", (2, 34, 5, 5), (0, 17, 0, 0), (2, 17, 5, 5), "abcd"),
    ("channels last", (1, 34, 5, 5), (0, 17, 0, 0), (1, 17, 5, 5), "acdb"),
    ("columns", (1, 3, 6, 5), (0, 0, 0, 1), (1, 3, 6, 2), "abcd"),
    ("a part of a block", (1, 64, 5, 5), (0, 32, 0, 0), (1, 8, 5, 5), "aBcd16b"),
    ("from the middle of a block", (1, 64, 5, 5), (0, 40, 0, 0), (1, 24, 5, 5), "aBcd16b"),
]


@pytest.mark.parametrize(
    ("shape", "begin", "extents", "layout", "offset"), [v[1:] for v in VIEWS], ids=[v[0] for v in VIEWS]
)
def test_what_is_one_piece_of_memory_becomes_a_view(shape, begin, extents, layout, offset):
    before = one_slice(shape, begin, extents, layout)
    after = view_slices(before)
    at = numbered(after)
    part = after.values[at["part0"]]
    assert (part.alias_of, part.alias_offset) == (at["whole0"], offset)
    assert [step.name for step in after.steps] == ["whole0", "last0"]
    assert part.alias_offset + part.nbytes <= after.values[at["whole0"]].nbytes  # type: ignore[operator]


@pytest.mark.parametrize(
    ("shape", "begin", "extents", "layout"), [c[1:] for c in COPIES], ids=[c[0] for c in COPIES]
)
def test_what_is_stored_in_pieces_stays_a_copy(shape, begin, extents, layout):
    before = one_slice(shape, begin, extents, layout)
    assert view_slices(before) == before


def test_another_layout_is_a_copy():
    before = one_slice((1, 64, 5, 5), (0, 32, 0, 0), (1, 32, 5, 5), "abcd")
    before = before.with_value(numbered(before)["part0"], layout="aBcd16b")
    assert view_slices(before) == before


def test_an_output_is_a_copy_and_an_input_is_viewed():
    builder = ProgramBuilder("region")
    x = builder.port("input", "x", (1, 8, 2, 2), "float32")
    outs = [builder.port("output", f"out{i}", (1, 4, 2, 2), "float32") for i in range(2)]
    returned = builder.step("returned", ir.Slice((0, 0, 0, 0)), (1, 4, 2, 2), [("src", x)])
    viewed = builder.step("viewed", ir.Slice((0, 4, 0, 0)), (1, 4, 2, 2), [("src", x)])
    builder.write_output(returned, outs[0])
    builder.write_output(builder.step("last", RELU, (1, 4, 2, 2), [("src", viewed)]), outs[1])
    program = view_slices(laid_out(builder, "abcd"))
    assert [step.name for step in program.steps] == ["returned0", "last0"]
    viewed = numbered(program)["viewed0"]
    assert program.values[program.root(viewed)].name == "x"
    assert arena_problem(program).problem.items == ()


def test_the_source_lives_as_long_as_its_views():
    builder = ProgramBuilder("region")
    x = builder.port("input", "x", (1, 8, 2, 2), "float32")
    whole = builder.step("whole", RELU, (1, 8, 2, 2), [("src", x)])
    part = builder.step("part", ir.Slice((0, 4, 0, 0)), (1, 4, 2, 2), [("src", whole)])
    builder.step("between", RELU, (1, 8, 2, 2), [("src", x)])
    builder.step("last", RELU, (1, 4, 2, 2), [("src", part)])
    program = view_slices(laid_out(builder, "abcd"))
    items = {item.name: item for item in arena_problem(program).problem.items}
    assert items.keys() == {"whole0", "between0", "last0"}
    assert (items["whole0"].birth, items["whole0"].death) == (0, 3)
    shared = share_in_place(program, Agreeable())  # type: ignore[arg-type]
    assert shared.values[numbered(shared)["last0"]].alias_of == -1


@pytest.mark.parametrize("other_view_lives", [False, True])
def test_a_source_is_overwritten_only_after_all_of_its_views(other_view_lives):
    builder = ProgramBuilder("region")
    x = builder.port("input", "x", (1, 8, 2, 2), "float32")
    whole = builder.step("whole", RELU, (1, 8, 2, 2), [("src", x)])
    part = builder.step("part", ir.Slice((0, 4, 0, 0)), (1, 4, 2, 2), [("src", whole)])
    readers = [("over", (1, 8, 2, 2), whole), ("last", (1, 4, 2, 2), part)]
    for name, shape, source in readers if other_view_lives else reversed(readers):
        builder.step(name, RELU, shape, [("src", source)])
    program = share_in_place(view_slices(laid_out(builder, "abcd")), Agreeable())  # type: ignore[arg-type]
    at = numbered(program)
    assert program.values[at["over0"]].alias_of == (-1 if other_view_lives else at["whole0"])


@pytest.mark.parametrize("source", ["part", "other"])
def test_a_sum_does_not_overwrite_what_its_own_step_reads_a_part_of(source):
    builder = ProgramBuilder("region")
    x = builder.port("input", "x", (1, 8, 2, 2), "float32")
    whole = builder.step("whole", RELU, (1, 8, 2, 2), [("src", x)])
    other = builder.step(
        "other", RELU, (1, 4, 2, 2), [("src", builder.port("input", "z", (1, 4, 2, 2), "float32"))]
    )
    part = builder.step("part", ir.Slice((0, 4, 0, 0)), (1, 4, 2, 2), [("src", whole)])
    weights = builder.constant(np.ones((8, 4, 1, 1), "float32"))
    src = {"part": part, "other": other}[source]
    builder.step("conv", POINTWISE, (1, 8, 2, 2), [("src", src), ("weights", weights)])
    builder.steps[-1] = replace(builder.steps[-1], post_ops=(ir.BinaryPostOp("add", whole),))
    program = share_in_place(view_slices(laid_out(builder, "abcd")), Agreeable())  # type: ignore[arg-type]
    at = numbered(program)
    assert program.values[at["conv0"]].alias_of == (-1 if source == "part" else at["whole0"])
    assert isinstance(program.steps[-1].post_ops[0], ir.BinaryPostOp) == (source == "part")


def test_a_view_is_no_piece_but_its_source_may_be_one():
    """A half is concatenated with the whole that it was sliced from: one copy, of the half."""
    builder = ProgramBuilder("region")
    x = builder.port("input", "x", (1, 32, 2, 2), "float32")
    whole = builder.step("whole", RELU, (1, 32, 2, 2), [("src", x)])
    half = builder.step("half", ir.Slice((0, 16, 0, 0)), (1, 16, 2, 2), [("src", whole)])
    builder.step("joined", ir.Concat(1), (1, 48, 2, 2), [("src", half), ("src", whole)])
    program = elide_concats(view_slices(laid_out(builder, "aBcd16b")))
    at = numbered(program)
    assert program.values[at["whole0"]].alias_of == at["joined0"]
    assert program.values[at["whole0"]].alias_offset == 4 * 16 * 4
    assert program.values[at["half0"]].alias_of == at["whole0"]
    assert copied_pieces(program, program.steps[-1]) == [at["half0"]]


def test_symbolic_extents_are_copies():
    before = one_slice((1, 8, 2, 2), (0, 4, 0, 0), (1, 4, 2, 2), "abcd")
    symbolic = tuple(replace(value, shape=(Symbol("n"), *value.shape[1:])) for value in before.values)
    before = replace(before, values=symbolic)
    assert view_slices(before) == before


@pytest.mark.parametrize("first", [False, True])
@pytest.mark.parametrize("kind", ["output", "view of an output"])
def test_a_slice_that_is_returned_stays_a_copy(kind: str, first: bool) -> None:
    """Whatever number the output has."""
    program = one_slice((1, 34, 5, 5), (0, 17, 0, 0), (1, 17, 5, 5), "abcd")
    at = numbered(program)
    part = at["part0"]
    assert view_slices(program).values[numbered(view_slices(program))["part0"]].alias_of >= 0
    if kind == "output":
        program = program.with_value(part, kind="output", index=1)
    else:
        program = program.with_value(at["last0"], alias_of=-1).with_value(part, alias_of=at["out"])
    if first:
        order = [at["out"], *(number for number in range(len(program.values)) if number != at["out"])]
        program = select_values(program, order)
    assert [step.name for step in view_slices(program).steps] == ["whole0", "part0", "last0"]
