"""Layouts of views, held against numpy: the same bytes through the view and in the layout it is given."""

import itertools

import numpy as np
import pytest

from tvm_mxplan.core.layout.layout import Layout, parse_layout, permute_layout
from tvm_mxplan.core.layout.views import Seen, layout_through


def stored(array: np.ndarray, tag: str) -> np.ndarray:
    """The elements of ``array`` as they stand in a layout that does not pad."""
    layout = parse_layout(tag)
    return array.reshape(layout.split_shape(array.shape)).transpose(layout.stored_order()).ravel()


def seen(declared: np.ndarray, view: Seen) -> np.ndarray:
    """Bytes declared in the view's layout, as the view's elements."""
    order = parse_layout(view.layout).order
    return declared.reshape([view.shape[dim] for dim in order]).transpose(np.argsort(order))


VIEWS = [
    ("channels last", Seen((1, 40, 7, 5), "abcd"), Seen((1, 7, 5, 40), "adbc"), "acdb", "abcd"),
    ("channels first", Seen((2, 7, 5, 40), "abcd"), Seen((2, 40, 7, 5), "acdb"), "abcd", "acdb"),
    ("tokens", Seen((2, 24, 3, 5), "abcd"), Seen((2, 24, 15), "abc"), "acdb", "acb"),
    ("tokens turned", Seen((2, 24, 3, 5), "abcd"), Seen((2, 15, 24), "acb"), "acdb", "abc"),
    ("an image of tokens", Seen((2, 24, 15), "abc"), Seen((2, 24, 3, 5), "abcd"), "acb", "acdb"),
    ("blocks of channels", Seen((2, 32, 3, 5), "abcd"), Seen((2, 3, 5, 32), "adbc"), "aBcd16b", "aDbc16d"),
    ("all channels in a block", Seen((2, 16, 3, 5), "abcd"), Seen((2, 3, 5, 16), "adbc"), "aBcd16b", "abcd"),
    ("blocks split further", Seen((2, 96, 5), "abc"), Seen((2, 6, 16, 5), "abcd"), "aBc32b", None),
    ("blocks that are a factor", Seen((2, 96, 5), "abc"), Seen((2, 6, 16, 5), "abcd"), "aBc16b", "abdc"),
    ("groups of channels", Seen((2, 12, 3, 5), "abcd"), Seen((2, 4, 3, 3, 5), "abcde"), "acdb", "adebc"),
    ("all of a sample", Seen((2, 6, 3, 5), "abcd"), Seen((2, 90), "ab"), "acdb", None),
    ("windows", Seen((1, 4, 6, 3), "abcd"), Seen((1, 2, 3, 2, 2, 3), "abdcef"), "acbd", "acebdf"),
    ("no common factors", Seen((6, 4), "ab"), Seen((4, 6), "ab"), "ba", None),
    ("one pixel", Seen((3, 20, 1, 1), "abcd"), Seen((3, 20), "ab"), "acdb", "ab"),
]


@pytest.mark.parametrize(
    ("base", "view", "layout", "expected"), [v[1:] for v in VIEWS], ids=[v[0] for v in VIEWS]
)
def test_a_view_shows_the_same_elements_in_the_layout_it_gets(base, view, layout, expected):
    found = layout_through(base, view, layout)
    assert found == expected
    if found is not None:
        numbers = np.random.default_rng(0).permutation(np.prod(base.shape))
        through = seen(stored(numbers.reshape(base.shape), base.layout), view)
        np.testing.assert_array_equal(stored(numbers.reshape(base.shape), layout), stored(through, found))


def test_every_order_of_every_permutation_agrees_with_permuted_layouts():
    shape, checked = (2, 3, 4, 5), 0
    for axes in itertools.permutations(range(4)):
        view = Seen(tuple(shape[axis] for axis in axes), permute_layout("abcd", axes))
        for order in itertools.permutations(range(4)):
            tag = Layout(order, ()).tag
            assert layout_through(Seen(shape, "abcd"), view, tag) == permute_layout(tag, axes)
            checked += 1
    assert checked == 576


def test_random_splits_and_merges_that_have_a_layout_show_the_same_elements():
    random = np.random.default_rng(5)
    held = 0
    for _ in range(300):
        factors = random.integers(2, 4, 5)
        base, view = (_merged(factors, random) for _ in range(2))
        order = random.permutation(len(view))
        turned = Seen(tuple(view[axis] for axis in order), permute_layout("abcdef"[: len(view)], order))
        tag = Layout(tuple(map(int, random.permutation(len(base)))), ()).tag
        plain = "abcdef"[: len(base)]
        found = layout_through(Seen(base, plain), turned, tag)
        if found is None:
            continue
        numbers = np.arange(np.prod(base)).reshape(base)
        np.testing.assert_array_equal(stored(numbers, tag), stored(seen(numbers.ravel(), turned), found))
        held += 1
    assert held > 60


def _merged(factors: np.ndarray, random: np.random.Generator) -> tuple[int, ...]:
    """The factors with some neighbours multiplied."""
    shape = [int(factors[0])]
    for factor in factors[1:]:
        if random.random() < 0.5:
            shape.append(int(factor))
        else:
            shape[-1] *= int(factor)
    return tuple(shape)


def test_extents_that_are_names_are_permuted_and_not_split():
    base = Seen(("n", 8, "h", "w"), "abcd")
    assert layout_through(base, Seen(("n", "h", "w", 8), "adbc"), "acdb") == "abcd"
    assert layout_through(base, Seen(("n", 8, "h*w"), "abc"), "acdb") is None
