"""Boxes of values: where pieces of a concatenation could stand, and which could not."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tvm_mxplan.core.program import program as ir
from tvm_mxplan.core.program.dims import Symbol
from tvm_mxplan.passes.memory.boxes import box_offset, piece_offsets

N = Symbol("n")


def value(*shape: object, layout: str = "abcd", dtype: str = "float32") -> ir.Value:
    return ir.Value("v", shape, dtype, "local", layout)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("whole", "begin", "part", "byte"),
    [
        (value(1, 6, 3, 4), [0, 2, 0, 0], value(1, 3, 3, 4), 4 * 2 * 12),
        (value(1, 6, 3, 4, dtype="bfloat16"), [0, 2, 0, 0], value(1, 3, 3, 4, dtype="bfloat16"), 2 * 2 * 12),
        (value(1, 6, 3, 4, dtype="int8"), [0, 5, 0, 0], value(1, 1, 3, 4, dtype="int8"), 5 * 12),
        (value(2, 6, 3, 4), [1, 0, 0, 0], value(1, 6, 3, 4), 4 * 72),
        (value(2, 6, 3, 4), [0, 2, 0, 0], value(2, 3, 3, 4), None),
        (value(1, 6, 3, 4), [0, 2, 0, 0], value(1, 3, 3, 4, layout="acdb"), None),
        (value(1, 6, 3, 4), [0, 2, 0, 0], value(1, 3, 3, 4, dtype="int32"), None),
        (value(1, 6, 3, 4, layout="acdb"), [0, 2, 0, 0], value(1, 3, 3, 4, layout="acdb"), None),
        (value(1, 6, 3, 4, layout="acdb"), [0, 0, 1, 0], value(1, 6, 2, 4, layout="acdb"), 4 * 24),
        (value(N, 6, 3, 4), [0, 2, 0, 0], value(1, 3, 3, 4), None),
        (value(1, 6, 3, 4), [0, 2, 0, 0], value(1, 3, N, 4), None),
    ],
)
def test_a_box_is_one_piece_of_memory_or_none(
    whole: ir.Value, begin: list[int], part: ir.Value, byte: int | None
) -> None:
    assert box_offset(whole, begin, part) == byte


def test_pieces_stand_one_behind_the_other() -> None:
    whole = value(1, 9, 3, 4)
    pieces = [value(1, extent, 3, 4) for extent in (2, 3, 4)]
    assert piece_offsets(whole, 1, pieces) == [0, 4 * 24, 4 * 60]
    blocked = replace(pieces[1], layout="acdb")
    assert piece_offsets(whole, 1, [pieces[0], blocked, pieces[2]]) == [0, None, 4 * 60]
    assert piece_offsets(whole, 2, [value(1, 9, 1, 4), value(1, 9, 2, 4)]) == [None, None]
    assert piece_offsets(value(1, 1, 3, 4), 2, [value(1, 1, 1, 4), value(1, 1, 2, 4)]) == [0, 16]


def test_behind_a_piece_of_unknown_extent_nothing_is_known() -> None:
    whole, pieces = value(1, N, 3, 4), [value(1, 2, 3, 4), value(1, N, 3, 4)]
    assert piece_offsets(whole, 1, pieces) == [None, None]
