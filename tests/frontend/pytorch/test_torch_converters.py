"""Converters of PyTorch's operators, on nodes that are written by hand, against numpy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from converters_run import Case, run, run_all
from tvm import relax, tirx

from tvm_mxplan.core.decisions.origin import Origin
from tvm_mxplan.errors import UnsupportedError
from tvm_mxplan.frontend.origins import OriginBuilder
from tvm_mxplan.frontend.torch import converters
from tvm_mxplan.frontend.torch.node import Emitter, Node, Stated
from tvm_mxplan.passes.origins import origins_of

_random = np.random.default_rng(0)
X = _random.standard_normal((3, 5)).astype("float32")
Y = _random.standard_normal((3, 5)).astype("float32")
I = _random.integers(-7, 8, (3, 5))  # noqa: E741
J = _random.integers(1, 5, (3, 5))
B = I > 0

CASES = [
    ("cumsum.default", {"self": B, "dim": 1}, np.cumsum(B, 1)),
    ("cumsum.default", {"self": X, "dim": -2}, np.cumsum(X, 0)),
    ("sum.dim_IntList", {"self": B, "dim": [1], "keepdim": True}, np.sum(B, 1, keepdims=True)),
    ("sum.dim_IntList", {"self": X, "dim": [], "keepdim": False}, np.sum(X)),
    ("prod.default", {"self": J[:, :2].copy()}, np.prod(J[:, :2])),
    ("add.Tensor", {"self": X, "other": Y, "alpha": 3}, X + 3 * Y),
    ("sub.Tensor", {"self": X, "other": 2.5, "alpha": -2}, X + np.float32(5)),
    ("rsub.Scalar", {"self": X, "other": 2, "alpha": 1}, 2 - X),
    ("div.Tensor", {"self": I, "other": J}, (I / J).astype("float32")),
    ("div.Tensor_mode", {"self": I, "other": J, "rounding_mode": "floor"}, I // J),
    ("div.Tensor_mode", {"self": I, "other": J, "rounding_mode": "trunc"}, np.trunc(I / J).astype("int64")),
    ("div.Tensor_mode", {"self": X, "other": 2, "rounding_mode": "floor"}, X // np.float32(2)),
    ("remainder.Tensor", {"self": I, "other": J}, I % J),
    ("gt.Scalar", {"self": I, "other": 0.5}, I > 0.5),
    ("eq.Tensor", {"self": B, "other": J}, B == J),
    ("where.self", {"condition": B, "self": X, "other": Y}, np.where(B, X, Y)),
    ("mm.default", {"self": X.astype("float64"), "mat2": Y.T.astype("float64").copy()}, X.astype("f8") @ Y.T),
    ("mm.default", {"self": I, "mat2": J.T.copy()}, I @ J.T),
    ("linear.default", {"input": X, "weight": Y, "bias": X[0, :3].copy()}, X @ Y.T + X[0, :3]),
    (
        "addmm.default",
        {"self": X[:, :3].copy(), "mat1": X, "mat2": Y.T.copy(), "beta": 0.5, "alpha": 2},
        0.5 * X[:, :3] + 2 * (X @ Y.T),
    ),
]


def put(source: np.ndarray, indices: list[Any], values: np.ndarray, accumulate: bool = False) -> Case:
    """A case of ``index_put``; None among the indices stands for a whole axis."""
    places = tuple(slice(None) if index is None else index for index in indices)
    expected = source.copy()
    if accumulate:
        np.add.at(expected, places, values)
    else:
        expected[places] = values
    operands = {"self": source, "indices": indices, "values": values, "accumulate": accumulate}
    return "index_put.default", operands, expected


def sampled(nearest: bool, border: bool) -> Case:
    """A case of ``grid_sampler_2d`` with centres of pixels at their halves, by four neighbours or one."""
    image = _random.standard_normal((2, 3, 5, 7)).astype("float32")
    grid = (_random.random((2, 4, 6, 2)) * 2.6 - 1.3).astype("float32")
    down, along = (((grid[..., at] + 1) * extent - 1) / 2 for at, extent in ((1, 5), (0, 7)))
    if border:
        down, along = np.clip(down, 0, 4), np.clip(along, 0, 6)
    expected = np.zeros((2, 3, 4, 6), "float32")
    top, left = (np.rint(at) if nearest else np.floor(at) for at in (down, along))
    for y, x in [(0, 0)] if nearest else [(0, 0), (0, 1), (1, 0), (1, 1)]:
        share = 1.0 if nearest else (1 - np.abs(down - top - y)) * (1 - np.abs(along - left - x))
        row, column = (top + y).astype(int), (left + x).astype(int)
        inside = (row >= 0) & (row < 5) & (column >= 0) & (column < 7)
        taken = image[np.arange(2)[:, None, None], :, np.clip(row, 0, 4), np.clip(column, 0, 6)]
        expected += np.moveaxis(taken * (share * inside)[..., None], -1, 1).astype("float32")
    operands = {"input": image, "grid": grid, "interpolation_mode": int(nearest)}
    return (
        "grid_sampler_2d.default",
        operands | {"padding_mode": int(border), "align_corners": False},
        expected,
    )


V = _random.standard_normal((3, 4, 5)).astype("float32")
APART = np.abs(X[:, None] - Y[None])
WINDOWS = np.lib.stride_tricks.sliding_window_view

CASES += [
    ("unfold.default", {"self": X, "dimension": 1, "size": 3, "step": 2}, WINDOWS(X, 3, 1)[:, ::2]),
    ("unfold.default", {"self": V, "dimension": -2, "size": 2, "step": 1}, WINDOWS(V, 2, 1)),
    put(X, [np.array([2, 0, -1])], Y, accumulate=True),
    put(X, [None, np.array([1, -2])], Y[:, :2].copy()),
    put(V, [np.array([[0], [2]]), np.array([1, 3])], X[:2, :1].copy()),
    put(V, [np.array([0, 2]), None, np.array([4, 1])], Y[:2, :4].copy()),
    put(V, [None, np.array([1, 1, 3]), np.array([4, 4, 0])], X[:, :3].copy(), accumulate=True),
    put(X, [B], np.array(7, "float32")),
    put(V, [B[:, 0].copy()], X[0].copy(), accumulate=True),
    sampled(nearest=False, border=False),
    sampled(nearest=False, border=True),
    sampled(nearest=True, border=False),
    ("_cdist_forward.default", {"x1": X, "x2": Y, "p": 2.0}, np.sqrt(np.square(APART).sum(-1))),
    ("_cdist_forward.default", {"x1": X, "x2": Y, "p": 1.0}, APART.sum(-1)),
    ("_cdist_forward.default", {"x1": X, "x2": Y, "p": 3.0}, np.cbrt((APART**3).sum(-1))),
    ("_cdist_forward.default", {"x1": X, "x2": Y, "p": float("inf")}, APART.max(-1)),
    ("_cdist_forward.default", {"x1": I.astype("float32"), "x2": Y, "p": 0.0}, np.full((3, 3), 5, "float32")),
]


@pytest.fixture(scope="module")
def results() -> list[np.ndarray]:
    """The results of all cases' converters, which run in one module."""
    tensors = [np.asarray(expected) for _, _, expected in CASES]
    stated = [(tensor.shape, str(tensor.dtype)) for tensor in tensors]
    calls = [(operator, operands, one) for (operator, operands, _), one in zip(CASES, stated, strict=True)]
    return run_all(calls, converters.TABLE, "llvm")


@pytest.mark.slow
@pytest.mark.parametrize("at", range(len(CASES)), ids=[case[0] for case in CASES])
def test_against_numpy(at, results):
    np.testing.assert_allclose(results[at], CASES[at][2], rtol=2e-6, atol=2e-6)


def test_a_factor_of_0_does_not_read_the_operand():
    nothing = np.full((3, 3), np.nan, "float32")
    operands = {"self": nothing, "mat1": X, "mat2": Y.T.copy(), "beta": 0, "alpha": 1}
    np.testing.assert_allclose(run("addmm.default", operands, ((3, 3), "float32")), X @ Y.T, rtol=1e-5)


def attention(query, key, value, mask=None) -> np.ndarray:
    scores = query @ np.swapaxes(key, -1, -2) / np.sqrt(query.shape[-1])
    if mask is not None:
        scores = np.where(mask, scores, -np.inf) if mask.dtype == bool else scores + mask
    largest = scores.max(-1, keepdims=True)
    weights = np.exp(scores - np.where(np.isfinite(largest), largest, 0))
    total = weights.sum(-1, keepdims=True)
    return (weights / np.where(total == 0, 1, total)) @ value


def qkv(heads: int = 4) -> list[np.ndarray]:
    shapes = [(2, 4, 7, 5), (2, heads, 9, 5), (2, heads, 9, 6)]
    return [_random.standard_normal(shape).astype("float32") for shape in shapes]


@pytest.mark.parametrize("kind", ["none", "bool", "float"])
def test_attention_and_rows_that_see_nothing(kind):
    query, key, value = qkv()
    mask = None if kind == "none" else _random.random((2, 1, 7, 9)) > 0.5
    if mask is not None:
        mask[0, 0, 3] = False
        mask[1, 0, :, 0] = True
    if kind == "float":
        mask = np.where(mask, _random.standard_normal(mask.shape), -np.inf).astype("float32")
    operands = {"query": query, "key": key, "value": value, "dropout_p": 0.0}
    operands |= {"attn_mask": mask, "is_causal": False, "scale": None, "enable_gqa": False}
    actual = run("scaled_dot_product_attention.default", operands, ((2, 4, 7, 6), "float32"))
    np.testing.assert_allclose(actual, attention(query, key, value, mask), rtol=1e-5, atol=1e-6)
    if mask is not None:
        assert not actual[0, :, 3].any() and actual[1].any()


def test_causal_attention_of_grouped_heads():
    query, key, value = qkv(heads=2)
    operands = {"query": query, "key": key, "value": value, "dropout_p": 0.0}
    operands |= {"attn_mask": None, "is_causal": True, "scale": 0.25, "enable_gqa": True}
    actual = run("scaled_dot_product_attention.default", operands, ((2, 4, 7, 6), "float32"))
    key, value = (np.repeat(array, 2, 1) for array in (key, value))
    expected = attention(query * 0.25 * np.sqrt(5), key, value, np.tril(np.ones((7, 9), bool)))
    np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-6)


def test_attention_that_drops_at_random_is_refused():
    query, key, value = qkv()
    operands = {"query": query, "key": key, "value": value, "dropout_p": 0.1, "enable_gqa": False}
    with pytest.raises(UnsupportedError, match=r"call model.eval\(\) first"):
        run("scaled_dot_product_attention.default", operands, ((2, 4, 7, 6), "float32"))


def test_numbers_that_decide_integers_are_rounded_as_ieee_asks():
    distances = np.arange(1, 600, dtype="float32") / 8
    operands = {"self": distances, "other": float(np.log(16))}
    stated = (distances.shape, "float32")
    actual = run("div.Tensor", operands, stated, converters.ROUNDED, "dnnl, llvm")
    np.testing.assert_array_equal(actual, distances / np.float32(np.log(16)))


def test_averages_with_a_divisor():
    image = _random.standard_normal((2, 3, 7, 7)).astype("float32")
    operands = {"self": image, "kernel_size": [3], "stride": [], "padding": [1, 1], "ceil_mode": False}
    operands |= {"count_include_pad": False, "divisor_override": 5}
    padded = np.pad(image, ((0, 0), (0, 0), (1, 1), (1, 1)))
    expected = padded.reshape(2, 3, 3, 3, 3, 3).sum((3, 5)) / 5
    actual = run("avg_pool2d.default", operands, (expected.shape, "float32"))
    np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-6)


def test_averages_over_windows_that_reach_beyond_counted_padding():
    image = np.arange(30.0, dtype="float32").reshape(5, 6)
    operands = {
        "self": image[None, None],
        "kernel_size": [3],
        "stride": [2],
        "padding": [0, 1],
        "ceil_mode": True,
    }
    operands |= {"count_include_pad": True, "divisor_override": None}
    padded = np.pad(image, ((0, 0), (1, 1)))  # beyond these, nothing counts
    expected = np.array([[padded[r : r + 3, c : c + 3].mean() for c in range(0, 7, 2)] for r in (0, 2)])
    actual = run("avg_pool2d.default", operands, ((1, 1, 2, 4), "float32"))
    np.testing.assert_allclose(actual[0, 0], expected, rtol=1e-5)
    with pytest.raises(UnsupportedError, match=r"reach beyond the padding \(ceil_mode\).*whose size varies"):
        rows = relax.Var("rows", relax.TensorType([1, 1, tirx.Var("n", "int64"), 6], "float32"))
        of_rows = Node(
            "aten.avg_pool2d.default", {**operands, "self": rows}, [Stated((1, 1, 2, 4), "float32")]
        )
        converters.TABLE["aten.avg_pool2d.default"](Emitter(OriginBuilder()), of_rows)


def test_what_is_emitted_says_where_it_comes_from():
    builder = OriginBuilder()
    x = relax.Var("x", relax.TensorType((3,), "float32"))
    with builder.function("main", [x]):
        with builder.dataflow(), builder.importing(Origin("layer1.0", "add")):
            y = builder.emit_output(relax.op.add(x, relax.op.exp(x)))
        builder.emit_func_output(y)
    calls = [binding.value for binding in builder.get()["main"].body.blocks[0].bindings]
    assert [origins_of(call) for call in calls] == [(Origin("layer1.0", "add"),)] * 2


def recurrent_by_hand(kind: str, x: np.ndarray, params: list[np.ndarray]) -> np.ndarray:
    """Layers in one direction, by PyTorch's formulas, in float64."""

    def sigmoid(v: np.ndarray) -> np.ndarray:
        return 1 / (1 + np.exp(-v))

    rows = x.astype("float64")
    for first in range(0, len(params), 4):
        w, r, b, c = (p.astype("float64") for p in params[first : first + 4])
        hidden = cell = np.zeros((x.shape[1], r.shape[1]))
        found = []
        for row in rows:
            inner, outer = row @ w.T + b, hidden @ r.T + c
            if kind == "lstm":
                i, f, g, o = np.split(inner + outer, 4, 1)
                cell = sigmoid(f) * cell + sigmoid(i) * np.tanh(g)
                hidden = sigmoid(o) * np.tanh(cell)
            else:
                (ri, zi, ni), (ro, zo, no) = np.split(inner, 3, 1), np.split(outer, 3, 1)
                kept = sigmoid(zi + zo)
                hidden = (1 - kept) * np.tanh(ni + sigmoid(ri + ro) * no) + kept * hidden
            found.append(hidden)
        rows = np.array(found)
    return rows


@pytest.mark.parametrize(("kind", "gates"), [("lstm", 4), ("gru", 3)])
def test_two_recurrent_layers(kind, gates):
    random = np.random.default_rng(2)
    sizes = [(7, 5), (7, 7)]
    params = [
        random.standard_normal(shape).astype("float32") / 2
        for units, size in sizes
        for shape in ((gates * units, size), (gates * units, units), (gates * units,), (gates * units,))
    ]
    x = random.standard_normal((4, 3, 5)).astype("float32")
    zeros = relax.const(np.zeros((2, 3, 7), "float32"))
    operands = {
        "input": x,
        "hx": [zeros, zeros] if kind == "lstm" else zeros,
        "params": [relax.const(param) for param in params],
        "has_biases": True,
        "num_layers": 2,
        "dropout": 0.0,
        "train": False,
        "bidirectional": False,
        "batch_first": False,
    }
    actual = run(f"{kind}.input", operands, ((4, 3, 7), "float32"))
    np.testing.assert_allclose(actual, recurrent_by_hand(kind, x, params), rtol=1e-4, atol=1e-6)
    with pytest.raises(UnsupportedError, match="dropped at random"):
        run(f"{kind}.input", {**operands, "train": True, "dropout": 0.5}, ((4, 3, 7), "float32"))
    with pytest.raises(UnsupportedError, match="projection"):
        run(f"{kind}.input", {**operands, "params": operands["params"][:7]}, ((4, 3, 7), "float32"))


def test_a_mask_with_a_value_for_each_true_element_is_refused():
    operands = {"self": X, "indices": [B], "values": X[0].copy(), "accumulate": False}
    with pytest.raises(UnsupportedError, match="as many elements as it has true ones"):
        run("index_put.default", operands, ((3, 5), "float32"))
