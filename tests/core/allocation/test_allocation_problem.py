"""Malformed problems are refused with the item and what was expected; lower bounds are what they say."""

import pytest
from allocation_cases import live_bytes, random_groups, random_singles, single

from tvm_mxplan.core.allocation import Item, Plan, Problem, ProblemError, Rectangle, Status, lower_bound

THREE = Problem((single("a", 0, 2, 100), single("b", 1, 3, 80), single("c", 2, 4, 60)))


@pytest.mark.parametrize(
    "item, expected",
    [
        (Item("x", ()), "'x' has no rectangles"),
        (single("x", 3, 3, 8), "death 3 is not after birth 3"),
        (single("x", -1, 3, 8), "birth is -1"),
        (single("x", 0, 3, -8), "nbytes is -8"),
        (Item("x", (Rectangle(0, 1, -64, 8),)), "offset is -64"),
        (single("x", 0, 1, 8, alignment=0), "alignment is 0"),
        (single("x", 0, 1, 2**63), "a number does not fit into 64 bits"),
        (single("x", 0, 2**63, 8), "a number does not fit into 64 bits"),
        (Item("x", (Rectangle(0, 1, 2**62, 2**62),)), "a number does not fit into 64 bits"),
    ],
)
def test_a_malformed_item_is_refused(item: Item, expected: str) -> None:
    with pytest.raises(ProblemError, match=expected) as error:
        Problem((single("fine", 0, 1, 8), item))
    assert "'x'" in str(error.value)


def test_items_that_could_overflow_when_stacked_are_refused() -> None:
    with pytest.raises(ProblemError, match="stacked, do not fit into 64 bits"):
        Problem(tuple(single(str(number), 0, 1, 2**61) for number in range(4)))


def test_a_negative_capacity_is_refused() -> None:
    with pytest.raises(ProblemError, match="capacity is -1"):
        Problem((), -1)
    assert Problem((), 0).capacity == 0


def test_numbers_up_to_64_bits_are_taken() -> None:
    """Each limit is the last number that is fine."""
    most = 2**63 - 1
    assert Problem((single("a", most - 1, most, 0, alignment=most),)).items[0].death == most
    assert Problem((single("a", 0, 1, 2**62, 2**62 - 1),)).items[0].extent == 2**62
    with pytest.raises(ProblemError, match="scope 'global' up to this one, stacked"):
        Problem((single("a", 0, 1, 2**62, 2**62),))
    items = (single("a", 0, 1, 2**62), Item("b", (Rectangle(0, 1, 0, 2**62),), scope="local"))
    assert Problem(items).scopes == ("global", "local")


def test_three_lives_that_overlap_by_pairs_need_180_bytes() -> None:
    assert lower_bound(THREE) == 180


def test_alignment_counts_for_all_but_the_topmost() -> None:
    """100 bytes take two grains of 64; 80 bytes on top of them end at 208."""
    aligned = Problem((single("a", 0, 2, 100, 64), single("b", 1, 3, 80, 64)))
    assert lower_bound(aligned) == 208


def test_bounds_are_exact_beyond_the_digits_of_a_float() -> None:
    assert lower_bound(Problem((single("a", 0, 2, 2**53 + 1), single("b", 1, 3, 2)))) == 2**53 + 3
    aligned = (single("a", 0, 2, 2**53 + 1, 8), single("b", 1, 3, 2**53 + 2, 8))
    assert lower_bound(Problem(aligned)) == 2**54 + 9


def test_nothing_needs_nothing() -> None:
    assert lower_bound(Problem(())) == 0
    assert lower_bound(Problem((single("empty", 0, 5, 0),))) == 0


def test_a_group_needs_all_between_its_base_and_its_end() -> None:
    """Two pieces that are never there together, the second one far behind the first."""
    group = Item("x", (Rectangle(0, 1, 0, 100), Rectangle(1, 2, 200, 100)), 1)
    assert lower_bound(Problem((group,))) == 300
    assert lower_bound(Problem((group, single("y", 1, 2, 50)))) == 300
    assert lower_bound(Problem((group, single("y", 1, 2, 250)))) == 350


def test_scopes_add_up() -> None:
    items = (Item("a", (Rectangle(0, 2, 0, 64),)), Item("b", (Rectangle(0, 2, 0, 128),), scope="local"))
    assert lower_bound(Problem(items)) == 192


@pytest.mark.parametrize("seed", range(50))
def test_the_bound_is_the_live_bytes_of_unaligned_singles(seed: int) -> None:
    problem = random_singles(seed)
    assert lower_bound(problem) == live_bytes(problem)


@pytest.mark.parametrize("seed", range(50))
def test_the_bound_is_at_least_the_live_bytes_of_groups(seed: int) -> None:
    problem = random_groups(seed)
    assert lower_bound(problem) >= live_bytes(problem)


@pytest.mark.parametrize("seed", range(50))
@pytest.mark.parametrize("alignment", [1, 64])
def test_declaring_an_alias_never_raises_the_bound(seed: int, alignment: int) -> None:
    """The smaller of two items becomes a view of the larger one, somewhere inside it."""
    items = list(random_singles(seed, size=200, alignment=alignment).items)
    items.sort(key=lambda item: item.extent)
    view, parent = items[seed % 9].rectangles[0], items[9].rectangles[0]
    for offset in {0, (parent.nbytes - view.nbytes) // 2, parent.nbytes - view.nbytes}:
        group = Item("parent", (parent, Rectangle(view.birth, view.death, offset, view.nbytes)), alignment)
        rest = [item for index, item in enumerate(items) if index not in (seed % 9, 9)]
        assert lower_bound(Problem((*rest, group))) <= lower_bound(Problem(tuple(items)))


def test_a_group_spans_all_of_its_rectangles() -> None:
    """Neither the first nor the last one says when a group lives and how far it reaches."""
    rectangles = (
        Rectangle(3, 6, 64, 32),
        Rectangle(1, 2, 0, 16),
        Rectangle(5, 9, 16, 8),
        Rectangle(4, 5, 8, 1),
    )
    item = Item("x", rectangles)
    assert (item.birth, item.death, item.extent) == (1, 9, 96)
    assert Problem((item,)).scopes == ("global",)
    assert Problem((Item("y", rectangles, scope="b"), Item("x", rectangles, scope="a"))).scopes == ("a", "b")
    assert Problem(()).scopes == ()


def test_a_plan_fits_if_the_arena_of_each_scope_does() -> None:
    plan = Plan((0, 0), {"a": 100, "b": 300}, {"a": 100, "b": 200})
    assert (plan.height, plan.lower_bound) == (400, 300)
    assert plan.fits(300) and plan.fits(None)
    assert not plan.fits(299) and not plan.fits(100)
    nothing = Plan(())
    assert (nothing.nodes, nothing.height, nothing.status, nothing.fits(0)) == (0, 0, Status.FEASIBLE, True)
