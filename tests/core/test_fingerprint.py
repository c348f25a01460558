"""Fingerprints: different values never write the same text, and large buffers hash by pieces."""

from __future__ import annotations

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tvm_mxplan.core.fingerprint import PIECE, Fingerprint, content_digest, content_digests

PLAIN = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-3, 300)
    | st.floats(allow_nan=False)
    | st.text(max_size=3)
    | st.binary(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner, max_size=3),
    max_leaves=6,
)


def digest(*pairs: tuple[str, object]) -> str:
    fingerprint = Fingerprint()
    for name, value in pairs:
        fingerprint.add(name, value)
    return fingerprint.hexdigest()


def typed(value: object) -> object:
    """A value that differs from another one wherever a type does; Python takes 1, 1.0 and True for equal."""
    if isinstance(value, list):
        return [typed(item) for item in value]
    if isinstance(value, dict):
        return {key: typed(item) for key, item in value.items()}
    return (type(value).__name__, repr(value))


@pytest.mark.slow
@given(PLAIN, PLAIN)
def test_equal_values_and_no_others_have_equal_digests(a, b):
    assert (digest(("x", a)) == digest(("x", b))) == (typed(a) == typed(b))


def test_names_order_and_borders_count():
    texts = [
        digest(("a", "b"), ("c", "d")),
        digest(("c", "d"), ("a", "b")),
        digest(("a", "bc"), ("", "d")),
        digest(("a", ["b", "c"])),
        digest(("a", [["b"], "c"])),
        digest(("a", ["bc"])),
        digest(("a", {"b": "c"})),
    ]
    assert len(set(texts)) == len(texts)
    assert digest(("a", {"x": 1, "y": 2})) == digest(("a", {"y": 2, "x": 1}))


def test_what_has_no_canonical_form_is_refused():
    with pytest.raises(TypeError, match="object has no canonical form"):
        digest(("a", object()))


@pytest.mark.parametrize("size", [0, 1, PIECE - 1, PIECE, PIECE + 1, 5 * PIECE])
def test_content_digests_are_hashes_of_hashes(size):
    data = bytes(i % 251 for i in range(1009)) * (size // 1009 + 1)
    data = data[:size]
    pieces = [hashlib.sha256(data[at : at + PIECE]).digest() for at in range(0, size, PIECE)]
    assert content_digest(memoryview(data)) == hashlib.sha256(b"".join(pieces)).digest()


def test_several_buffers_are_hashed_each_for_itself():
    buffers = [b"a", b"", bytes(5 * PIECE), b"b"]
    assert content_digests(buffers) == [content_digest(buffer) for buffer in buffers]
