"""Named layouts, arrays in them, and the registry: inverse to each other, zeros in the padding, two hops."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tvm_mxplan.core.layout.layout import Layout, channels_blocked, channels_last, parse_layout, plain_layout
from tvm_mxplan.core.layout.layout_arrays import pack, unpack
from tvm_mxplan.core.layout.layout_names import image_layout, layout_named, name_of
from tvm_mxplan.core.layout.layout_registry import STANDARD, LayoutRegistry, merged, numpy_registry

NAMES = {
    "nchw": "abcd", "nhwc": "acdb", "nChw8c": "aBcd8b", "nChw16c": "aBcd16b", "ncdhw": "abcde",
    "nCdhw16c": "aBcde16b", "nwc": "acb", "oihw": "abcd", "OIhw16i16o": "ABcd16b16a",
    "OIhw4i16o4i": "ABcd4b16a4b", "gOihw16o": "aBcde16b", "acdb": "acdb",
}  # fmt: skip


@pytest.mark.parametrize("name, tag", NAMES.items())
def test_names_are_tags(name: str, tag: str) -> None:
    assert layout_named(name).tag == tag
    if name not in ("acdb", "gOihw16o"):
        assert name_of(layout_named(name), weights="o" in name.lower()) == name


@pytest.mark.parametrize("name", ["", "nchq", "nchw16c", "nChw", "NHWC16", "off"])
def test_other_names_are_refused(name: str) -> None:
    with pytest.raises(ValueError, match="layout"):
        layout_named(name)


def test_layouts_of_images_by_family_and_rank() -> None:
    assert image_layout("blocked", 4, 8).tag == "aBcd8b"
    assert image_layout("channels_last", 3, 8).tag == "acb"
    assert image_layout("nhwc", 4, 8).tag == "acdb"
    with pytest.raises(ValueError, match="of rank 4, the tensor of rank 3"):
        image_layout("nhwc", 3, 8)


def test_shapes_strides_and_bytes() -> None:
    layout, shape = layout_named("nChw16c"), (2, 17, 3, 5)
    assert layout.physical_shape(shape) == (2, 2, 3, 5, 16)
    assert layout.strides(shape) == (480, 240, 80, 16)
    assert layout.elements(shape) == 2 * 32 * 15
    assert layout_named("nhwc").strides(shape) == (255, 1, 85, 17)


@st.composite
def cases(draw: st.DrawFn) -> tuple[Layout, tuple[int, ...]]:
    """A layout of images or weights and a shape, with up to 130 channels."""
    rank = draw(st.integers(3, 5))
    block = draw(st.sampled_from((8, 16)))
    last, blocked = parse_layout(channels_last(rank)), parse_layout(channels_blocked(rank, block))
    inner = tuple((draw(st.sampled_from((4, 8, 16))), draw(st.integers(0, 1))) for _ in range(3))
    weights = Layout(tuple(draw(st.permutations(range(rank)))), inner)
    layout = draw(st.sampled_from((parse_layout(plain_layout(rank)), last, blocked, weights)))
    spatial = [draw(st.integers(1, 4)) for _ in range(rank - 2)]
    return layout, (draw(st.integers(1, 3)), draw(st.integers(1, 130)), *spatial)


@given(cases())
def test_pack_and_unpack_are_inverse_and_tails_are_zero(case: tuple[Layout, tuple[int, ...]]) -> None:
    layout, shape = case
    array = np.arange(1, 1 + np.prod(shape), dtype="float32").reshape(shape)
    packed = pack(array, layout)
    assert packed.shape == layout.physical_shape(shape)
    assert packed.size == layout.elements(shape)
    np.testing.assert_array_equal(unpack(packed, layout, shape), array)
    # What is stored is the array and zeros, nothing else.
    assert np.count_nonzero(packed) == array.size
    np.testing.assert_array_equal(np.sort(packed[packed != 0]), array.reshape(-1))


@given(cases())
def test_strides_say_where_elements_stand(case: tuple[Layout, tuple[int, ...]]) -> None:
    """The offset of an element from its outer indices and inner blocks, against the packed array."""
    layout, shape = case
    array = np.arange(1, 1 + np.prod(shape), dtype="float32").reshape(shape)
    packed, strides = pack(array, layout).reshape(-1), layout.strides(shape)
    for index in itertools.islice(np.ndindex(*shape), 0, None, max(1, array.size // 17)):
        rest, inner, step = list(index), 0, 1
        for size, dim in reversed(layout.blocks):
            inner += step * (rest[dim] % size)
            rest[dim] //= size
            step *= size
        outer = sum(count * stride for count, stride in zip(rest, strides, strict=True))
        assert packed[outer + inner] == array[index]


def test_wrong_physical_shapes_are_named() -> None:
    with pytest.raises(ValueError, match=r"has the shape \(1, 2, 3, 4, 16\), not \(1, 17, 3, 4\)"):
        unpack(np.zeros((1, 17, 3, 4)), layout_named("nChw16c"), (1, 17, 3, 4))


# --- the registry ------------------------------------------------------------------------------------------


@given(st.sampled_from(("nchw", "nhwc", "nChw8c", "nChw16c")), st.sampled_from(("nhwc", "nChw16c")),
       st.integers(1, 130))  # fmt: skip
def test_every_way_and_back_gives_the_same(source: str, target: str, channels: int) -> None:
    registry = numpy_registry(("nchw", "nhwc", "nChw8c", "nChw16c"))
    shape = (2, channels, 3, 2)
    array = np.random.default_rng(channels).standard_normal(shape, np.float32)
    there = registry.convert(array, shape, STANDARD, source)
    across = registry.convert(there, shape, source, target)
    np.testing.assert_array_equal(across, pack(array, layout_named(target)))
    back = registry.convert(across, shape, target, source)
    np.testing.assert_array_equal(registry.convert(back, shape, source, STANDARD), array)


def test_two_hops_where_there_is_no_direct_converter() -> None:
    registry, taken = LayoutRegistry(), []

    def hop(name: str) -> object:
        return lambda tensor, shape: taken.append(name) or tensor

    for name in ("nhwc", "nChw16c", "secret"):
        registry.announce(
            name, to_standard=hop(f"{name} out"), from_standard=hop(f"{name} in"), opaque=name == "secret"
        )
    assert registry.path("nhwc", "secret") == ("nhwc", STANDARD, "secret")
    registry.convert(0, (1, 1, 1, 1), "nhwc", "secret")
    assert taken == ["nhwc out", "secret in"]
    registry.announce_direct("nhwc", "nChw16c", hop("direct"))
    registry.convert(0, (1, 1, 1, 1), "nhwc", "nChw16c")
    registry.convert(0, (1, 1, 1, 1), "nhwc", "nhwc")
    assert taken[2:] == ["direct"]
    assert registry["secret"].layout is None
    assert registry["nhwc"].layout == layout_named("nhwc")
    assert [record.name for record in registry] == ["nhwc", "nChw16c", "secret"]


def test_the_registry_refuses_what_it_does_not_know() -> None:
    registry = numpy_registry(("nhwc", "nChw16c"))
    with pytest.raises(ValueError, match="no layout 'nChw32c'; known are for example nhwc, nChw16c"):
        registry.convert(np.zeros((1, 1, 1, 1)), (1, 1, 1, 1), STANDARD, "nChw32c")
    with pytest.raises(ValueError, match="announced twice"):
        registry.announce("nhwc", to_standard=lambda a, _: a, from_standard=lambda a, _: a)


def test_three_names_that_are_close_are_told() -> None:
    registry = numpy_registry(("nhwc", "nChw4c", "nChw8c", "nChw16c", "nChw2c", "oihw"))
    with pytest.raises(ValueError, match=r"known are for example (nChw\d+c, ){2}nChw\d+c$"):
        registry["nChw32c"]
    with pytest.raises(
        ValueError, match=r"known are for example nhwc, nChw4c, nChw8c, nChw16c, nChw2c, oihw$"
    ):
        registry["?"]
    with pytest.raises(ValueError, match="announced twice"):
        registry.announce(STANDARD, to_standard=lambda a, _: a, from_standard=lambda a, _: a)


def test_of_several_registries_the_first_counts() -> None:
    def registry(name: str, *layouts: str) -> LayoutRegistry:
        made = LayoutRegistry()
        for layout in layouts:
            made.announce(
                layout,
                to_standard=lambda _tensor, _shape: f"{name} out",
                from_standard=lambda _tensor, _shape: f"{name} in",
            )
        made.announce_direct(layouts[0], layouts[1], lambda _tensor, _shape: f"{name} direct")
        return made

    first, second = registry("first", "nhwc", "nchw"), registry("second", "nhwc", "nChw16c")
    whole = merged([first, second])
    assert sorted(record.name for record in whole) == ["nChw16c", "nchw", "nhwc"]
    for target, by in (("nchw", "first direct"), ("nChw16c", "second direct"), (STANDARD, "first out")):
        assert whole.convert(0, (1, 1, 1, 1), "nhwc", target) == by
    assert whole.convert(0, (1, 1, 1, 1), STANDARD, "nChw16c") == "second in"
    assert len(list(first)) == len(list(second)) == 2, "what came in stays as it was"
