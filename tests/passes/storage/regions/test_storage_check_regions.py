"""The check of a region in an arena of its caller, on programs and placements by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest
import tvm
from tvm import relax

from tvm_mxplan.core.program import program as ir
from tvm_mxplan.core.program.renumber import select_values
from tvm_mxplan.passes.storage.storage_check_regions import Bytes, Local, RegionRun

ARENA, OTHER = relax.Var("arena"), relax.Var("other")
ADD = ir.Binary("add")
X, Y = relax.Var("x"), relax.Var("y")


def value(
    name: str, offset: int = -1, kind: ir.ValueKind = "local", of: int = -1, at: int = 0, nbytes: int = 64
) -> ir.Value:
    index = -1 if kind == "local" else 0
    return ir.Value(name, (nbytes // 4,), "float32", kind, "a", index, of, at, nbytes=nbytes, offset=offset)


def program(
    *locals_: ir.Value, steps: list[tuple[list[int], int]], scratch: tuple[int, int] = (0, -1)
) -> ir.Program:
    """Value 0 is the input, 1 the output; the last step has a scratchpad of so many bytes at an offset."""
    made = [
        ir.Step(f"s{at}", ADD, (*(ir.Operand("src", src) for src in srcs), ir.Operand("dst", dst)))
        for at, (srcs, dst) in enumerate(steps)
    ]
    made[-1] = replace(made[-1], scratchpad_bytes=scratch[0], scratchpad_offset=scratch[1])
    ports = (value("x", kind="input"), value("y", kind="output"))
    return ir.Program("r", (*ports, *locals_), tuple(made))


CHAIN = [([0], 2), ([2], 3), ([3], 1)]


def run(
    of: ir.Program,
    placed: dict[tvm.ir.Var, Bytes] | None = None,
    intact: set[tvm.ir.Var] | None = None,
    low: int = 0,
    high: int = 1024,
) -> tuple[list[str], RegionRun]:
    """The error, if any; ``placed`` are the arguments, of which x was written before and is ``intact``."""
    placed = placed or {}
    held = {var: placed[var] for var in ({X} if intact is None else intact) if var in placed}
    one = RegionRun(
        of, Bytes(ARENA, low, high), [frozenset([X]), frozenset([Y])], placed, {X} & set(placed), dict(held)
    )
    return one.run(), one


def test_a_right_plan_is_right() -> None:
    """Two values in turns at two places."""
    right = program(value("a", 0), value("b", 64), steps=CHAIN, scratch=(100, 128))
    assert run(right)[0] == []
    three = program(value("a", 0), value("b", 64), value("c", 0), steps=[*CHAIN[:2], ([3], 4), ([4], 1)])
    assert run(three)[0] == []


def test_bytes_share_where_they_overlap_in_one_storage() -> None:
    one = Bytes(ARENA, 64, 128)
    assert one.overlaps(one)
    for low, high, expected in ((0, 64, False), (0, 65, True), (127, 200, True), (128, 200, False)):
        assert one.overlaps(Bytes(ARENA, low, high)) == Bytes(ARENA, low, high).overlaps(one) == expected
        assert not one.overlaps(Bytes(OTHER, low, high))


@pytest.mark.parametrize("at", [0, 32, 63])
def test_a_result_on_its_own_operand_is_refused(at: int) -> None:
    reasons, _ = run(program(value("a", 0), value("b", at), steps=CHAIN))
    assert reasons == ["b stands on a, which its step needs"]


def test_a_value_that_was_overwritten_is_not_read() -> None:
    steps = [([0], 2), ([0], 3), ([2, 3], 1)]
    assert run(program(value("a", 0), value("b", 64), steps=steps))[0] == []
    (reason,) = run(program(value("a", 0), value("b", 32), steps=steps))[0]
    assert reason == "s2 reads a, whose bytes something else has taken"


def test_scratchpads_take_bytes() -> None:
    steps = [([0], 2), ([0], 3)]
    both = (value("a", 0), value("b", 64))
    assert run(program(*both, steps=steps, scratch=(64, 128)))[0] == []
    assert run(program(*both, steps=steps, scratch=(65, 64)))[0] == [
        "the scratchpad of s1 stands on b, which its step needs"
    ]
    ends = program(*both, steps=[([0], 2), ([2], 3)], scratch=(1, 0))
    assert run(ends)[0] == ["the scratchpad of s1 stands on a, which its step needs"]
    between = program(*both, steps=[*steps, ([2, 3], 1)])
    taken = replace(between.steps[1], scratchpad_bytes=8, scratchpad_offset=0)
    (reason,) = run(replace(between, steps=(between.steps[0], taken, between.steps[2])))[0]
    assert reason == "s2 reads a, whose bytes something else has taken"


@pytest.mark.parametrize(("begin", "stands"), [(64, True), (63, False), (0, False)])
def test_a_piece_of_a_whole_stands_where_only_the_rest_was_taken(begin: int, stands: bool) -> None:
    """A step writes piece p, another the whole w around it; r stands on w's end, p is still read."""
    p, w, r = 3, 2, 4
    values = (value("w", 0, nbytes=128), value("p", of=w), value("r", begin))
    reasons, _ = run(program(*values, steps=[([0], p), ([p, 0], w), ([w], 1), ([0], r), ([p, r], 1)]))
    assert reasons == ([] if stands else ["s4 reads p, whose bytes something else has taken"])


def test_bytes_that_are_left() -> None:
    one = Bytes(ARENA, 64, 128)
    for low, high, left in (
        (0, 64, [(64, 128)]),
        (0, 65, [(65, 128)]),
        (100, 110, [(64, 100), (110, 128)]),
        (64, 128, []),
        (127, 500, [(64, 127)]),
    ):
        taken = Bytes(ARENA, low, high)
        assert one.without(taken) == [Bytes(ARENA, *piece) for piece in left]
        assert one.within(taken) == 64 - sum(end - begin for begin, end in left)
    assert one.without(Bytes(OTHER, 64, 128)) == [one] and not one.within(Bytes(OTHER, 64, 128))


@pytest.mark.parametrize(
    ("low", "high", "fits"), [(0, 128, True), (0, 127, False), (256, 384, True), (256, 383, False)]
)
def test_all_stands_inside_of_the_arena(low: int, high: int, fits: bool) -> None:  # fmt: skip
    reasons, _ = run(program(value("a", 0), value("b", 64), steps=CHAIN), low=low, high=high)
    expected = f"bytes {low + 64} to {low + 128} of r leave the arena"
    assert set(reasons) == (set() if fits else {expected})


def test_what_has_no_offset_leaves_the_arena() -> None:
    reasons, _ = run(program(value("a", -64), value("b", 64), steps=CHAIN), low=512)
    assert reasons[0] == "bytes 448 to 512 of r leave the arena"


# --- one root ----------------------------------------------------------------------------------------------


def test_results_in_place_share_by_the_programs_rules() -> None:
    steps = [([0], 2), ([2], 3), ([3], 1)]
    assert run(program(value("a", 0), value("b", of=2), steps=steps))[0] == []
    # The root read again behind it is the program's own affair.
    again = program(value("a", 0), value("b", of=2), steps=[([0], 2), ([0], 3), ([2, 3], 1)])
    assert run(again)[0] == []


def test_pieces_of_a_whole_are_looked_at_by_their_own_bytes() -> None:
    """left and right stand in whole; c takes the bytes of one of them before the whole is read."""
    whole = (value("whole", 0, nbytes=128), value("left", of=2), value("right", of=2, at=64))
    steps = [([0], 3), ([0], 4), ([0], 5), ([2], 1)]
    for offset, taken in ((128, False), (64, True), (0, True)):
        reasons, _ = run(program(*whole, value("c", offset), steps=steps))
        assert bool(reasons) == taken
        assert all(reason == "s3 reads whole, whose bytes something else has taken" for reason in reasons)
    # Only what is read counts: right is gone, left is not.
    half = [([0], 3), ([0], 4), ([0], 5), ([3], 1)]
    assert run(program(*whole, value("c", 64), steps=half))[0] == []
    assert len(run(program(*whole, value("c", 0), steps=half))[0]) == 1


def test_who_wrote_all_of_the_bytes_is_the_last_that_counts() -> None:
    """left is written twice, with something on it in between: the second one is what is read."""
    whole = (value("whole", 0, nbytes=128), value("left", of=2), value("c", 0))
    steps = [([0], 3), ([0], 4), ([0], 3), ([3], 1)]
    assert run(program(*whole, steps=steps))[0] == []
    wrong = [*steps[:2], ([0], 2), ([0], 4), ([3], 1)]
    assert len(run(program(*whole, steps=wrong))[0]) == 1


def test_what_a_piece_was_written_over_is_read_with_the_piece_in_it() -> None:
    """All of whole, then its right half anew: whole is what both left, and nobody else took a byte."""
    whole = (value("whole", 0, nbytes=128), value("right", of=2, at=64))
    assert run(program(*whole, steps=[([0], 2), ([0], 3), ([2], 1)]))[0] == []
    taken = [([0], 2), ([0], 3), ([0], 4), ([2], 1)]
    assert run(program(*whole, value("c", 128), steps=taken))[0] == []
    assert len(run(program(*whole, value("c", 0), steps=taken))[0]) == 1


def test_a_view_of_a_view_is_where_its_owners_are() -> None:
    views = (
        value("a", 64, nbytes=256),
        value("v", of=2, at=64, nbytes=128),
        value("w", of=3, at=32, nbytes=32),
    )
    steps = [([0], 2), ([4], 5), ([5], 1)]  # fmt: skip
    for offset, refused in ((96, True), (192, False), (160, True), (128, True)):
        place = value("b", offset, nbytes=64 if offset > 128 else 65)
        reasons, _ = run(program(*views, place, steps=steps))
        assert bool(reasons) == refused, offset


# --- arguments ---------------------------------------------------------------------------------------------


def test_an_input_in_the_arena_must_be_intact_until_it_is_read() -> None:
    here = {X: Bytes(ARENA, 256, 320)}
    one = program(value("a", 0), value("b", 64), steps=CHAIN)
    assert run(one, here)[0] == []
    assert run(one, here, intact=set())[0] == ["s0 reads x, whose bytes something else has taken"]
    over = program(value("a", 256), value("b", 64), steps=CHAIN)
    assert run(over, here)[0] == ["a stands on x, which its step needs"]
    assert run(over, {X: Bytes(OTHER, 256, 320)})[0] == []
    later = program(value("a", 0), value("b", 256), steps=CHAIN)
    reasons, after = run(later, here)
    assert reasons == [] and X not in after.intact
    again = program(value("a", 0), value("b", 256), steps=[([0], 2), ([2], 3), ([0, 3], 1)])
    assert run(again, here)[0] == ["s2 reads x, whose bytes something else has taken"]


def test_an_output_in_the_arena_takes_its_bytes_when_it_is_first_written() -> None:
    here = {Y: Bytes(ARENA, 64, 128)}
    one = program(value("a", 0), value("b", 64), steps=CHAIN)
    assert run(one, here)[0] == ["y stands on b, which its step needs"]
    reasons, after = run(program(value("a", 0), value("b", 128), steps=CHAIN), here)
    assert reasons == []
    assert (after.touched, after.intact) == ({Y}, here)
    # Written in two steps, as pieces: the second one takes nothing away, and the first is still there.
    pieces = program(
        value("l", of=1, nbytes=32), value("r", of=1, at=32, nbytes=32), steps=[([0], 2), ([0, 2], 3)]
    )
    assert run(pieces, here)[0] == []
    # Something on it before it is read again.
    read = program(value("a", 64), steps=[([0], 1), ([0], 2), ([1], 2)])
    assert "s2 reads y, whose bytes something else has taken" in run(read, here)[0]


def test_behind_the_call_only_arguments_are_left() -> None:
    _, after = run(program(value("a", 0), value("b", 64), steps=CHAIN), {X: Bytes(ARENA, 512, 576)})
    assert not any(isinstance(key, Local) for key in after.intact)
    assert set(after.intact) == {X}


def test_constants_stand_nowhere() -> None:
    constant = replace(value("w", kind="constant"), offset=-1)
    one = program(value("a", 0), constant, steps=[([0, 3], 2), ([2, 3], 1)])
    assert run(one, {X: Bytes(ARENA, 512, 576), Y: Bytes(ARENA, 576, 640)})[0] == []


def test_the_first_value_is_viewed_like_any_other() -> None:
    """A piece of it stands where it stands, and one beyond the arena leaves it."""
    for at, fits in ((64, True), (1024, False)):
        made = program(value("whole", 0, nbytes=128), value("part", of=2, at=at), steps=[([0], 2), ([3], 1)])
        turned = select_values(made, [2, 0, 1, 3])
        assert (run(turned)[0] == []) == (run(made)[0] == []) == fits
