"""TVM's reuse of whole storages, on cases worked out by hand from its rules."""

from __future__ import annotations

from tvm_mxplan.core.allocation import Item, Problem, Rectangle, lower_bound
from tvm_mxplan.core.allocation.token_reuse import token_reuse


def problem(*buffers: tuple[int, int, int]) -> Problem:
    """Buffers as (birth, death, bytes)."""
    return Problem(
        tuple(Item(f"b{i}", (Rectangle(b, d, 0, size),)) for i, (b, d, size) in enumerate(buffers))
    )


def test_nothing_takes_nothing():
    assert token_reuse(Problem(())) == 0


def test_a_chain_alternates_between_two_tokens():
    assert token_reuse(problem((0, 2, 640), (1, 3, 640), (2, 4, 640), (3, 5, 640))) == 1280


def test_what_dies_in_a_step_is_not_free_in_it():
    """[0, 1) and [1, 2) share a token, [0, 2) and [1, 2) do not."""
    assert token_reuse(problem((0, 1, 64), (1, 2, 64))) == 64
    assert token_reuse(problem((0, 2, 64), (1, 2, 64))) == 128


def test_the_smallest_token_that_fits_is_taken_before_a_smaller_one_grows():
    assert token_reuse(problem((0, 1, 100), (0, 1, 300), (0, 1, 200), (1, 2, 150))) == 600
    # Both are smaller: the larger grows.
    assert token_reuse(problem((0, 1, 100), (0, 1, 300), (1, 2, 400))) == 500


def test_sixteen_times_is_the_limit_both_ways():
    assert token_reuse(problem((0, 1, 1600), (1, 2, 100))) == 1600
    assert token_reuse(problem((0, 1, 1601), (1, 2, 100))) == 1701
    assert token_reuse(problem((0, 1, 100), (1, 2, 1600))) == 1600
    assert token_reuse(problem((0, 1, 99), (1, 2, 1600))) == 1699


def test_a_token_for_each_size_is_more_than_an_arena_needs():
    """Two small buffers fit where a large one stood; tokens hold one each."""
    buffers = problem((0, 1, 1024), (1, 2, 512), (1, 2, 512))
    assert lower_bound(buffers) == 1024
    assert token_reuse(buffers) == 1536


def test_memories_have_tokens_of_their_own():
    """The second one could take the token of the first; the third can."""
    buffers = problem((0, 1, 64), (1, 2, 48), (1, 2, 40)).items
    moved = Item("b1", buffers[1].rectangles, scope="local")
    assert token_reuse(Problem((buffers[0], moved, buffers[2]))) == 64 + 48


def test_a_group_is_one_buffer_over_its_whole_life():
    group = Item("group", (Rectangle(0, 2, 0, 64), Rectangle(1, 4, 64, 64)))
    assert token_reuse(Problem((group, Item("late", (Rectangle(2, 3, 0, 64),))))) == 192
