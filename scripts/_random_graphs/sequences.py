"""Moves of products and of rows in time: dense layers, matrices, attention, recurrent layers."""

from __future__ import annotations

from math import prod

import numpy as np

from .graph import Graph, Tensor

_WIDTHS = (1, 4, 7, 16, 17, 31, 32, 48, 65)


def dense(g: Graph, x: Tensor) -> Tensor | None:
    """A product with constant weights, and by chance a bias."""
    depth, width = x.shape[-1], int(g.pick(_WIDTHS))  # type: ignore[call-overload]
    if depth > 4096:
        return None
    if x.rank == 2 and g.chance(0.5):
        return _gemm(g, x, width)
    shape = (*x.shape[:-1], width)
    weights: str = g.weights((depth, width), depth)
    if g.chance(0.2):
        weights = g.node("Transpose", [g.weights((width, depth), depth)], (depth, width), perm=[1, 0]).name
    y = g.node("MatMul", [x, weights], shape)
    return g.node("Add", [y, g.numbers((width,), 0.5)], shape) if g.chance(0.6) else y


def _gemm(g: Graph, x: Tensor, width: int) -> Tensor:
    rows, depth = x.shape
    turned, turned_x = g.chance(0.5), not g.named and g.chance(0.3)
    weights = g.weights((width, depth) if turned else (depth, width), depth)
    operand = g.transpose(x, [1, 0]) if turned_x else x
    bias = g.pick([(width,), (1, width), (), (1,), (1 if g.named else rows, width), None])
    numbers = {"alpha": 0.7} if g.chance(0.3) else {}
    if bias is not None and g.chance(0.3):
        numbers["beta"] = 1.3
    return g.node(
        "Gemm",
        [operand, weights, *([g.numbers(bias, 0.5)] if bias is not None else [])],  # type: ignore[arg-type]
        (rows, width),
        transB=int(turned),
        transA=int(turned_x),
        **numbers,
    )


def product(g: Graph, x: Tensor) -> Tensor | None:
    """A product of two values: with itself, turned, or with another of the graph."""
    if x.rank < 3 and g.named:
        return None
    others = [y for y in g.values if y.rank == x.rank and y.shape[:-2] == x.shape[:-2]]
    fitting = [y for y in others if y.shape[-2] == x.shape[-1]]
    scale = g.constant(np.float32(x.shape[-1] ** -0.5))
    if fitting and g.chance(0.6):
        y = g.pick(fitting)
    else:
        same = [y for y in others if y.shape[-1] == x.shape[-1]] or [x]
        order = [*range(x.rank - 2), x.rank - 1, x.rank - 2]
        y = g.transpose(g.pick(same), order)  # type: ignore[arg-type]
    shape = (*x.shape[:-1], y.shape[-1])  # type: ignore[attr-defined]
    if prod(shape) > 60_000:
        return None
    return g.node("MatMul", [g.node("Mul", [x, scale], x.shape), y], shape)  # type: ignore[list-item]


def einsum(g: Graph, x: Tensor) -> Tensor | None:
    if x.rank not in (3, 4) or g.opset < 12:
        return None
    width, depth = int(g.pick(_WIDTHS)), x.shape[-1]  # type: ignore[call-overload]
    lead = "abc"[: x.rank - 1]
    return g.node(
        "Einsum",
        [x, g.weights((depth, width), depth)],
        (*x.shape[:-1], width),
        equation=f"{lead}k,kw->{lead}w",
    )


def attention(g: Graph, x: Tensor) -> Tensor | None:
    """Self-attention written out, on rows (samples, places, features)."""
    if x.rank != 3 or x.shape[1] > 64:
        return None
    n, t, features = x.shape
    heads, depth = g.between(1, 4), int(g.pick([4, 8, 16, 20]))  # type: ignore[call-overload]
    width = heads * depth
    query, key, value = (_heads(g, x, features, heads, depth) for _ in range(3))
    key = g.transpose(key, [0, 1, 3, 2])
    if g.chance(0.5):
        query = g.node("Mul", [query, g.constant(np.float32(depth**-0.5))], query.shape)
    scores = g.node("MatMul", [query, key], (n, heads, t, t))
    if g.chance(0.5):
        scores = g.node("Div", [scores, g.constant(np.float32(depth**0.5))], scores.shape)
    if g.chance(0.5):
        mask = np.where(np.tril(np.ones((t, t))) > 0, 0, g.pick([-1e9, -np.inf, -3e38]))
        scores = g.node("Add", [scores, g.constant(mask.astype("float32"))], scores.shape)
    weights = g.unary("Softmax", scores, axis=-1)
    result = g.node("MatMul", [weights, value], (n, heads, t, depth))
    rows = g.reshape(g.transpose(result, [0, 2, 1, 3]), (n, t, width))
    return g.node("MatMul", [rows, g.weights((width, features), width)], x.shape)


def _heads(g: Graph, x: Tensor, features: int, heads: int, depth: int) -> Tensor:
    y = g.node("MatMul", [x, g.weights((features, heads * depth), features)], (*x.shape[:2], heads * depth))
    if g.chance(0.5):
        y = g.node("Add", [y, g.numbers((heads * depth,), 0.3)], y.shape)
    return g.transpose(g.reshape(y, (*x.shape[:2], heads, depth)), [0, 2, 1, 3])


def recurrent(g: Graph, x: Tensor) -> Tensor | None:
    """LSTM, GRU or RNN over the second axis."""
    if x.rank != 3 or x.shape[1] > 12 or x.shape[2] > 128:
        return None
    n, t, features = x.shape
    operator = str(g.pick(["LSTM", "GRU", "RNN"]))
    gates = {"LSTM": 4, "GRU": 3, "RNN": 1}[operator]
    units = int(g.pick([3, 8, 16, 17]))  # type: ignore[call-overload]
    direction = str(g.pick(["forward", "reverse", "bidirectional"]))
    count = 2 if direction == "bidirectional" else 1
    operands: list[Tensor | str] = [
        g.transpose(x, [1, 0, 2]),
        g.weights((count, gates * units, features), features),
        g.weights((count, gates * units, units), units),
        g.numbers((count, 2 * gates * units), 0.2) if g.chance(0.7) else "",
    ]
    if not g.named and g.chance(0.3):
        operands += ["", g.numbers((count, n, units), 0.5)]
        if operator == "LSTM" and g.chance(0.5):
            operands.append(g.numbers((count, n, units), 0.5))
    attributes: dict[str, object] = {"hidden_size": units, "direction": direction}
    if operator == "GRU":
        attributes["linear_before_reset"] = int(g.chance(0.5))
    results = g.add(operator, operands, (t, count, n, units), (count, n, units), **attributes)
    if g.chance(0.3):
        last = g.transpose(results[1], [1, 0, 2])
        g.values.append(g.reshape(last, (n, count * units)))
    rows = g.transpose(results[0], [2, 0, 1, 3])
    return g.reshape(rows, (n, t, count * units))


def embedding(g: Graph) -> Tensor:
    """Rows of a table, by tokens that the model is given."""
    n, t = g.between(1, 3), g.between(2, 10)
    tokens, features = g.between(5, 40), int(g.pick(_WIDTHS))  # type: ignore[call-overload]
    ids = g.input((n, t), "int64", tokens)
    return g.node("Gather", [g.numbers((tokens, features)), ids], (n, t, features), axis=0)
