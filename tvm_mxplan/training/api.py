"""``compile``: a step of training out of a model, a loss and an optimiser."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

from ..errors import InvalidInputError
from ..frontend.parameters import Parameters
from ..frontend.stated_inputs import Shape
from ..options import Options
from .checks import int_of, is_number
from .functions import Clipping, Recipe, with_reached
from .losses import loss_of
from .model import Wanted, model_of
from .optimizers import optimizer_of
from .step import TrainingStep

if TYPE_CHECKING:
    import tvm


@dataclass(frozen=True)
class Settings:
    """The settings of a step, beside its loss and its optimiser.

    Attributes
    ----------
    trainable : names of the weights to train; None for all that the model learns.
    freeze_batch_norm : batch norms work by their running statistics, which stay as they are.
    clip_norm : the norm of all gradients together is at most this.
    clip_value : each number of each gradient lies within this from 0.
    accumulate : gradients of so many calls are averaged before the weights change.
    keep_gradients : the gradients of the last call stay, in ``step.gradients``.
    detect_anomaly : a call that makes something else than numbers says which operator made it first.
    seed : decides which elements dropouts drop.
    output : the name of the model's result that the loss is of; None for all that the model gives.
    """

    trainable: Sequence[str] | None = None
    freeze_batch_norm: bool = False
    clip_norm: float | None = None
    clip_value: float | None = None
    accumulate: int = 1
    keep_gradients: bool = False
    detect_anomaly: bool = False
    seed: int = 0
    output: str | None = None

    def __post_init__(self) -> None:
        for name in ("clip_norm", "clip_value"):
            value = getattr(self, name)
            if value is not None and not (is_number(value, 0) and float(value) > 0):
                raise InvalidInputError(f"{name}={value!r}; expected a number above 0")
        object.__setattr__(self, "accumulate", int_of("accumulate", self.accumulate, 1))
        object.__setattr__(self, "seed", int_of("seed", self.seed, 0))
        if self.keep_gradients and self.accumulate > 1:
            raise InvalidInputError("keep_gradients and accumulate together are not there; give one of them")
        if isinstance(self.trainable, str) or not isinstance(self.trainable, Iterable | None):
            raise InvalidInputError(f"trainable={self.trainable!r}; expected a list of names")


def compile(
    model: Any,
    loss: Any,
    optimizer: Any,
    *,
    inputs: Mapping[str, Shape] | Sequence[str] | None = None,
    params: Parameters | None = None,
    target: str | tvm.target.Target = "dnnl, llvm",
    options: Options | dict[str, Any] | None = None,
    **settings: Any,
) -> TrainingStep:
    """Compile a step of training: forward, loss, gradients and new weights as one planned function.

    Parameters
    ----------
    model : path of an ONNX file, an ``onnx.ModelProto``, or a Relax module whose function is ``main``.
        Batch norms that were exported for inference become those of training, dropouts drop.
    loss : ``softmax_cross_entropy``, ``mean_squared_error``, a :class:`Loss`, or a function of Relax that
        takes the model's outputs, then targets, and gives a number.
    optimizer : ``sgd``, ``adam``, ``adamw``, or an :class:`Optimizer`.
    inputs : shapes of an ONNX model's inputs by name, where it leaves some open; the names of the
        parameters that are data, of a Relax function, whose others are weights.
    params : first values of a Relax function's weights by name.
    target, options : as for :func:`tvm_mxplan.compile`.
    settings : see :class:`Settings`.

    Raises
    ------
    InvalidInputError : a model, a loss or a setting that cannot be.
    UnsupportedError : an operator without a gradient, or shapes that are not numbers.
    """
    known = [field.name for field in fields(Settings)]
    for name in settings:
        if name not in known:
            raise InvalidInputError(f"unknown setting {name!r}; the settings are {', '.join(known)}")
    made = Settings(**settings)
    recipe = Recipe(
        model_of(model, Wanted(inputs, params, made.trainable)),
        loss_of(loss),
        optimizer_of(optimizer),
        Clipping(made.clip_norm, made.clip_value),
        not made.freeze_batch_norm,
        made.accumulate,
        made.output,
    )
    return TrainingStep(with_reached(recipe), made, target, Options.of(options))
