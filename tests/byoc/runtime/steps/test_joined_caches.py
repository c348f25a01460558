"""Attention on keys and values behind past ones: one query and many, layouts, types."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from program_builder import Array, Builder, call, random

from tvm_mxplan.byoc.onednn import library
from tvm_mxplan.byoc.onednn.backend import OneDNN
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.errors import InvalidInputError
from tvm_mxplan.opcheck import checking

MISSING = OneDNN().lacks("bfloat16")
"""The reason that nothing runs in bfloat16, '' if something does."""
N, H, G = 2, 4, 2


def attended(query: Array, key: Array, value: Array) -> Array:
    """Attention in which the last query sees all keys, and each one before it one less."""
    rows, keys = query.shape[2], key.shape[2]
    scores = np.einsum("nhsd,nhtd->nhst", query, key.repeat(H // G, 1)) * query.shape[3] ** -0.5
    scores = np.where(np.tri(rows, keys, keys - rows, dtype=bool), scores, -np.inf)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    weights /= weights.sum(-1, keepdims=True)
    return np.einsum("nhst,nhtw->nshw", weights, value.repeat(H // G, 1))


def results(
    past: int, fresh: int, depth: int, width: int, dtype: str = "float32", heads: str = ""
) -> dict[str, tuple[Array, Array]]:
    """The step's results and the expected ones, by role; opcheck has looked at each."""
    rows = fresh
    shapes = {
        "src": (N, H, rows, depth),
        "key": (N, G, fresh, depth),
        "value": (N, G, fresh, width),
        "past_key": (N, G, past, depth),
        "past_value": (N, G, past, width),
    }
    kind = np.dtype(getattr(ml_dtypes, dtype, dtype))
    arrays = {role: random(*shape, seed=at).astype(kind) for at, (role, shape) in enumerate(shapes.items())}
    b = Builder()
    order = [0, 2, 1, 3] if heads else [0, 1, 2, 3]
    ids = {
        role: b.input(shape, heads if role in ("src", "key", "value") else "", dtype)
        for role, shape in shapes.items()
    }
    given = [
        np.ascontiguousarray(array.transpose(order)) if role in ("src", "key", "value") else array
        for role, array in arrays.items()
    ]
    made = {"joined_key": (N, G, past + fresh, depth), "joined_value": (N, G, past + fresh, width)}
    made["dst"] = (N, rows, H, width)
    ids |= {role: b.output(shape, "", dtype) for role, shape in made.items()}
    b.step(ir.Attention(depth**-0.5, "last"), **ids)
    outputs = [np.zeros(shape, kind) for shape in made.values()]
    with checking() as checker:
        call(b.module(), b.name, *given, *outputs)
    result = checker.result()
    assert result.steps == 1 and result.first is None, result
    wide = {role: array.astype(np.float64) for role, array in arrays.items()}
    key, value = (np.concatenate([wide[f"past_{role}"], wide[role]], 2) for role in ("key", "value"))
    dst = attended(wide["src"], key, value)
    return dict(zip(made, zip(outputs, (key, value, dst), strict=True), strict=True))


def check(found: dict[str, tuple[Array, Array]], tolerance: float = 4e-6) -> None:
    for role in ("joined_key", "joined_value"):
        got, wanted = found[role]
        assert np.array_equal(got.astype(np.float64), wanted)
    got, wanted = found["dst"]
    np.testing.assert_allclose(got.astype(np.float64), wanted, rtol=0, atol=tolerance)


@pytest.mark.parametrize("heads", ["", "acbd"])
@pytest.mark.parametrize(
    ("past", "fresh", "depth", "width"),
    [
        (7, 1, 16, 24),  # one query, few keys
        (300, 1, 17, 19),
        (5, 3, 16, 16),
        (1100, 1, 64, 64),
        (9000, 1, 64, 64),
        (40, 70, 32, 32),  # several blocks of queries for each head
    ],
)
def test_against_float64(past: int, fresh: int, depth: int, width: int, heads: str) -> None:
    check(results(past, fresh, depth, width, heads=heads))


@pytest.mark.skipif(bool(MISSING), reason=MISSING)
@pytest.mark.parametrize("past", [20, 3000])
def test_in_bfloat16(past: int) -> None:
    check(results(past, 1, 64, 64, dtype="bfloat16"), 2**-7)


def cached(
    filled: int, fresh: int, capacity: int = 40, shared: bool = False
) -> dict[str, tuple[Array, Array]]:
    """The step's results on caches and the expected ones; ``shared``: they are written where they are."""
    depth, rows = 16, fresh
    shapes = {
        "src": (N, H, rows, depth),
        "key": (N, G, fresh, depth),
        "value": (N, G, fresh, depth),
        "past_key": (N, G, capacity, depth),
        "past_value": (N, G, capacity, depth),
    }
    arrays = {role: random(*shape, seed=at) for at, (role, shape) in enumerate(shapes.items())}
    b = Builder()
    ids = {role: b.input(shape) for role, shape in shapes.items()}
    ids["filled"] = b.input((1,), dtype="int32")
    made = {"joined_key": shapes["past_key"], "joined_value": shapes["past_key"], "dst": (N, rows, H, depth)}
    ids |= {role: b.output(shape) for role, shape in made.items()}
    b.step(ir.Attention(depth**-0.5, "last"), **ids)
    given = {role: array.copy() for role, array in arrays.items()}
    outputs = [np.zeros(shape, "float32") for shape in made.values()]
    if shared:
        outputs[:2] = given["past_key"], given["past_value"]
    with checking() as checker:
        call(b.module(), b.name, *given.values(), np.array([filled], "int32"), *outputs)
    result = checker.result()
    assert result.steps == 1 and result.first is None, result
    joined = {}
    for role in ("key", "value"):
        joined[role] = arrays[f"past_{role}"].copy()
        joined[role][:, :, filled : filled + fresh] = arrays[role]
    key, value = (joined[role][:, :, : filled + fresh].astype(np.float64) for role in ("key", "value"))
    dst = attended(arrays["src"].astype(np.float64), key, value)
    expected = (joined["key"].astype(np.float64), joined["value"].astype(np.float64), dst)
    return dict(zip(made, zip(outputs, expected, strict=True), strict=True))


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize(("filled", "fresh"), [(0, 1), (0, 5), (7, 1), (39, 1), (20, 20), (3, 30)])
def test_rows_come_behind_those_of_caches_that_count(filled: int, fresh: int, shared: bool) -> None:
    check(cached(filled, fresh, shared=shared))


@pytest.mark.parametrize("filled", [-1, 39, 1 << 30])
def test_caches_without_room_are_named(filled: int) -> None:
    with pytest.raises(
        InvalidInputError, match="filled: expected 0 to 38 rows of caches of 40 in front of 2"
    ):
        cached(filled, 2)


def test_a_mask_tells_of_all_keys_that_count() -> None:
    """With fewer it would be read past its end."""
    b = Builder()
    shapes = {"src": (1, 2, 1, 4), "key": (1, 2, 1, 4), "value": (1, 2, 1, 4)}
    shapes |= {"past_key": (1, 2, 9, 4), "past_value": (1, 2, 9, 4), "mask": (1, 1, 1, 6)}
    ids = {role: b.input(shape) for role, shape in shapes.items()}
    ids["filled"] = b.input((1,), dtype="int32")
    made = {"joined_key": (1, 2, 9, 4), "joined_value": (1, 2, 9, 4), "dst": (1, 1, 2, 4)}
    ids |= {role: b.output(shape) for role, shape in made.items()}
    b.step(ir.Attention(0.5), **ids)
    arrays = [random(*shape) for shape in shapes.values()]
    outputs = [np.zeros(shape, "float32") for shape in made.values()]
    call(b.module(), b.name, *arrays, np.array([5], "int32"), *outputs)
    call(b.module(), b.name, *arrays, np.array([4], "int32"), *outputs)
    with pytest.raises(InvalidInputError, match="mask: expected 7 keys or more, as many as count, got 6"):
        call(b.module(), b.name, *arrays, np.array([6], "int32"), *outputs)


def test_past_keys_come_with_past_values() -> None:
    b = Builder()
    ids = {role: b.input((1, 2, 3, 4)) for role in ("src", "key", "value", "past_key")}
    b.step(ir.Attention(0.5), **ids, dst=b.output((1, 3, 2, 4)))
    (step,) = library.describe(b.build()).steps
    assert "expected past keys and values and joined ones together, or none" in step.error
