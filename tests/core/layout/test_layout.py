"""Layouts as values: tags, padding, permutations, and when two of them are the same bytes."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from tvm_mxplan.core.layout.layout import (
    channels_blocked,
    channels_last,
    dense_box,
    parse_layout,
    permute_layout,
    plain_layout,
    same_bytes,
)


def storage_order(tag: str, shape: tuple[int, ...]) -> np.ndarray:
    """Logical indices (flat) in the order of memory, -1 for padding: an independent reading of a tag."""
    layout = parse_layout(tag)
    padded = layout.padded_shape(shape)
    logical = np.full(padded, -1)
    logical[tuple(slice(extent) for extent in shape)] = np.arange(np.prod(shape)).reshape(shape)
    outer = list(padded)
    for size, dim in layout.blocks:
        outer[dim] //= size
    order = list(layout.order)
    blocks = list(layout.blocks)
    if not blocks:
        return logical.transpose(order).reshape(-1)
    ((size, dim),) = blocks
    split = logical.reshape(*padded[:dim], outer[dim], size, *padded[dim + 1 :])
    axes = [axis if axis <= dim else axis + 1 for axis in order]
    return split.transpose([*axes, dim + 1]).reshape(-1)


@pytest.mark.parametrize("tag", ["abcd", "acdb", "aBcd16b", "aBcd8b", "abcde", "aBcde16b", "ba", ""])
def test_tags_round_trip(tag: str) -> None:
    assert parse_layout(tag).tag == tag


@pytest.mark.parametrize("tag", ["abd", "aab", "aBcd", "abcd16b", "16b", "aBcd16c"])
def test_bad_tags_are_refused(tag: str) -> None:
    with pytest.raises(ValueError, match="layout"):
        parse_layout(tag)


@pytest.mark.parametrize("channels", [1, 3, 16, 17, 35, 100, 1000])
def test_padded_channels(channels: int) -> None:
    layout = parse_layout(channels_blocked(4, 16))
    assert layout.padded_shape((2, channels, 5, 7)) == (2, -(-channels // 16) * 16, 5, 7)
    assert layout.elements((2, channels, 5, 7)) == storage_order(layout.tag, (2, channels, 5, 7)).size


def test_permutation_sees_the_same_bytes() -> None:
    shape, axes = (2, 3, 4, 5), (0, 2, 3, 1)
    permuted = permute_layout("abcd", axes)
    logical = np.arange(np.prod(shape)).reshape(shape).transpose(axes)
    np.testing.assert_array_equal(
        logical.reshape(-1)[storage_order(permuted, logical.shape)], np.arange(np.prod(shape))
    )


@pytest.mark.parametrize("shape", list(itertools.product((1, 2), (1, 3, 16, 17, 32), (1, 4), (1, 5))))
def test_same_bytes_says_what_memory_says(shape: tuple[int, ...]) -> None:
    """Never yes where the orders differ, and yes wherever two unblocked layouts agree."""
    tags = (plain_layout(4), channels_last(4), channels_blocked(4, 16))
    for a, b in itertools.combinations(tags, 2):
        left, right = storage_order(a, shape), storage_order(b, shape)
        equal = left.size == right.size and bool((left == right).all())
        if same_bytes(a, b, shape):
            assert equal, (a, b, shape)
        elif not parse_layout(a).blocks and not parse_layout(b).blocks:
            assert not equal, (a, b, shape)


@pytest.mark.parametrize(
    ("a", "b", "shape"),
    [
        ("abcd", "aBcd16b", (1, 32, 1, 1)),
        ("acdb", "aBcd16b", (2, 32, 1, 1)),
        ("acdb", "aBcd16b", (2, 16, 4, 5)),
        ("aBcd8b", "aBcd16b", (2, 32, 1, 1)),
        ("abcd", "cdab", (2, 3, 1, 1)),
    ],
)
def test_blocks_may_be_the_same_bytes_as_none(a: str, b: str, shape: tuple[int, ...]) -> None:
    """All channels of a pixel side by side, whatever the blocks: no reorder is needed."""
    assert (storage_order(a, shape) == storage_order(b, shape)).all()
    assert same_bytes(a, b, shape) and same_bytes(b, a, shape)


@pytest.mark.parametrize("tag", ["abcd", "acdb", "aBcd16b", "aBcd4b", "bacd"])
def test_dense_box_says_what_memory_says(tag: str) -> None:
    """A box is one piece exactly if its own storage order is a run of the whole's, padding included."""
    rng, dense = np.random.default_rng(0), 0
    for _ in range(400):
        shape = tuple(int(n) for n in rng.choice((1, 2, 3), 4) * [1, int(rng.choice((1, 8, 16))), 1, 1])
        begin = [int(rng.choice((0, extent // 2, rng.integers(0, extent)))) for extent in shape]
        extents = [
            int(rng.choice((extent - low, rng.integers(1, extent - low + 1))))
            for low, extent in zip(begin, shape, strict=True)
        ]
        box = tuple(slice(low, low + extent) for low, extent in zip(begin, extents, strict=True))
        logical = np.arange(np.prod(shape)).reshape(shape)[box].reshape(-1)
        part = storage_order(tag, tuple(extents))
        part = np.where(part < 0, -1, logical[part])
        whole = storage_order(tag, shape)
        first = int(np.argmax(whole == part[0]))
        expected = first if np.array_equal(whole[first : first + part.size], part) else None
        assert dense_box(tag, shape, begin, extents) == expected, (tag, shape, begin, extents)
        dense += expected is not None
    assert 40 < dense < 360


def test_physical_shapes():
    assert parse_layout("abcd").physical_shape((1, 17, 8, 9)) == (1, 17, 8, 9)
    assert parse_layout("acdb").physical_shape((1, 17, 8, 9)) == (1, 8, 9, 17)
    assert parse_layout("aBcd16b").physical_shape((1, 17, 8, 9)) == (1, 2, 8, 9, 16)
    assert parse_layout("aBcd16b").physical_shape(("n", 17, "h", "w")) == ("n", 2, "h", "w", 16)


def test_what_pads():
    assert parse_layout("aBcd16b").pads((1, 17, 8, 9))
    assert not parse_layout("aBcd16b").pads((1, 32, 8, 9))
    assert not parse_layout("acdb").pads((1, 17, 8, 9))


def test_a_single_number_has_a_layout():
    layout = parse_layout(plain_layout(0))
    assert (layout.order, layout.blocks, layout.tag) == ((), (), "")
    assert layout.physical_shape(()) == layout.padded_shape(()) == layout.strides(()) == ()
    assert layout.elements(()) == 1
    assert layout.elements(()) == 1
    assert not layout.pads(())
    assert permute_layout("", ()) == ""
    assert same_bytes("", "", ())
    assert dense_box("", (), (), ()) == 0


@pytest.mark.parametrize("rank", [0, 1])
def test_without_channels_every_layout_is_plain(rank: int):
    assert channels_last(rank) == channels_blocked(rank, 16) == plain_layout(rank)


def test_layouts_of_every_rank() -> None:
    """Matrices have channels too; vectors and numbers have none."""
    assert [channels_blocked(rank, 16) for rank in range(6)] == [
        "",
        "a",
        "aB16b",
        "aBc16b",
        "aBcd16b",
        "aBcde16b",
    ]
    assert [channels_last(rank) for rank in range(6)] == ["", "a", "ab", "acb", "acdb", "acdeb"]
    assert [plain_layout(rank) for rank in range(4)] == ["", "a", "ab", "abc"]
