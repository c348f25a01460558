"""Keys and values behind past ones: attention joins them, unless something else wants them before."""

from __future__ import annotations

import pytest
from small_programs import Small, fused, kinds

from tvm_mxplan.byoc.onednn.rewrites.fusion import fuse
from tvm_mxplan.core.program import program as ir

PAST, HEADS, DEPTH = 21, 3, 16
FRESH, CACHE, RESULT = (1, HEADS, 1, DEPTH), (1, HEADS, PAST, DEPTH), (1, 1, HEADS, DEPTH)


def joined(b: Small, past: int, fresh: int, axis: int = 2, twice: bool = False) -> int:
    pieces = [past, fresh, *([fresh] if twice else [])]
    shape = list(b.shape(past))
    shape[axis] = sum(b.shape(piece)[axis] for piece in pieces)
    return b.step("concat", ir.Concat(axis), tuple(shape), [("src", piece) for piece in pieces])


def attended(b: Small, query: int, key: int, value: int) -> int:
    heads, width = b.shape(query)[1], b.shape(value)[3]
    operands = [("src", query), ("key", key), ("value", value)]
    return b.step("attention", ir.Attention(0.25), (1, 1, heads, width), operands)


def test_attention_takes_the_joints() -> None:
    b = Small(RESULT, FRESH, FRESH, FRESH, CACHE, CACHE)
    query, key, value, past_key, past_value = b.inputs
    after = fused(b, attended(b, query, joined(b, past_key, key), joined(b, past_value, value)))
    assert kinds(after) == ["attention"]
    (step,) = after.steps
    names = {o.role: after.values[o.value].name for o in step.operands if o.role.startswith("past")}
    assert names == {"past_key": "x3", "past_value": "x4"}


def test_a_reader_behind_attention_has_what_it_joined() -> None:
    b = Small(RESULT, FRESH, FRESH, FRESH, CACHE, CACHE)
    query, key, value, past_key, past_value = b.inputs
    keys = joined(b, past_key, key)
    result = attended(b, query, keys, joined(b, past_value, value))
    last = b.step("slice", ir.Slice((0, 0, PAST, 0)), FRESH, [("src", keys)])
    seen = b.permute(last, (0, 2, 1, 3))
    assert kinds(fused(b, b.binary(result, b.plain_copy(seen))))[0] == "attention"


def test_caches_that_are_results_are_joined_where_they_go() -> None:
    """``keys`` of a decoder that hands its caches on: an output, seen as a local."""
    b = Small((1, HEADS, PAST + 1, DEPTH), FRESH, FRESH, FRESH, CACHE, CACHE)
    query, key, value, past_key, past_value = b.inputs
    other = b.port("output", "z", RESULT, "float32")
    keys = joined(b, past_key, key)
    b.write_output(attended(b, query, keys, joined(b, past_value, value)), other)
    b.write_output(keys, b.output)
    after, _, _ = fuse(b.finish(), list(b.constants))
    assert kinds(after) == ["attention"]
    (step,) = after.steps
    result = after.values[after.root(step.operand("joined_key"))]
    assert (result.kind, result.name) == ("output", "y")


def read_before(b: Small) -> int:
    query, key, value, past_key, past_value = b.inputs
    keys = joined(b, past_key, key)
    last = b.step("slice", ir.Slice((0, 0, PAST, 0)), FRESH, [("src", keys)])
    return attended(b, b.binary(query, last), keys, joined(b, past_value, value))


def three_pieces(b: Small) -> int:
    query, key, value, past_key, past_value = b.inputs
    keys, values = joined(b, past_key, key, twice=True), joined(b, past_value, value, twice=True)
    return attended(b, query, keys, values)


def keys_alone(b: Small) -> int:
    query, key, _, past_key, _ = b.inputs
    return attended(b, query, joined(b, past_key, key), b.numbers(1, HEADS, PAST + 1, DEPTH))


def one_for_both(b: Small) -> int:
    query, key, _, past_key, _ = b.inputs
    both = joined(b, past_key, key)
    return attended(b, query, both, both)


def seen_in_another_shape(b: Small) -> int:
    query, key, value, past_key, past_value = b.inputs
    keys = joined(b, past_key, key)
    result = attended(b, query, keys, joined(b, past_value, value))
    rows = b.reshape(keys, (HEADS, PAST + 1, DEPTH))
    last = b.step("slice", ir.Slice((0, PAST, 0)), (HEADS, 1, DEPTH), [("src", rows)])
    return b.binary(result, b.reshape(last, RESULT))


@pytest.mark.parametrize(
    "write", [read_before, three_pieces, keys_alone, one_for_both, seen_in_another_shape]
)
def test_what_is_no_cache_stays(write) -> None:
    b = Small(RESULT, FRESH, FRESH, FRESH, CACHE, CACHE)
    after = fused(b, write(b))
    assert "concat" in kinds(after)
    assert not any(o.role == "past_key" for step in after.steps for o in step.operands)


def test_pasts_of_two_lengths_stay() -> None:
    b = Small(RESULT, FRESH, FRESH, (1, HEADS, 3, DEPTH), CACHE, (1, HEADS, PAST - 2, DEPTH))
    query, key, value, past_key, past_value = b.inputs
    after = fused(b, attended(b, query, joined(b, past_key, key), joined(b, past_value, value)))
    assert kinds(after) == ["concat", "concat", "attention"]
