"""``TrainingStep``: a compiled step with its state."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..api import compile as compile_model
from ..errors import InvalidInputError, UnsupportedError
from ..execution.executable import Executable
from ..execution.machine import tensor_of
from ..execution.signature import Port, Signature
from ..export.files import check_destination, whole_file
from ..operators.update import all_finite
from ..options import Options
from ..rates.wanted import wanted_rates
from ..tuning.place import Here
from . import state as states
from .anomalies import first_anomaly
from .checks import check_state, whole_numbers
from .functions import Recipe, backward_function, forward_function, step_function, update_function
from .recomputation.budget import compiled_within
from .state import State, Storage

if TYPE_CHECKING:
    import tvm

    from ..core.decisions.recomputation import Recomputation
    from ..report.report import Report
    from .api import Settings


class TrainingStep:
    """A step of training, from :func:`tvm_mxplan.training.compile`; a call changes the weights.

    A call that raises leaves weights and all else as they were.

    Attributes
    ----------
    signature : inputs of the model, then targets of the loss.
    outputs : what the model gave in the last call, before the weights changed.
    gradients : of the last call by weight, where the setting ``keep_gradients`` asks for them.
    """

    def __init__(
        self, recipe: Recipe, settings: Settings, target: str | tvm.target.Target, options: Options
    ) -> None:
        self._recipe, self._settings = recipe, settings
        self._target, self._options = target, options
        model = recipe.model
        self._update: Executable | None = None
        if recipe.accumulate > 1:
            self._built = backward_function(recipe)
            self._update = self._compiled(update_function(recipe))
        else:
            self._built = step_function(recipe, gives_gradients=settings.keep_gradients)
        self._executable, self._recomputation = self._within_budget(self._built.mod)
        self._forward: Executable | None = None
        outputs = tuple(Port(name, (), "") for name in model.outputs)
        self.signature = Signature((*model.inputs, *self._built.targets), outputs)
        self._state = State.first(
            self._storage(),
            model.weights,
            recipe.trained,
            recipe.optimizer.slots,
            accumulates=recipe.accumulate > 1,
        )
        self.outputs: list[np.ndarray] = []
        self.gradients: dict[str, np.ndarray] = {}

    def _compiled(self, mod: tvm.IRModule) -> Executable:
        return compile_model(mod, self._target, options=replace(self._options, memory_budget=None))

    def _within_budget(self, mod: tvm.IRModule) -> tuple[Executable, Recomputation | None]:
        """The function that runs forward and backward, within the option ``memory_budget``."""
        budget, here = self._options.memory_budget, Here()
        if budget is None:
            return self._compiled(mod), None
        machine = wanted_rates(self._options, here.threads, here.rates, weighs=True)
        return compiled_within(mod, budget, self._compiled, machine)

    def _storage(self) -> Storage:
        """The form in which the executable takes weights, and what is kept beside them."""
        weights = self._recipe.model.weights
        first = len(self.signature.inputs) + 1  # the key stands between
        names = dict(enumerate(weights, first))
        forms = {names[one.parameter]: one for one in self._executable.report.state if one.parameter in names}
        return Storage({name: array.shape for name, array in weights.items()}, forms)

    @property
    def report(self) -> Report:
        """The report of what of the step ran where, and why the rest did not."""
        return replace(self._executable.report, recomputation=self._recomputation)

    @property
    def executable(self) -> Executable:
        """The function that runs forward and backward, compiled."""
        return self._executable

    @property
    def trained(self) -> list[str]:
        """Names of the weights that steps change by gradients."""
        return self._recipe.trained

    @property
    def constants(self) -> list[str]:
        """Names of real numbers of an ONNX model that are no weights; ``trainable=`` may name them."""
        return list(self._recipe.model.constants)

    @property
    def steps(self) -> int:
        """Changes of the weights so far."""
        return self._state.steps

    @property
    def learning_rate(self) -> float:
        """The learning rate of the next change of the weights."""
        return self._recipe.optimizer.rate(self._state.steps)

    def __call__(self, /, *args: Any, **kwargs: Any) -> float:
        """Run the model and its gradients on a batch, change the weights, and give the loss before that.

        Inputs of the model come first, then targets of the loss, by position or by name, as numpy arrays.

        Raises
        ------
        InvalidInputError : a shape, an element type or a label that cannot be; a loss that is no number.
        """
        data = self._bound(args, kwargs)
        recipe, state = self._recipe, self._state
        key = np.array([self._settings.seed, state.calls], "int64")
        numbers = self._numbers(state)
        weights = list(state.weights.values())
        if self._update is None:
            every = [*data, key, *weights, *numbers, *_rows(state.slots)]
        else:
            every = [*data, key, *weights, *state.sums.values()]
        results = iter(self._executable(*every))
        loss = float(next(results).numpy())
        outputs = [next(results).numpy() for _ in recipe.model.outputs]
        new = replace(state, weights=dict(state.weights), calls=state.calls + 1)
        statistics = _taken(results, self._built.statistics)
        new.weights.update(statistics)
        finite = math.isfinite(loss) and _all_finite(statistics.values())
        if self._update is None:
            finite &= self._advance(new, results)
            gradients = {name: tensor.numpy() for name, tensor in _taken_all(results, recipe.trained)}
        else:
            new.sums = _taken(results, recipe.trained)
            finite &= _all_finite(new.sums.values())
            gradients = {}
            if new.calls % recipe.accumulate == 0:
                trained = [new.weights[name] for name in recipe.trained]
                given = [*trained, *numbers, *_rows(state.slots), *new.sums.values()]
                finite &= self._advance(new, iter(self._update(*given)))
                new.sums = {name: tensor_of(np.zeros_like(sums.numpy())) for name, sums in new.sums.items()}
        if not finite:
            raise self._anomaly(loss, every)
        self._state, self.outputs, self.gradients = new, outputs, gradients
        return loss

    def _numbers(self, state: State) -> list[np.ndarray]:
        optimizer = self._recipe.optimizer
        found = optimizer.numbers_of(state.steps, optimizer.rate(state.steps))
        return [np.array(number, self._recipe.dtype) for number in found]

    def _advance(self, new: State, results: Iterator[Any]) -> bool:
        """Take new weights and slots from the results of a step; whether all of them are finite."""
        recipe = self._recipe
        new.weights.update(_taken(results, recipe.trained))
        new.slots = {slot: _taken(results, recipe.trained) for slot in recipe.optimizer.slots}
        new.steps += 1
        largest = _taken(results, recipe.trained)
        return all(all_finite(bits.numpy()) for bits in largest.values())

    def _bound(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[Any]:
        """Inputs and targets in their order, checked; whole numbers of any type may be labels."""
        names = [port.name for port in self.signature.inputs]
        given = {**dict(zip(names, args, strict=False)), **kwargs}
        labels = [port.name for port in self._built.targets if port.dtype == "int64"]
        for name in labels:
            value = given.get(name)
            if isinstance(value, np.ndarray) and value.dtype.kind in "iu":
                given[name] = whole_numbers(name, value)
        first = [given.get(name, value) for name, value in zip(names, args, strict=False)]
        rest = {name: given[name] for name in kwargs}
        bound = self.signature.bind([*first, *args[len(first) :]], rest)
        targets = bound[len(self._recipe.model.inputs) :]
        as_arrays = [value if isinstance(value, np.ndarray) else value.numpy() for value in targets]
        self._recipe.loss.check(as_arrays, self._built.outputs)
        return bound

    def _anomaly(self, loss: float, every: Sequence[Any]) -> InvalidInputError:
        what = f"the loss is {loss}" if not math.isfinite(loss) else "a new weight or a moment is no number"
        where = f"step {self._state.steps}: {what}, and no weight was changed"
        if not self._settings.detect_anomaly:
            advice = (
                "set detect_anomaly=True to hear which operator made it; a smaller learning rate may help"
            )
            return InvalidInputError(f"{where}; {advice}")
        state, plain = self._state, self._state.storage.plain
        rows = [state.weights, *state.slots.values()] if self._update is None else [state.weights, state.sums]
        stored = [id(tensor) for row in rows for tensor in row.values()]
        arrays = [array for row in rows for array in plain(row).values()]
        known = dict(zip(stored, arrays, strict=True))
        names = [f"the input {port.name}" for port in self.signature.inputs]
        names += ["the key", *(f"the weight {name}" for name in state.weights)]
        names += [f"what the optimiser keeps, {at}" for at in range(len(every) - len(names))]
        arrays = [known.get(id(value), value) for value in every]
        found = first_anomaly(self._built.mod, dict(zip(names, arrays, strict=True)))
        return InvalidInputError(f"{where}; first made by {found}")

    def evaluate(self, /, *args: Any, **kwargs: Any) -> list[np.ndarray]:
        """The model's outputs in inference, by the weights of now."""
        model = self._recipe.model
        bound = Signature(model.inputs, ()).bind(args, kwargs)
        if self._forward is None:
            self._forward = self._compiled(forward_function(model))
        weights = self._state.storage.plain(self._state.weights)
        return [result.numpy() for result in self._forward(*bound, *weights.values())]

    def state_dict(self) -> dict[str, Any]:
        """All that a step keeps, as arrays.

        ``["model"]`` has weights and running statistics under the model's names, ``["slots"]`` the
        optimiser's tensors by slot and weight, ``["optimizer"]`` what it is; ``["sums"]``, ``["steps"]``,
        ``["calls"]`` and ``["seed"]`` what else a run that goes on needs to be the same bit for bit.
        """
        described = self._recipe.optimizer.described()
        return {**self._state.arrays(), "optimizer": described, "seed": self._settings.seed}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from what :meth:`state_dict` gave, or from weights alone, under the model's names.

        Raises
        ------
        InvalidInputError : of another model or another optimiser; nothing is changed then.
        """
        state = check_state(state)
        if not isinstance(state.get("model"), Mapping):
            self._state.weights = self._state.weights_from(state, "weights")
            return
        mine, theirs = self._recipe.optimizer.described(), dict(state.get("optimizer", {}))
        if theirs.get("kind") != mine["kind"]:
            raise InvalidInputError(
                f"state: of the optimiser {theirs.get('kind')}; expected {mine['kind']}; load ['model'] "
                "alone to go on from its weights"
            )
        if state.get("seed") != self._settings.seed:
            raise InvalidInputError(
                f"state: of the seed {state.get('seed')}; expected {self._settings.seed}, the setting"
            )
        self._state = self._state.replaced(state, "state")

    def save_checkpoint(self, path: str | os.PathLike[str]) -> None:
        """Write :meth:`state_dict` as an .npz file, whole or not at all."""
        states.write(path, self.state_dict())

    def load_checkpoint(self, path: str | os.PathLike[str]) -> None:
        """Go on from a file of :meth:`save_checkpoint`, bit for bit as the run that wrote it."""
        self.load_state_dict(states.read(path))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the ONNX model with the weights of now, for inference.

        Raises
        ------
        UnsupportedError : the model did not come as ONNX; ``state_dict()["model"]`` has the weights.
        """
        source = self._recipe.model.onnx
        if source is None:
            raise UnsupportedError(
                f"{path}: the model did not come as ONNX; take the weights from state_dict()['model']"
            )
        from .onnx_model import with_weights

        path = check_destination(path, Path(path).suffix or ".onnx")
        arrays = self._state.arrays()["model"]
        data = with_weights(source, arrays).SerializeToString()
        with whole_file(path) as partial:
            partial.write_bytes(data)


def _rows(slots: Mapping[str, Mapping[str, Any]]) -> list[Any]:
    return [tensor for row in slots.values() for tensor in row.values()]


def _taken(results: Iterator[Any], names: Sequence[str]) -> dict[str, Any]:
    """The next results by the names of weights."""
    return {name: next(results) for name in names}


def _taken_all(results: Iterator[Any], names: Sequence[str]) -> list[tuple[str, Any]]:
    """As many of the next results as there are, by the names of weights."""
    return list(zip(names, results, strict=False))


def _all_finite(tensors: Iterable[Any]) -> bool:
    """Whether no tensor has an infinity or something that is no number."""
    return all(bool(np.isfinite(np.from_dlpack(tensor)).all()) for tensor in tensors)
