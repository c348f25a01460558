"""Losses: what a step makes as small as it can.

SoftmaxCrossEntropy()      outputs (N, C, ...) before the softmax, labels (N, ...) of int64
MeanSquaredError()         outputs and targets of one shape
FunctionLoss(function)     a function of Relax: the model's outputs, then targets, to a number
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import tvm
from tvm import relax
from tvm.relax import op

from ..errors import InvalidInputError
from ..execution.signature import Port
from ..operators.registration import dtype_of, numbers, shape_of
from .checks import float_of, int_of
from .inlining import inlined

LABELS = "labels"


class Loss(ABC):
    """A loss of a model's outputs and of targets, which each step is given beside the inputs."""

    @abstractmethod
    def targets(self, outputs: Sequence[relax.Expr]) -> list[Port]:
        """The inputs of the loss beside the outputs.

        Raises
        ------
        InvalidInputError : the outputs are not those that the loss is for.
        """

    @abstractmethod
    def emit(
        self, builder: relax.BlockBuilder, outputs: Sequence[relax.Expr], targets: Sequence[relax.Expr]
    ) -> relax.Expr:
        """The loss as a tensor without axes, emitted into the function that is open."""

    def check(self, targets: Sequence[np.ndarray], outputs: Sequence[Port]) -> None:  # noqa: B027
        """InvalidInputError for targets of the right shapes and types that make no sense for the outputs.

        Most losses have nothing to check.  One loss may serve several models, so it keeps nothing of any.
        """


@dataclass
class SoftmaxCrossEntropy(Loss):
    """The mean of -log of the probability that a softmax gives to the label.

    Attributes
    ----------
    label_smoothing : the share of the target that goes to all classes alike.
    ignore : labels of this number do not count.
    """

    label_smoothing: float = 0.0
    ignore: int | None = None

    def __post_init__(self) -> None:
        self.label_smoothing = float_of("label_smoothing", self.label_smoothing, 0, 1)
        if self.ignore is not None:
            self.ignore = int_of("ignore", self.ignore)
        if self.ignore is not None and self.label_smoothing:
            raise InvalidInputError("label_smoothing and ignore together are not there yet; give one of them")

    def targets(self, outputs: Sequence[relax.Expr]) -> list[Port]:
        output = _only(outputs, "softmax cross-entropy")
        shape = _without_ones(shape_of(output))
        if len(shape) < 2:
            raise InvalidInputError(
                f"softmax cross-entropy: expected an output of samples and classes, got {list(shape)}"
            )
        return [Port(LABELS, (shape[0], *shape[2:]), "int64")]

    def emit(
        self, builder: relax.BlockBuilder, outputs: Sequence[relax.Expr], targets: Sequence[relax.Expr]
    ) -> relax.Expr:
        output, labels = _before_softmax(builder, outputs[0]), targets[0]
        dtype, shape = dtype_of(output), _without_ones(shape_of(output))
        if shape != shape_of(output):
            output = builder.emit(op.reshape(output, shape))
        logarithms = builder.emit(op.nn.log_softmax(output, axis=1))
        # No label is negative but the one to ignore, which check() makes sure of.
        ignored = -100 if self.ignore is None else self.ignore
        loss = builder.emit(op.nn.nll_loss(logarithms, labels, reduction="mean", ignore_index=ignored))
        if not self.label_smoothing:
            return loss
        all_alike = builder.emit(op.sum(logarithms))
        share = -self.label_smoothing / math.prod(shape)
        kept = op.multiply(loss, relax.const(1 - self.label_smoothing, dtype))
        return builder.emit(op.add(kept, op.multiply(all_alike, relax.const(share, dtype))))

    def check(self, targets: Sequence[np.ndarray], outputs: Sequence[Port]) -> None:
        (labels,), classes = targets, int(_without_ones(outputs[0].shape)[1])
        wrong = (labels < 0) | (labels >= classes)
        if self.ignore is not None:
            counted = labels != self.ignore
            wrong &= counted
            if not counted.any():
                raise InvalidInputError(
                    f"{LABELS}: each one is {self.ignore}, which does not count; expected one that does"
                )
        if wrong.any():
            at = tuple(int(n) for n in np.argwhere(wrong)[0])
            place = at[0] if len(at) == 1 else list(at)
            raise InvalidInputError(
                f"{LABELS}[{place}] is {int(labels[at])}; expected 0 to {classes - 1}, the classes"
            )


@dataclass
class MeanSquaredError(Loss):
    """The mean of the squares of what outputs and targets differ by."""

    def targets(self, outputs: Sequence[relax.Expr]) -> list[Port]:
        output = _only(outputs, "mean squared error")
        return [Port("targets", shape_of(output), dtype_of(output))]

    def emit(
        self, builder: relax.BlockBuilder, outputs: Sequence[relax.Expr], targets: Sequence[relax.Expr]
    ) -> relax.Expr:
        difference = builder.emit(op.subtract(outputs[0], targets[0]))
        total = builder.emit(op.sum(builder.emit(op.multiply(difference, difference))))
        terms = max(1, math.prod(shape_of(outputs[0])))
        return builder.emit(op.multiply(total, relax.const(1 / terms, dtype_of(outputs[0]))))


@dataclass
class FunctionLoss(Loss):
    """A function of Relax that takes the model's outputs, then targets, and gives a number."""

    function: relax.Function

    def targets(self, outputs: Sequence[relax.Expr]) -> list[Port]:
        params, count = list(self.function.params), len(outputs)
        if len(params) < count:
            raise InvalidInputError(
                f"the loss takes {len(params)} tensors; expected the model's {count} outputs, then targets"
            )
        for param, output in zip(params, outputs, strict=False):
            taken, given = _described(param), _described(output)
            if taken != given:
                raise InvalidInputError(
                    f"the loss takes {taken} as {param.name!r}; the model's output is {given}"
                )
        result = self.function.ret_ty
        if not isinstance(result, relax.TensorType) or result.ndim != 0:
            raise InvalidInputError(f"the loss gives {result}; expected a tensor without axes")
        return [Port(str(param.name), shape_of(param), dtype_of(param)) for param in params[count:]]

    def emit(
        self, builder: relax.BlockBuilder, outputs: Sequence[relax.Expr], targets: Sequence[relax.Expr]
    ) -> relax.Expr:
        return inlined(builder, self.function, [*outputs, *targets])


def loss_of(loss: object) -> Loss:
    """A loss, its name, or a function of Relax, as a loss."""
    if isinstance(loss, Loss):
        return loss
    if isinstance(loss, relax.Function):
        return FunctionLoss(loss)
    named = {"softmax_cross_entropy": SoftmaxCrossEntropy, "mean_squared_error": MeanSquaredError}
    if isinstance(loss, str) and loss in named:
        return named[loss]()
    raise InvalidInputError(
        f"loss={loss!r}; expected {', '.join(named)}, a tvm_mxplan.training loss or a function of Relax"
    )


def _before_softmax(builder: relax.BlockBuilder, output: relax.Expr) -> relax.Expr:
    """The input of a model's last softmax, where it ends in one: the loss has a softmax of its own.

    Views of the same samples and classes may stand around it, as ONNX's older softmax has them.
    """
    wanted, found = _without_ones(shape_of(output)), output
    while (made := _binding(builder, found)) is not None and _without_ones(shape_of(made.args[0])) == wanted:
        if str(made.op.name) not in _VIEWS:
            break
        found = made.args[0]
    made = _binding(builder, found)
    if made is None or str(made.op.name) != "relax.nn.softmax":
        return output
    over_classes = int(made.attrs.axis) % len(shape_of(found)) == 1
    return made.args[0] if over_classes and _without_ones(shape_of(found)) == wanted else output


_VIEWS = ("relax.reshape", "relax.flatten", "relax.nn.batch_flatten", "relax.squeeze", "relax.expand_dims")


def _binding(builder: relax.BlockBuilder, expr: relax.Expr) -> relax.Call | None:
    """The call of an operator of Relax that gave a variable."""
    made = builder.lookup_binding(expr) if isinstance(expr, relax.Var) else None
    return made if isinstance(made, relax.Call) and isinstance(made.op, tvm.ir.Op) and made.args else None


def _without_ones(shape: Sequence[int | str]) -> tuple[Any, ...]:
    """Samples, classes and extents, but for a last part of them that is 1."""
    kept = list(shape)
    while len(kept) > 2 and kept[-1] == 1:
        kept.pop()
    return tuple(kept)


def _only(outputs: Sequence[relax.Expr], loss: str) -> relax.Expr:
    if len(outputs) != 1:
        raise InvalidInputError(
            f"{loss} is of one output, the model has {len(outputs)}; name one by the setting output=, or "
            "give a function of Relax as loss"
        )
    return outputs[0]


def _described(tensor: relax.Expr) -> str:
    shape = numbers(tensor.ty.shape.values)
    return f"{dtype_of(tensor)}[{', '.join(map(str, shape))}]"
