"""Optimisers: how weights follow from gradients, by PyTorch's formulas.

    SGD      g += decay * w;  m = momentum * m + g;  w -= rate * m      (nesterov: g + momentum * m)
    Adam     g += decay * w;  m, v as moving means of g, g * g;  w -= rate * m' / (sqrt(v') + epsilon)
    AdamW    w *= 1 - rate * decay, then as Adam without decay

An optimiser says the arithmetic of one number, which becomes a kernel for each weight (``mxplan.update``).
The numbers that change from step to step (learning rate, corrections of Adam's means) are inputs of the
function, worked out in float64.
"""

from __future__ import annotations

import copy
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, TypeAlias

from tvm import relax, tirx

from ..errors import InvalidInputError
from ..operators.update import FORMULAS, update
from .checks import float_of, is_number

Rate: TypeAlias = float | Callable[[int], float]
"""A learning rate, or one for each step, which are counted from 0."""


class Optimizer(ABC):
    """Turns gradients into new weights.

    Attributes
    ----------
    slots : names of the tensors that it keeps for each weight, all 0 at first.
    numbers : names of what changes from step to step.
    """

    learning_rate: Rate
    slots: tuple[str, ...]
    numbers: tuple[str, ...]

    @abstractmethod
    def numbers_of(self, step: int, rate: float) -> list[float]:
        """The numbers of a step, counted from 0, at a learning rate."""

    @abstractmethod
    def formula(
        self,
        weight: tirx.Expr,
        grad: tirx.Expr,
        slots: Sequence[tirx.Expr],
        numbers: Sequence[tirx.Expr],
    ) -> tuple[tirx.Expr, list[tirx.Expr]]:
        """The new number of a weight, and those of its slots."""

    def emit(
        self,
        builder: relax.BlockBuilder,
        weight: relax.Expr,
        grad: relax.Expr,
        slots: Sequence[relax.Expr],
        numbers: Sequence[relax.Expr],
    ) -> tuple[relax.Expr, list[relax.Expr], relax.Expr]:
        """The new weight, its new slots, and the largest bits among them, emitted into the open function."""
        name = f"{type(self).__module__}.{type(self).__qualname__} {self.described()}"
        FORMULAS[name] = self.formula
        made = builder.emit(update(name, [weight, grad, *slots], numbers))
        new, *kept, largest = (builder.emit(relax.TupleGetItem(made, at)) for at in range(2 + len(slots)))
        return new, kept, largest

    def rate(self, step: int) -> float:
        """The learning rate of a step, counted from 0."""
        rate = self.learning_rate(step) if callable(self.learning_rate) else self.learning_rate
        if not is_number(rate, 0):
            raise InvalidInputError(f"learning rate {rate!r} in step {step}; expected a number of at least 0")
        return float(rate)

    def check_rate(self) -> None:
        """InvalidInputError for a learning rate that is neither a number nor a function."""
        if not callable(self.learning_rate) and not is_number(self.learning_rate, 0):
            raise InvalidInputError(
                f"learning_rate={self.learning_rate!r}; expected a number of at least 0, or a function of "
                "the step"
            )

    def described(self) -> dict[str, Any]:
        """The optimiser's kind and its numbers, as checkpoints hold them."""
        plain = copy.copy(self)
        # A function of the step may hold anything, and nothing of it is written.
        object.__setattr__(plain, "learning_rate", 0.0)
        values = {name: value for name, value in asdict(plain).items() if name != "learning_rate"}  # type: ignore[call-overload]
        return {"kind": type(self).__name__, **values}


@dataclass
class SGD(Optimizer):
    """Stochastic gradient descent with momentum, Nesterov's if asked for, and weight decay."""

    learning_rate: Rate = 0.01
    momentum: float = 0.0
    nesterov: bool = False
    weight_decay: float = 0.0

    numbers = ("rate",)

    def __post_init__(self) -> None:
        self.check_rate()
        self.momentum = float_of("momentum", self.momentum, 0, 1)
        self.weight_decay = float_of("weight_decay", self.weight_decay, 0)
        if self.nesterov and not self.momentum:
            raise InvalidInputError("nesterov=True asks for a momentum above 0")

    @property
    def slots(self) -> tuple[str, ...]:  # type: ignore[override]
        return ("momentum",) if self.momentum else ()

    def numbers_of(self, step: int, rate: float) -> list[float]:
        return [rate]

    def formula(
        self,
        weight: tirx.Expr,
        grad: tirx.Expr,
        slots: Sequence[tirx.Expr],
        numbers: Sequence[tirx.Expr],
    ) -> tuple[tirx.Expr, list[tirx.Expr]]:
        grad = grad + weight * self.weight_decay if self.weight_decay else grad
        if not slots:
            return weight - grad * numbers[0], []
        kept = slots[0] * self.momentum + grad
        ahead = grad + kept * self.momentum if self.nesterov else kept
        return weight - ahead * numbers[0], [kept]


@dataclass
class Adam(Optimizer):
    """Adam; ``weight_decay`` joins the gradient."""

    learning_rate: Rate = 1e-3
    betas: tuple[float, float] = (0.9, 0.999)
    epsilon: float = 1e-8
    weight_decay: float = 0.0

    slots = ("mean", "square")
    numbers = ("rate", "correction", "kept")

    def __post_init__(self) -> None:
        self.check_rate()
        if not isinstance(self.betas, Iterable) or len(betas := tuple(self.betas)) != 2:
            raise InvalidInputError(f"betas={self.betas!r}; expected two numbers")
        first, second = (float_of("betas", beta, 0, 1) for beta in betas)
        self.betas = (first, second)
        self.epsilon = float_of("epsilon", self.epsilon, 0)
        self.weight_decay = float_of("weight_decay", self.weight_decay, 0)

    def numbers_of(self, step: int, rate: float) -> list[float]:
        first, second = (1 - beta ** (step + 1) for beta in self.betas)
        return [rate / first, 1 / math.sqrt(second), self._kept(rate)]

    def _kept(self, _rate: float) -> float:
        """The share of a weight that stays, the update aside."""
        return 1.0

    def formula(
        self,
        weight: tirx.Expr,
        grad: tirx.Expr,
        slots: Sequence[tirx.Expr],
        numbers: Sequence[tirx.Expr],
    ) -> tuple[tirx.Expr, list[tirx.Expr]]:
        rate, correction, kept = numbers
        weight, grad = self._decayed(weight, grad, kept)
        first, second = self.betas
        mean = slots[0] * first + grad * (1 - first)
        square = slots[1] * second + grad * grad * (1 - second)
        deviation = tirx.sqrt(square) * correction + self.epsilon
        return weight - mean * rate / deviation, [mean, square]

    def _decayed(self, weight: tirx.Expr, grad: tirx.Expr, _kept: tirx.Expr) -> tuple[tirx.Expr, tirx.Expr]:
        return weight, grad + weight * self.weight_decay if self.weight_decay else grad


@dataclass
class AdamW(Adam):
    """Adam whose weight decay applies to the weights themselves."""

    weight_decay: float = 1e-2

    def _kept(self, rate: float) -> float:
        return 1 - rate * self.weight_decay

    def _decayed(self, weight: tirx.Expr, grad: tirx.Expr, kept: tirx.Expr) -> tuple[tirx.Expr, tirx.Expr]:
        return weight * kept, grad


def optimizer_of(optimizer: object) -> Optimizer:
    """An optimiser, or the name of one with its usual numbers."""
    if isinstance(optimizer, Optimizer):
        return optimizer
    named: dict[str, Callable[[], Optimizer]] = {"sgd": SGD, "adam": Adam, "adamw": AdamW}
    if isinstance(optimizer, str) and optimizer in named:
        return named[optimizer]()
    raise InvalidInputError(
        f"optimizer={optimizer!r}; expected {', '.join(named)} or a tvm_mxplan.training optimiser"
    )
