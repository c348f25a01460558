"""Epochs of a step over arrays: batches in an order that a seed decides, loss and accuracy of each epoch."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from ..errors import InvalidInputError
from .step import TrainingStep


@dataclass(frozen=True)
class Epoch:
    """The figures of an epoch.

    Attributes
    ----------
    loss : the mean of its steps.
    accuracy, validation : the share of samples whose largest output is their label, in the epoch's own
        steps and of the other samples afterwards; None where that means nothing.
    """

    number: int
    loss: float
    accuracy: float | None
    validation: float | None

    def __str__(self) -> str:
        parts = [f"epoch {self.number}: loss {self.loss:.4f}"]
        if self.accuracy is not None:
            parts.append(f"accuracy {100 * self.accuracy:.2f} %")
        if self.validation is not None:
            parts.append(f"validation {100 * self.validation:.2f} %")
        return ", ".join(parts)


def run_epochs(
    step: TrainingStep,
    data: Mapping[str, np.ndarray],
    count: int,
    *,
    seed: int = 0,
    validation: Mapping[str, np.ndarray] | None = None,
) -> Iterator[Epoch]:
    """Train epoch after epoch; the last samples of an epoch that fill no batch wait for another one.

    Parameters
    ----------
    data, validation : arrays by the names of inputs and targets, samples along their first axis.

    Raises
    ------
    InvalidInputError : arrays that are missing or differ in their numbers of samples, or fill no batch.
    """
    names = [port.name for port in step.signature.inputs]
    samples, batch = _samples(data, names, "data"), int(step.signature.inputs[0].shape[0])
    if samples < batch:
        raise InvalidInputError(f"data: {samples} samples; expected a batch of {batch} at least")
    labels = names[-1] if _are_labels(data[names[-1]]) else ""
    if validation is not None:
        _samples(validation, names, "validation")
    random = np.random.default_rng(seed)
    for number in range(1, count + 1):
        order, losses, right = random.permutation(samples), [], 0
        for begin in range(0, samples - batch + 1, batch):
            at = order[begin : begin + batch]
            losses.append(step(**{name: data[name][at] for name in names}))
            if labels:
                right += _right(step.outputs[0], data[labels][at])
        accuracy = right / (len(losses) * batch) if labels else None
        held = _validated(step, validation, names, batch) if validation is not None and labels else None
        yield Epoch(number, float(np.mean(losses)), accuracy, held)


def _samples(data: Mapping[str, np.ndarray], names: list[str], what: str) -> int:
    for name in names:
        if name not in data:
            raise InvalidInputError(f"{what}: no array {name!r}; expected {', '.join(names)}")
    counts = {name: len(data[name]) for name in names}
    if len(set(counts.values())) > 1:
        told = ", ".join(f"{count} of {name}" for name, count in counts.items())
        raise InvalidInputError(f"{what}: expected as many samples in each array, got {told}")
    return counts[names[0]]


def _are_labels(targets: np.ndarray) -> bool:
    return targets.ndim == 1 and targets.dtype.kind in "iu"


def _right(output: np.ndarray, labels: np.ndarray) -> int:
    return int((output.reshape(len(labels), -1).argmax(1) == labels).sum())


def _validated(
    step: TrainingStep, data: Mapping[str, np.ndarray], names: list[str], batch: int
) -> float | None:
    """Accuracy of inference; a last batch is filled with samples that do not count."""
    *inputs, labels = names
    samples, right = len(data[labels]), 0
    for begin in range(0, samples, batch):
        at = np.arange(begin, min(begin + batch, samples))
        filled = np.concatenate([at, np.zeros(batch - len(at), at.dtype)])
        (output, *_) = step.evaluate(**{name: data[name][filled] for name in inputs})
        right += _right(output[: len(at)], data[labels][at])
    return right / samples if samples else None
