"""Layouts by the names that people use: every rank and family, there and back."""

from __future__ import annotations

import pytest

from tvm_mxplan.core.layout.layout import channels_blocked, channels_last, parse_layout, plain_layout
from tvm_mxplan.core.layout.layout_names import image_layout, layout_named, name_of

ACTIVATIONS = {
    "ncw": "abc", "nwc": "acb", "nCw16c": "aBc16b",
    "nchw": "abcd", "nhwc": "acdb", "nChw16c": "aBcd16b", "nChw8c": "aBcd8b", "chwn": "bcda",
    "ncdhw": "abcde", "ndhwc": "acdeb", "nCdhw16c": "aBcde16b",
}  # fmt: skip
WEIGHTS = {
    "oiw": "abc", "wio": "cba",
    "oihw": "abcd", "hwio": "cdba", "ohwi": "acdb", "OIhw16i16o": "ABcd16b16a", "Ohwi16o": "Acdb16a",
    "oidhw": "abcde", "dhwio": "cdeba",
}  # fmt: skip
GROUPED = {"goiw": "abcd", "goihw": "abcde", "gOihw16o": "aBcde16b", "hwigo": "decab", "goidhw": "abcdef"}


@pytest.mark.parametrize(("name", "tag"), [*ACTIVATIONS.items(), *WEIGHTS.items(), *GROUPED.items()])
def test_names_and_tags_are_the_same_layouts(name: str, tag: str) -> None:
    assert layout_named(name) == parse_layout(tag)
    assert layout_named(tag) == parse_layout(tag)


@pytest.mark.parametrize(("name", "tag"), ACTIVATIONS.items())
def test_activations_are_called_by_their_names(name: str, tag: str) -> None:
    assert name_of(parse_layout(tag)) == name


@pytest.mark.parametrize(("name", "tag"), WEIGHTS.items())
def test_weights_are_called_by_theirs(name: str, tag: str) -> None:
    assert name_of(parse_layout(tag), weights=True) == name


@pytest.mark.parametrize("tag", ["a", "ba", "abcdef", "aBcdef16b"])
def test_other_ranks_have_no_names(tag: str) -> None:
    assert name_of(parse_layout(tag)) == tag
    assert name_of(parse_layout(tag), weights=True) == tag


@pytest.mark.parametrize("name", ["", "16c", "nchq", "nchw16", "nchw 16c", "nnhw", "ncHw16h16", "plain?"])
def test_what_is_no_name_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="expected a name such as nchw, nhwc or nChw16c, or a tag"):
        layout_named(name)


@pytest.mark.parametrize("rank", [3, 4, 5])
def test_families_are_of_the_rank_and_block_asked_for(rank: int) -> None:
    assert image_layout("plain", rank, 16) == parse_layout(plain_layout(rank))
    assert image_layout("channels_last", rank, 16) == parse_layout(channels_last(rank))
    for block in (8, 16):
        assert image_layout("blocked", rank, block) == parse_layout(channels_blocked(rank, block))


def test_images_by_name_and_tag() -> None:
    assert image_layout("nhwc", 4, 16) == image_layout("acdb", 4, 8) == parse_layout("acdb")
    with pytest.raises(ValueError, match="layout 'nhwc' is of rank 4, the tensor of rank 5"):
        image_layout("nhwc", 5, 16)
    with pytest.raises(ValueError, match="expected a name"):
        image_layout("channels", 4, 16)
