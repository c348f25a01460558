"""Concatenations and slices are expected to cost nothing where they will be views, else their share."""

from __future__ import annotations

import pytest
from costs_by_hand import MODEL, model

from tvm_mxplan.core.program import program as ir
from tvm_mxplan.core.program.builder import ProgramBuilder
from tvm_mxplan.core.program.operands import operands_of
from tvm_mxplan.core.program.renumber import select_values
from tvm_mxplan.passes.costs.movement import concat_cost, slice_cost

RELU = ir.Eltwise("relu", 0.0, 0.0)
PLAIN, LAST, BLOCKED = "abcd", "acdb", "aBcd16b"


def joined(extents: tuple[int, ...], copied: tuple[int, ...], axis: int = 1, batch: int = 1) -> ir.Program:
    """relu(x0), relu(x1), ... concatenated; those in ``copied`` are inputs, which stay where they are."""
    b = ProgramBuilder("p")
    pieces, whole = [], [batch, 0, 8, 8]
    whole[axis] = sum(extents)
    for at, extent in enumerate(extents):
        shape = [batch, 16, 8, 8]
        shape[axis] = extent
        whole[1] = whole[1] if axis == 1 else 16
        x = b.port("input", f"x{at}", tuple(shape), "float32")
        pieces.append(x if at in copied else b.step(f"relu{at}", RELU, tuple(shape), [("src", x)]))
    b.step("joined", ir.Concat(axis), tuple(whole), [("src", piece) for piece in pieces])
    return b.finish()


def costs(program: ir.Program, layout: str) -> tuple[float, float]:
    """Of the last step, with all operands in ``layout``: the forecast, and that of copying everything."""
    step = program.steps[-1]
    layouts = (layout,) * len(list(operands_of(step)))
    everything = MODEL.copies(program, step, layouts)
    if isinstance(step.attrs, ir.Slice):
        return slice_cost(program, step, layouts, MODEL), everything
    writers = {one.dst: one for one in program.steps}
    return concat_cost(program, writers, step, layouts, MODEL), everything


@pytest.mark.parametrize(
    ("copied", "share"), [((), 0), ((0,), 1 / 7), ((1,), 2 / 7), ((0, 2), 5 / 7), ((0, 1, 2), 1)]
)
@pytest.mark.parametrize("layout", [PLAIN, BLOCKED])
def test_a_concat_costs_the_share_of_its_pieces_that_are_copied(copied, share, layout):
    cost, everything = costs(joined((16, 32, 64), copied), layout)
    assert everything > 0
    assert cost == pytest.approx(share * everything)


def test_pieces_that_are_not_contiguous_are_copied():
    for program, layout in (
        (joined((16, 32), ()), LAST),
        (joined((16, 32), (), batch=2), PLAIN),
        (joined((3, 5), (), axis=2), PLAIN),
    ):
        cost, everything = costs(program, layout)
        assert cost == everything > 0
    assert costs(joined((2, 3), (), axis=0), LAST)[0] == 0


def test_padding_counts_in_blocks():
    """17 channels take two blocks of 16, which are one piece of memory if they begin where a block does."""
    program = joined((16, 17), (1,))
    cost, everything = costs(program, BLOCKED)
    assert cost == pytest.approx(everything * 32 / 48)
    blocked, plain = (MODEL.copies(program, program.steps[-1], (one,) * 3) for one in (BLOCKED, PLAIN))
    assert plain < blocked < plain * 48 / 33
    for extents in ((17, 16), (8, 24)):
        cost, everything = costs(joined(extents, ()), BLOCKED)
        assert cost == everything > 0


def sliced(shape: tuple[int, ...], begin: tuple[int, ...], extents: tuple[int, ...]) -> ir.Program:
    b = ProgramBuilder("p")
    x = b.port("input", "x", shape, "float32")
    whole = b.step("relu", RELU, shape, [("src", x)])
    b.step("part", ir.Slice(begin), extents, [("src", whole)])
    return b.finish()


def test_slices_that_can_be_views_are_free():
    program = sliced((1, 48, 8, 8), (0, 16, 0, 0), (1, 32, 8, 8))
    assert costs(program, PLAIN)[0] == costs(program, BLOCKED)[0] == 0
    cost, everything = costs(program, LAST)
    assert cost == everything > 0


def test_a_slice_that_is_a_view_is_no_piece_of_a_concat():
    """It stands in what it was sliced from; one that is copied may as well be copied into the whole."""
    b = ProgramBuilder("p")
    whole = b.step("relu", RELU, (1, 32, 8, 8), [("src", b.port("input", "x", (1, 32, 8, 8), "float32"))])
    part = b.step("part", ir.Slice((0, 16, 0, 0)), (1, 16, 8, 8), [("src", whole)])
    other = b.step("other", RELU, (1, 16, 8, 8), [("src", part)])
    b.step("joined", ir.Concat(1), (1, 32, 8, 8), [("src", part), ("src", other)])
    cost, everything = costs(b.finish(), PLAIN)
    assert cost == pytest.approx(everything / 2)


def test_only_a_value_with_bytes_of_its_own_can_view_another():
    """A slice that is an output of the region, or part of one, has its place already: it is copied."""
    for kind in ("output", "local"):
        b = ProgramBuilder("p")
        out = b.port("output", "y", (1, 16, 8, 8), "float32")
        whole = b.step("relu", RELU, (1, 32, 8, 8), [("src", b.port("input", "x", (1, 32, 8, 8), "float32"))])
        part = b.step("part", ir.Slice((0, 16, 0, 0)), (1, 16, 8, 8), [("src", whole)])
        program = b.finish()
        assert costs(program, PLAIN)[0] == 0
        if kind == "local":
            program = program.with_value(part, alias_of=out)
        else:
            *operands, _ = program.steps[-1].operands
            step = ir.Step("part", program.steps[-1].attrs, (*operands, ir.Operand("dst", out)))
            program = ir.Program("p", program.values, (program.steps[0], step))
        cost, everything = costs(program, PLAIN)
        assert cost == everything > 0


def test_copying_takes_a_start_and_goes_with_the_bytes():
    machine = model(gbytes=20.0)
    start = machine.machine.start_us + machine.machine.fork_us
    program = joined((16, 17), ())
    took = [machine.copies(program, program.steps[-1], (layout,) * 3) - start for layout in (PLAIN, BLOCKED)]
    assert took[1] == pytest.approx(took[0] * 48 / 33)
    part = sliced((1, 48, 8, 8), (0, 3, 0, 0), (1, 5, 8, 8))
    copied = machine.copies(part, part.steps[-1], (PLAIN,) * 2) - start
    assert copied == pytest.approx(took[0] * 5 / 33)


def test_a_piece_inside_of_the_first_value_is_copied():
    """A view has no bytes of its own, whatever number the value has."""
    program = joined((16, 32), ())
    pieces = [program.steps[-1].operands[at].value for at in range(2)]
    order = [pieces[1], *(number for number in range(len(program.values)) if number != pieces[1])]
    turned = select_values(program, order)
    piece = order.index(pieces[0])
    cost, everything = costs(turned.with_value(piece, alias_of=0), PLAIN)
    assert costs(turned, PLAIN)[0] == 0
    assert cost == pytest.approx(everything / 3)
