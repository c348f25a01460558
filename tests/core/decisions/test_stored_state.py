"""State as it is stored: packed with zeros, read back, written as text and as JSON."""

from __future__ import annotations

import json
from dataclasses import asdict

import numpy as np

from tvm_mxplan.core.decisions.stored_state import StoredState


def test_weights_of_groups_are_packed_with_zeros_and_read_back() -> None:
    stored = StoredState(3, (2, 5, 3, 2, 2), "aBcde8b")
    plain = np.random.default_rng(0).standard_normal((10, 3, 2, 2)).astype("float32")
    packed = stored.packed(plain)
    assert packed.shape == stored.stored_shape == (2, 1, 3, 2, 2, 8)
    assert np.count_nonzero(packed) == plain.size
    assert not packed[..., 5:].any()
    np.testing.assert_array_equal(stored.unpacked(packed, plain.shape), plain)


def test_what_is_written_is_read_again() -> None:
    stored = StoredState(12, (64, 17, 3, 3), "ABcd8b8a")
    assert StoredState.from_json(json.loads(json.dumps(asdict(stored)))) == stored
