"""Gradients of operators against differences in float64, along random directions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import pytest
import tvm
from tvm import relax
from tvm.relax import op

from tvm_mxplan.operators.batch_norm import Normalization, batch_norm
from tvm_mxplan.operators.dropout import dropout
from tvm_mxplan.training.gradients import ours

nn = op.nn


@dataclass(frozen=True)
class Case:
    """An operator on operands of these shapes.

    ``difference`` is the step of the differences: TVM has some operators in float32 alone.
    """

    shapes: tuple[tuple[int, ...], ...]
    call: Callable[..., relax.Expr]
    positive: bool = False
    dtype: str = "float64"

    @property
    def difference(self) -> float:
        return 1e-6 if self.dtype == "float64" else 1e-2

    @property
    def tolerance(self) -> float:
        """float32 has seven digits, of which differences of sums lose four."""
        return 1e-6 if self.dtype == "float64" else 5e-3


def with_attributes(call: Callable[..., relax.Expr], **attributes: object) -> Callable[..., relax.Expr]:
    return lambda *operands: call(*operands, **attributes)


def constant(values: object, dtype: str = "float64") -> relax.Expr:
    return relax.const(np.array(values), dtype)


def in_training(x: relax.Expr, scale: relax.Expr, shift: relax.Expr) -> relax.Expr:
    running = constant(np.zeros(5)), constant(np.ones(5))
    return relax.TupleGetItem(batch_norm([x, scale, shift, *running], Normalization(1e-3, 0.1, False)), 0)


def frozen(x: relax.Expr, scale: relax.Expr, shift: relax.Expr) -> relax.Expr:
    running = constant(np.arange(5) / 7), constant(1 + np.arange(5) / 3)
    return relax.TupleGetItem(nn.batch_norm(x, scale, shift, *running, axis=1, training=False), 0)


def wide(call: Callable[..., relax.Expr], shape: tuple[int, ...] = (3, 5)) -> Case:
    return Case((shape,), call)


WINDOWS: Mapping[str, Case] = {
    "convolution": Case(
        ((2, 3, 10, 9), (5, 3, 3, 2)),
        with_attributes(nn.conv2d, strides=(2, 1), padding=(1, 0, 2, 1), dilation=(1, 2)),
    ),
    "depthwise": Case(
        ((2, 6, 9, 8), (6, 1, 3, 3)), with_attributes(nn.conv2d, groups=6, strides=(3, 2), padding=1)
    ),
    "deconvolution": Case(
        ((2, 4, 5, 4), (4, 3, 3, 3)), with_attributes(nn.conv2d_transpose, groups=2, strides=2, padding=1)
    ),
    "maximum": wide(lambda x: nn.max_pool2d(x, (3, 2), (2, 2), (1, 0, 1, 1)), (2, 3, 9, 8)),
    "average": wide(lambda x: nn.avg_pool2d(x, (3, 2), (2, 2), (1, 0, 1, 1)), (2, 3, 9, 8)),
    "batch_norm": Case(((3, 5, 4, 3), (5,), (5,)), in_training),
    "dropout": wide(lambda x: dropout(x, constant([3, 7], "int64"), 0.4, 2), (3, 5, 4)),
    "concat": Case(((3, 2, 5), (3, 4, 5)), lambda x, y: op.concat([x, y], 1)),
}
MORE: Mapping[str, Case] = {
    "convolution_1d": Case(
        ((2, 6, 11), (9, 2, 3)), with_attributes(nn.conv1d, groups=3, strides=2, padding=1)
    ),
    "convolution_3d": Case(
        ((1, 2, 5, 6, 7), (3, 2, 2, 3, 2)), with_attributes(nn.conv3d, strides=(1, 2, 2), padding=1)
    ),
    "output_padding": Case(
        ((2, 4, 5, 4), (4, 3, 3, 2)),
        with_attributes(nn.conv2d_transpose, strides=(2, 3), padding=(1, 0, 1, 0), output_padding=(1, 2)),
    ),
    "maximum_ceil": wide(lambda x: nn.max_pool2d(x, (3, 3), (2, 2), ceil_mode=True), (2, 3, 8, 8)),
    "maximum_1d": wide(lambda x: nn.max_pool1d(x, 3, 2, 1), (2, 3, 9)),
    "average_padding": wide(
        lambda x: nn.avg_pool2d(x, (3, 2), (2, 2), (1, 0, 1, 1), count_include_pad=True), (2, 3, 9, 8)
    ),
    "average_ceil": wide(lambda x: nn.avg_pool2d(x, (3, 3), (2, 2), ceil_mode=True), (2, 3, 8, 8)),
    "average_3d": wide(lambda x: nn.avg_pool3d(x, (3, 1, 1), (1, 1, 1), (1, 0, 0, 1, 0, 0)), (1, 2, 5, 6, 7)),
    "adaptive": wide(lambda x: nn.adaptive_avg_pool2d(x, (3, 4)), (2, 3, 7, 8)),
    "frozen_batch_norm": Case(((3, 5, 4, 3), (5,), (5,)), frozen),
    "layer_norm": Case(
        ((3, 5, 7), (5, 7), (5, 7)), with_attributes(nn.layer_norm, axes=[-2, -1]), dtype="float32"
    ),
    "group_norm": Case(
        ((3, 6, 4, 3), (6,), (6,)),
        with_attributes(nn.group_norm, num_groups=3, channel_axis=1, axes=[2, 3]),
        dtype="float32",
    ),
    "instance_norm": Case(
        ((3, 6, 4, 3), (6,), (6,)),
        with_attributes(nn.instance_norm, channel_axis=1, axes=[2, 3]),
        dtype="float32",
    ),
    "rows": wide(lambda x: op.take(x, constant([[2, 0], [2, 2], [1, 3]], "int64"), axis=1), (3, 4, 5)),
    "relu": wide(nn.relu),
    "leaky_relu": wide(lambda x: nn.leakyrelu(x, 0.1)),
    "prelu": Case(((3, 5, 4), (5,)), lambda x, slopes: nn.prelu(x, slopes, 1)),
    "clip": wide(lambda x: op.clip(x, -0.5, 0.7)),
    "gelu": wide(nn.gelu),
    "gelu_tanh": wide(nn.gelu_tanh),
    "silu": wide(nn.silu),
    "softplus": wide(lambda x: nn.softplus(x, 1.5)),
    "selu": wide(nn.selu),
    "abs": wide(op.abs),
    "maximum_of_two": Case(((5, 3), (3,)), op.maximum),
    "minimum_of_two": Case(((3,), (5, 3)), op.minimum),
    "clip_below": wide(lambda x: op.clip(x, -np.inf, 0.3)),
    "gathered": wide(lambda x: op.gather_elements(x, constant([[2, 0], [2, 2], [1, 4]], "int64"), 1)),
    "one_of_each_row": wide(lambda x: op.gather_elements(x, constant([[2, 1, 0, 1, 2]], "int64"), 0)),
    "erf": wide(op.erf),
    "square": wide(op.square),
    "rsqrt": Case(((3, 5),), op.rsqrt, positive=True),
    "tan": Case(((3, 5),), op.tan, positive=True),
    "sinh": wide(op.sinh),
    "cosh": wide(op.cosh),
    "atan": wide(op.atan),
    "squeeze": wide(lambda x: op.squeeze(x, [1]), (3, 1, 5)),
    "flatten": wide(op.flatten, (3, 2, 5)),
    "stack": Case(((3, 2), (3, 2)), lambda x, y: op.stack([x, y], 1)),
    "slice": wide(lambda x: op.strided_slice(x, [0, 1], [1, -4], [4, 7]), (5, 7)),
    "slice_by_steps": wide(lambda x: op.strided_slice(x, [0, 1], [1, 7], [5, 0], [2, -3]), (5, 9)),
    "pad": wide(lambda x: nn.pad(x, (1, 0, 2, 3)), (5, 7)),
    "pad_of_negative_widths": wide(lambda x: nn.pad(x, (-1, 2, -2, -1)), (5, 7)),
    "flip": wide(lambda x: op.flip(x, -1), (2, 3, 5)),
    "product": wide(lambda x: op.prod(x, [0, 2]), (3, 4, 2)),
    "product_of_all": wide(lambda x: op.prod(x, keepdims=True), (2, 3)),
    "largest": wide(lambda x: relax.TupleGetItem(op.topk(x, 2, 1, "both"), 0), (3, 5, 4)),
    "smallest": wide(lambda x: op.topk(x, 3, -1, "values", largest=False), (3, 5)),
    "gathered_slices": wide(
        lambda x: op.gather_nd(x, constant([[2, 0], [1, 3], [2, 0]], "int64")), (3, 4, 5)
    ),
    "tile": wide(lambda x: op.tile(x, (2, 1, 3))),
    "repeat": wide(lambda x: op.repeat(x, 2, 1)),
    "where": Case(((5, 3), (3,)), lambda x, y: op.where(op.greater(x, y), x, y)),
    "max": wide(lambda x: op.max(x, [1]), (5, 3, 4)),
    "matmul": Case(((5, 3, 4), (4, 6)), op.matmul),
    "letters": Case(((2, 3, 4), (4, 5), (5, 2)), lambda x, y, z: op.einsum((x, y, z), "bij,jk,kb->ik")),
    "letters_of_one": Case(((2, 3), (3, 4)), lambda x, y: op.einsum((x, y), "ij,jk->i")),
    "softmax": wide(lambda x: nn.softmax(x, 1)),
    "power": Case(((3, 5),), lambda x: op.power(x, constant(2.5)), positive=True),
    "divide": Case(((5, 3), (3,)), op.divide, positive=True),
    "variance": wide(lambda x: op.variance(x, [1, 2], keepdims=True), (5, 3, 4)),
}


def built(cases: Mapping[str, Case], random: np.random.Generator) -> relax.VirtualMachine:
    """For each case a function of its operands, a sum with random weights, and its gradients."""
    every = {}
    for name, case in cases.items():
        operands = [
            relax.Var(f"x{at}", relax.TensorType(shape, case.dtype)) for at, shape in enumerate(case.shapes)
        ]
        builder = relax.BlockBuilder()
        with builder.function(name, operands):
            with builder.dataflow():
                result = builder.emit(case.call(*operands))
                shares = random.standard_normal([int(extent) for extent in result.ty.shape.values])
                total = op.sum(op.multiply(result, relax.const(shares, case.dtype)))
                total = builder.emit_output(total)
            builder.emit_func_output(total)
        with ours():
            every.update(relax.transform.Gradient(name)(builder.get()).functions.items())
    built = relax.build(tvm.IRModule(every), "llvm")
    return relax.VirtualMachine(built, tvm.cpu())


def check(cases: Mapping[str, Case]) -> None:
    random = np.random.default_rng(0)
    machine = built(cases, random)
    for name, case in cases.items():
        operands = [random.standard_normal(shape) for shape in case.shapes]
        if case.positive:
            operands = [np.abs(operand) + 0.3 for operand in operands]

        def total(arrays: list[np.ndarray], name: str = name, dtype: str = case.dtype) -> float:
            return float(machine[name](*[tvm.runtime.tensor(one.astype(dtype)) for one in arrays]).numpy())

        given = [tvm.runtime.tensor(operand.astype(case.dtype)) for operand in operands]
        _, grads = machine[f"{name}_adjoint"](*given)
        for at, grad in enumerate(grads):
            direction = random.standard_normal(operands[at].shape) * case.difference
            above, below = list(operands), list(operands)
            above[at], below[at] = operands[at] + direction, operands[at] - direction
            expected = (total(above) - total(below)) / 2
            found = float((grad.numpy() * direction).sum())
            scale = np.sqrt((grad.numpy() ** 2).sum() * (direction**2).sum())
            assert abs(found - expected) <= case.tolerance * scale, (name, at, found, expected)


@pytest.mark.slow
def test_gradients_of_windows_and_norms_are_those_of_differences() -> None:
    check(WINDOWS)


@pytest.mark.slow
def test_gradients_of_other_operators_are_those_of_differences() -> None:
    check(MORE)


def product_with_itself_stopped(x: relax.Expr) -> relax.Expr:
    return op.multiply(x, op.grad.no_grad(op.multiply(x, x)))


def share_of_positive(x: relax.Expr) -> relax.Expr:
    """A product with what a condition is as a number."""
    positive = op.logical_and(op.greater(x, constant(0.0)), op.less(x, constant(9.0)))
    return op.multiply(x, op.astype(positive, "float64"))


@pytest.mark.parametrize(
    ("call", "at", "expected"),
    [
        (op.abs, [0, 2, -3], [0, 1, -1]),
        (nn.relu, [0, 2, -3], [0, 1, 0]),
        (lambda x: op.clip(x, -1, 6), [-1, -0.5, 6, 7], [0, 1, 0, 0]),
        (lambda x: op.clip(x, -np.inf, 6), [5.5, 6, -1e30], [1, 0, 1]),
        (lambda x: op.clip(x, 0.1, 0.3), [0.1, 0.3, 0.2], [0, 0, 1]),
        (lambda x: op.maximum(x, constant(2.0)), [2, 3, 1], [0.5, 1, 0]),
        (lambda x: op.minimum(constant(2.0), x), [2, 3, 1], [0.5, 0, 1]),
        (lambda x: op.maximum(x, x), [2, 3, 1], [1, 1, 1]),
        (product_with_itself_stopped, [2, 3, -1], [4, 9, 1]),
        (share_of_positive, [2, 10, -1], [1, 0, 0]),
        (op.prod, [2, 0, -3], [0, -6, 0]),
        (op.prod, [0, 0, -3], [0, 0, 0]),
    ],
    ids=[
        "abs",
        "relu",
        "clip",
        "clip_above",
        "clip_0.3",
        "maximum",
        "minimum",
        "same",
        "stopped",
        "condition",
        "product_with_0",
        "product_with_two_0",
    ],
)
def test_gradients_at_ties_and_bounds_are_those_of_pytorch(
    call: Callable[..., relax.Expr], at: list[float], expected: list[float]
) -> None:
    """By hand, of PyTorch 2.14: nothing passes on a bound, and equal operands share."""
    operand = relax.Var("x", relax.TensorType((len(at),), "float64"))
    builder = relax.BlockBuilder()
    with builder.function("main", [operand]):
        with builder.dataflow():
            total = builder.emit_output(op.sum(call(operand)))
        builder.emit_func_output(total)
    with ours():
        mod = relax.transform.Gradient("main")(builder.get())
    machine = relax.VirtualMachine(relax.build(mod, "llvm"), tvm.cpu())
    _, (grad,) = machine["main_adjoint"](tvm.runtime.tensor(np.array(at, "float64")))
    np.testing.assert_array_equal(grad.numpy(), expected)


def test_gradients_of_tvm_are_back_afterwards() -> None:
    relu = tvm.ir.Op.get("relax.nn.relu")
    before = relu.get_attr("FPrimalGradient")
    with ours():
        assert relu.get_attr("FPrimalGradient") != before
    assert relu.get_attr("FPrimalGradient") == before
