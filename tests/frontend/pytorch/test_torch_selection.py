"""Elements picked, put and added by indices, by their order and by where they belong, against numpy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from converters_run import Case, run, run_all

from tvm_mxplan.errors import UnsupportedError
from tvm_mxplan.frontend.torch import converters

_random = np.random.default_rng(1)
X = _random.standard_normal((3, 4, 5, 6)).astype("float32")
ROWS = _random.standard_normal((7, 5)).astype("float32")
A, B, BELOW = np.array([0, 2, 1]), np.array([[1], [3]]), np.array([-1, 0, -2])


def picked(*indices: Any) -> Case:
    """A case of ``index``; None stands for a whole axis."""
    places = tuple(slice(None) if index is None else index for index in indices)
    return "index.Tensor", {"self": X, "indices": list(indices)}, X[places]


def running(name: str, axis: int) -> Case:
    better = np.maximum if name == "cummax" else np.minimum
    return f"{name}.default", {"self": X, "dim": axis}, better.accumulate(X, axis)


def in_bags(mode: int, offsets: list[int], padding: int = -1, last: bool = False) -> Case:
    indices = _random.integers(0, 7, 9)
    weights = _random.standard_normal(9).astype("float32") if mode == 0 else None
    ends = offsets[1:] if last else [*offsets[1:], 9]
    expected = []
    for start, end in zip(offsets, ends, strict=False):
        bag = [place for place in range(start, end) if indices[place] != padding]
        rows = ROWS[indices[bag]] * (1 if weights is None else weights[bag][:, None])
        made = (np.sum, np.mean, np.max)[mode](rows, 0) if bag else np.zeros(5)
        expected.append(made.astype("float32"))
    operands = {"weight": ROWS, "indices": indices, "offsets": np.array(offsets), "mode": mode}
    operands |= {"per_sample_weights": weights, "include_last_offset": last, "padding_idx": padding}
    return "_embedding_bag_forward_only.default", operands, np.array(expected)


def by_experts(operator: str, names: tuple[str, ...]) -> Case:
    rows, matrices = _random.standard_normal((8, 3)), _random.standard_normal((4, 3, 2))
    ends = np.array([3, 3, 7, 8], "int32")
    expert = np.searchsorted(ends, np.arange(8), side="right")
    expected = np.einsum("nk,nkm->nm", rows, matrices[expert])
    values = (rows.astype("float32"), matrices.astype("float32"), ends)
    return operator, dict(zip(names, values, strict=True)), expected.astype("float32")


def scattered(reduce: str, include: bool = True) -> Case:
    index, values = (
        _random.integers(0, 4, (3, 2, 5, 6)),
        _random.standard_normal((3, 3, 5, 6)).astype("float32"),
    )
    ufunc = {"sum": np.add, "prod": np.multiply, "amax": np.maximum, "amin": np.minimum}[reduce]
    expected = X.copy()
    if not include:
        neutral = {"sum": 0, "prod": 1, "amax": -np.inf, "amin": np.inf}[reduce]
        np.put_along_axis(expected, index, neutral, 1)
    at = list(np.indices(index.shape))
    at[1] = index
    ufunc.at(expected, tuple(at), values[:, :2])
    operands = {"self": X, "dim": 1, "index": index, "src": values, "reduce": reduce, "include_self": include}
    return "scatter_reduce.two", operands, expected


def counted(values: np.ndarray, bins: int, low: float, high: float) -> Case:
    expected = np.histogram(values, bins, (low, high))[0].astype("float32")
    return "histc.default", {"self": values, "bins": bins, "min": low, "max": high}, expected


SORTED = np.sort(_random.standard_normal((3, 4, 5, 9)).astype("float32"), -1)
CASES = [
    picked(A),
    picked(None, A, B),
    picked(None, None, BELOW),
    picked(A, None, B),
    picked(None, A, None, B),
    picked(None, None, B[:, :, None, None], A[None, None]),
    picked(BELOW, None, BELOW),
    picked(A, A, A, A),
    picked(None, np.array(1), BELOW),
    running("cummax", 1),
    running("cummin", -1),
    ("logcumsumexp.default", {"self": X * 100, "dim": 2}, np.logaddexp.accumulate(X * 100, 2)),
    ("median.default", {"self": X[0, 0]}, np.sort(X[0, 0], None)[14]),
    (
        "searchsorted.Tensor",
        {"sorted_sequence": SORTED[0, 0, 0], "self": X, "sorter": None, "right": False, "side": None},
        np.searchsorted(SORTED[0, 0, 0], X),
    ),
    (
        "searchsorted.Tensor",
        {
            "sorted_sequence": SORTED,
            "self": SORTED[..., 2:5].copy(),
            "sorter": None,
            "right": True,
            "side": None,
        },
        np.broadcast_to(np.arange(3, 6), (3, 4, 5, 3)),
    ),
    counted(np.array([0, 3, 1, 1, 3, 0, 0], "float32"), 4, 0, 3),
    counted(X, 7, -1.5, 1.25),
    ("full_like.default", {"self": X, "fill_value": 2.5}, np.full_like(X, 2.5)),
    ("full_like.default", {"self": np.zeros((200, 100)), "fill_value": 7}, np.full((200, 100), 7, "int32")),
    ("bitwise_not.default", {"self": X > 0}, ~(X > 0)),
    ("bitwise_not.default", {"self": np.arange(-3, 4)}, ~np.arange(-3, 4)),
    in_bags(0, [0, 4, 4, 6]),
    in_bags(1, [0, 2, 5], padding=3),
    in_bags(2, [0, 5, 5, 9], last=True),
    by_experts("_grouped_mm.default", ("self", "mat2", "offs")),
    by_experts("transformers.grouped_mm_fallback.default", ("input", "weight", "offs")),
    scattered("sum"),
    scattered("prod"),
    scattered("amax"),
    scattered("amin", include=False),
]


@pytest.fixture(scope="module")
def results() -> list[np.ndarray]:
    """The results of all cases' converters, which run in one module."""
    calls = [
        (operator, operands, (np.shape(expected), str(np.asarray(expected).dtype)))
        for operator, operands, expected in CASES
    ]
    return run_all(calls, converters.TABLE, "llvm")


@pytest.mark.slow
@pytest.mark.parametrize("at", range(len(CASES)), ids=[case[0] for case in CASES])
def test_against_numpy(at, results):
    np.testing.assert_allclose(results[at], CASES[at][2], rtol=2e-6, atol=3e-6)


@pytest.mark.parametrize(("operator", "k"), [("median.dim", 2), ("kthvalue.default", 4)])
def test_the_kth_of_each_row_and_its_place(operator, k):
    operands = {"self": X, "dim": 1, "keepdim": True, "k": k}
    values = run(operator, operands, ((3, 1, 5, 6), "float32"))
    np.testing.assert_array_equal(values, np.sort(X, 1)[:, k - 1 : k])
    table = {f"aten.{operator}": lambda emitter, node: converters.TABLE[node.operator](emitter, node)[1]}
    places = run(operator, operands, ((3, 1, 5, 6), "int64"), table)
    np.testing.assert_array_equal(places, np.argsort(X, 1)[:, k - 1 : k])


def test_running_extremes_say_where_the_last_of_equals_stands():
    rows = np.array([[1, 3, 3, 2, 5], [4, 4, 1, 4, 0]], "float32")
    table = {"aten.cummax.default": lambda emitter, node: converters.TABLE[node.operator](emitter, node)[1]}
    places = run("cummax.default", {"self": rows, "dim": 1}, ((2, 5), "int64"), table)
    np.testing.assert_array_equal(places, [[0, 1, 2, 2, 4], [0, 1, 1, 3, 3]])


def test_a_mask_that_is_an_input_is_refused():
    with pytest.raises(UnsupportedError, match="as many elements as it has true ones"):
        run("index.Tensor", {"self": X, "indices": [X > 0]}, ((3,), "float32"))


@pytest.mark.parametrize("included", [True, False])
def test_averages_of_what_is_written_to_places(included):
    """A place that nothing is written to keeps its number."""
    data, written = np.array([10, 20, 30], "float32"), np.array([1, 2, 3, 6], "float32")
    places = np.array([0, 2, 2, 2])
    operands = {"self": data, "dim": 0, "index": places, "src": written, "reduce": "mean"}
    found = run("scatter_reduce.two", {**operands, "include_self": included}, ((3,), "float32"))
    sums, counts = np.bincount(places, written, 3), np.bincount(places, minlength=3)
    averages = (
        (sums + data) / (counts + 1) if included else np.where(counts, sums / np.maximum(counts, 1), data)
    )
    np.testing.assert_allclose(found, averages, rtol=1e-6)


def test_another_way_to_reduce_is_refused():
    operands = {"self": X, "dim": 0, "index": np.zeros((1, 1, 1, 1), "int64"), "src": X, "reduce": "mode"}
    with pytest.raises(UnsupportedError, match="reduce='mode'; expected one of"):
        run("scatter_reduce.two", {**operands, "include_self": True}, (X.shape, "float32"))
