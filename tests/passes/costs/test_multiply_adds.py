"""Multiply-adds of operators and of steps: the same numbers either way, by hand."""

from __future__ import annotations

import numpy as np
import pytest
import tvm
from tvm import relax

from tvm_mxplan.core.program import program as ir
from tvm_mxplan.core.program.builder import ProgramBuilder
from tvm_mxplan.core.program.dims import Symbol
from tvm_mxplan.operators.attention import Attention, attention
from tvm_mxplan.operators.convolution_gradients import Window, backward_data, backward_weights
from tvm_mxplan.passes.costs.multiply_adds import of_function, of_program

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


def program(attrs: ir.Attributes, dst: tuple[object, ...], **operands: tuple[object, ...]) -> ir.Program:
    b = ProgramBuilder("one")
    ports = [(role, b.port("input", role, shape, "float32")) for role, shape in operands.items()]  # type: ignore[arg-type]
    b.step("step", attrs, dst, ports)  # type: ignore[arg-type]
    return b.finish()


CONVOLUTION = {"strides": (1, 1), "padding": (0, 0, 0, 0), "dilation": (1, 1)}


def convolution(groups: int = 1) -> ir.Convolution:
    return ir.Convolution(*CONVOLUTION.values(), groups)  # type: ignore[arg-type]


def deconvolution(groups: int = 1) -> ir.Deconvolution:
    return ir.Deconvolution(*CONVOLUTION.values(), groups)  # type: ignore[arg-type]


def filters(groups: int = 1) -> ir.ConvolutionBackwardWeights:
    return ir.ConvolutionBackwardWeights(*CONVOLUTION.values(), groups)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("given", "count"),
    [
        (program(convolution(), (2, 12, 7, 7), src=(2, 6, 9, 8), weights=(12, 6, 3, 2)), 2 * 12 * 49 * 36),
        (program(convolution(2), (2, 12, 7, 7), src=(2, 6, 9, 8), weights=(2, 6, 3, 3, 2)), 2 * 12 * 49 * 18),
        (program(deconvolution(), (2, 5, 11, 9), src=(2, 6, 9, 8), weights=(5, 6, 3, 2)), 2 * 6 * 72 * 5 * 6),
        (
            program(deconvolution(2), (2, 10, 11, 9), src=(2, 6, 9, 8), weights=(2, 5, 3, 3, 2)),
            2 * 6 * 72 * 5 * 6,
        ),
        (program(filters(), (12, 6, 3, 2), src=(2, 6, 9, 8), gradient=(2, 12, 7, 7)), 2 * 12 * 49 * 36),
        (program(filters(2), (2, 6, 3, 3, 2), src=(2, 6, 9, 8), gradient=(2, 12, 7, 7)), 2 * 12 * 49 * 18),
        (program(ir.MatMul(), (3, 4, 5), src=(3, 4, 7), weights=(1, 7, 5)), 3 * 4 * 5 * 7),
        (program(ir.InnerProduct(), (4, 5), src=(4, 6, 3, 2), weights=(5, 6, 3, 2)), 4 * 5 * 36),
        (program(convolution(), (Symbol("n"), 12, 7, 7), src=(Symbol("n"), 6, 9, 8), weights=(12, 6, 3, 2)),
         12 * 49 * 36),
        (program(ir.Eltwise("relu", 0.0, 0.0), (4, 5), src=(4, 5)), 0),
    ],
)  # fmt: skip
def test_steps(given: ir.Program, count: int) -> None:
    assert of_program(given) == count


def test_steps_are_added_up() -> None:
    b = ProgramBuilder("two")
    x = b.port("input", "x", (4, 7), "float32")
    weights = [b.constant(np.zeros(shape, "float32")) for shape in ((7, 5), (5, 3))]
    middle = b.step("one", ir.MatMul(), (4, 5), [("src", x), ("weights", weights[0])])
    b.step("two", ir.MatMul(), (4, 3), [("src", middle), ("weights", weights[1])])
    assert of_program(b.finish()) == 4 * 5 * 7 + 4 * 3 * 5
