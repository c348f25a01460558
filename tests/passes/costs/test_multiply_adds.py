"""Multiply-adds of operators, by hand."""

from __future__ import annotations

import pytest
import tvm
from tvm import relax

from tvm_mxplan.operators.attention import Attention, attention
from tvm_mxplan.operators.convolution_gradients import Window, backward_data, backward_weights
from tvm_mxplan.passes.costs.multiply_adds import of_function

OP = relax.op
N = tvm.tirx.Var("n", "int64")


def tensor(name: str, *shape: object) -> relax.Var:
    return relax.Var(name, relax.TensorType(shape, "float32"))


def counted(*calls: relax.Expr) -> int:
    """Of a function that makes these calls."""
    builder = relax.BlockBuilder()
    params = list(dict.fromkeys(arg for call in calls for arg in call.args if isinstance(arg, relax.Var)))
    with builder.function("main", params):
        results = [builder.emit(call) for call in calls]
        builder.emit_func_output(relax.Tuple(results))
    return of_function(builder.get()["main"])


X, W = tensor("x", 2, 6, 9, 8), tensor("w", 12, 6, 3, 2)
WINDOW = Window((1, 1), (0, 0, 0, 0), (1, 1), 1)


@pytest.mark.parametrize(
    ("call", "count"),
    [
        (OP.nn.conv2d(X, W), 2 * 12 * 7 * 7 * 6 * 3 * 2),
        (OP.nn.conv2d(X, tensor("w", 12, 3, 3, 2), groups=2), 2 * 12 * 7 * 7 * 3 * 3 * 2),
        (OP.nn.conv1d(tensor("x", 2, 6, 9), tensor("w", 5, 6, 3)), 2 * 5 * 7 * 6 * 3),
        # Each element of the source is multiplied by all that it reaches.
        (OP.nn.conv2d_transpose(X, tensor("w", 6, 5, 3, 2)), 2 * 6 * 9 * 8 * 5 * 3 * 2),
        (OP.matmul(tensor("a", 4, 7), tensor("b", 7, 5)), 4 * 5 * 7),
        (OP.matmul(tensor("a", 3, 1, 4, 7), tensor("b", 2, 7, 5)), 3 * 2 * 4 * 5 * 7),
        (backward_data(tensor("g", 2, 12, 7, 7), W, WINDOW, (9, 8)), 2 * 12 * 7 * 7 * 6 * 3 * 2),
        (backward_weights(X, tensor("g", 2, 12, 7, 7), WINDOW, (3, 2)), 2 * 12 * 7 * 7 * 6 * 3 * 2),
        (
            attention(
                Attention(1.0), *(tensor(f"a{r}{c}", 2, 4, r, c) for r, c in ((7, 16), (9, 16), (9, 5)))
            ),
            2 * 4 * 7 * 9 * (16 + 5),
        ),
        (OP.nn.conv2d(tensor("x", N, 6, 9, 8), W), 12 * 7 * 7 * 6 * 3 * 2),
        (OP.matmul(tensor("a", N, 7), tensor("b", 7, 5)), 5 * 7),
        (OP.matmul(relax.Var("a", relax.TensorType(dtype="float32", ndim=2)), tensor("b", 7, 5)), 0),
        (OP.add(X, X), 0),
        (OP.nn.max_pool2d(X, [3, 2]), 0),
    ],
)  # fmt: skip
def test_operators(call: relax.Expr, count: int) -> None:
    assert counted(call) == count


def test_a_function_is_the_sum_of_its_operators() -> None:
    one, other = OP.nn.conv2d(X, W), OP.matmul(tensor("a", 4, 7), tensor("b", 7, 5))
    assert counted(one, other, OP.nn.relu(X)) == counted(one) + counted(other)
