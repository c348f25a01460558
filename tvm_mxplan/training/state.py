"""``State``: what a step keeps from call to call, and how it is written and read again."""

from __future__ import annotations

import json
import os
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from ..core.decisions.stored_state import StoredState
from ..errors import InvalidInputError
from ..execution.machine import tensor_of
from ..export.files import check_destination, whole_file

_META = "mxplan_checkpoint"
_SCHEMA = 1


@dataclass(frozen=True)
class Storage:
    """The way from plain arrays to tensors as a step takes them, and back.

    Attributes
    ----------
    shapes : of all weights.
    forms : of those that are stored in layouts of their own.
    """

    shapes: Mapping[str, tuple[int, ...]]
    forms: Mapping[str, StoredState] = field(default_factory=dict)

    def tensor(self, name: str, array: np.ndarray) -> Any:
        """The tensor that stores a weight, or what is kept beside it."""
        form = self.forms.get(name)
        return tensor_of(array if form is None else form.packed(array))

    def array(self, name: str, tensor: Any) -> np.ndarray:
        """A plain copy of what a tensor stores."""
        form = self.forms.get(name)
        return tensor.numpy() if form is None else form.unpacked(tensor.numpy(), self.shapes[name])

    def row(self, arrays: Mapping[str, np.ndarray]) -> dict[str, Any]:
        """The tensors that store several."""
        return {name: self.tensor(name, array) for name, array in arrays.items()}

    def plain(self, row: Mapping[str, Any]) -> dict[str, np.ndarray]:
        """Plain copies of several."""
        return {name: self.array(name, tensor) for name, tensor in row.items()}


@dataclass
class State:
    """Tensors by the model's names, and counts.

    Attributes
    ----------
    storage : how the tensors store their numbers.
    weights : trained and frozen weights and running statistics.
    slots : the optimiser's tensors, by the slot's name and the weight's.
    sums : of gradients of calls whose weights have not changed yet; empty where none are accumulated.
    steps : changes of the weights so far.
    calls : calls so far.
    """

    storage: Storage
    weights: dict[str, Any]
    slots: dict[str, dict[str, Any]]
    sums: dict[str, Any] = field(default_factory=dict)
    steps: int = 0
    calls: int = 0

    @classmethod
    def first(
        cls,
        storage: Storage,
        weights: Mapping[str, np.ndarray],
        trained: Sequence[str],
        slots: Sequence[str],
        *,
        accumulates: bool,
    ) -> State:
        """The state before the first call."""

        def zeros() -> dict[str, Any]:
            return storage.row({name: np.zeros_like(weights[name]) for name in trained})

        return cls(
            storage, storage.row(weights), {slot: zeros() for slot in slots}, zeros() if accumulates else {}
        )

    def arrays(self) -> dict[str, Any]:
        """Copies of all tensors as arrays, and the counts."""
        return {
            "model": self.storage.plain(self.weights),
            "slots": {slot: self.storage.plain(row) for slot, row in self.slots.items()},
            "sums": self.storage.plain(self.sums),
            "steps": self.steps,
            "calls": self.calls,
        }

    def replaced(self, given: Mapping[str, Any], what: str) -> State:
        """A state of the same tensors with the numbers of ``given``, which :meth:`arrays` made.

        Raises
        ------
        InvalidInputError : names or shapes of another model's.
        """
        missing = [name for name in ("model", "slots", "sums", "steps", "calls") if name not in given]
        if missing:
            raise InvalidInputError(f"{what}: no {missing[0]!r}; expected what state_dict() gives")
        if sorted(given["slots"]) != sorted(self.slots):
            raise InvalidInputError(
                f"{what}: of an optimiser with {_list(given['slots'])} for each weight; expected "
                f"{_list(self.slots)}"
            )
        if bool(given["sums"]) != bool(self.sums):
            raise InvalidInputError(f"{what}: made with another setting of accumulate; expected the same")
        rows = self.slots.items()
        return State(
            self.storage,
            self.weights_from(given["model"], what),
            {slot: self._filled(row, given["slots"][slot], f"{what}: {slot}") for slot, row in rows},
            self._filled(self.sums, given["sums"], f"{what}: sums"),
            int(given["steps"]),
            int(given["calls"]),
        )

    def weights_from(self, given: Mapping[str, Any], what: str) -> dict[str, Any]:
        """Tensors like the weights with the numbers of ``given``; InvalidInputError for another model's."""
        return self._filled(self.weights, given, what)

    def _filled(self, tensors: Mapping[str, Any], given: Mapping[str, Any], what: str) -> dict[str, Any]:
        for name in given:
            if name not in tensors:
                raise InvalidInputError(
                    f"{what}: of another model: it has {name!r}, this one {_list(tensors)}"
                )
        made = {}
        for name, tensor in tensors.items():
            if name not in given:
                raise InvalidInputError(f"{what}: of another model, or not whole: no {name!r}")
            array = np.asarray(given[name])
            shape, dtype = self.storage.shapes[name], str(tensor.dtype)
            if array.shape != shape or str(array.dtype) != dtype:
                raise InvalidInputError(
                    f"{what}: {name!r} is {array.dtype}{list(array.shape)}; expected {dtype}{list(shape)}"
                )
            made[name] = self.storage.tensor(name, array)
        return made


def write(path: str | os.PathLike[str], state: Mapping[str, Any]) -> None:
    """Write what :meth:`State.arrays` gives, and what stands beside it, as an .npz file."""
    path = check_destination(path, ".npz")
    told = {name: value for name, value in state.items() if name not in ("model", "slots", "sums")}
    told |= {"schema": _SCHEMA, "slots": list(state["slots"])}
    arrays = {f"model/{name}": array for name, array in state["model"].items()}
    arrays |= {f"sums/{name}": array for name, array in state["sums"].items()}
    for slot, row in state["slots"].items():
        arrays |= {f"slots/{slot}/{name}": array for name, array in row.items()}
    arrays[_META] = np.frombuffer(json.dumps(told).encode(), "uint8")
    with whole_file(path) as partial, zipfile.ZipFile(partial, "w") as archive:
        # Names of weights have slashes and more, so files are numbered and a table names them.
        table = {str(at): name for at, name in enumerate(arrays)}
        archive.writestr("names.json", json.dumps(table))
        for at, array in enumerate(arrays.values()):
            with archive.open(f"{at}.npy", "w", force_zip64=True) as member:
                np.lib.format.write_array(member, np.ascontiguousarray(array), allow_pickle=False)


def read(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Reads the files of :func:`write`; InvalidInputError where they are missing or damaged, or others."""
    path = Path(path)
    if not path.exists():
        raise InvalidInputError(f"{path}: no such file; expected a checkpoint")
    try:
        with zipfile.ZipFile(path) as archive:
            arrays = {}
            for at, name in json.loads(archive.read("names.json")).items():
                with archive.open(f"{at}.npy") as member:
                    arrays[name] = np.lib.format.read_array(member, allow_pickle=False)
        state: dict[str, Any] = json.loads(arrays.pop(_META).tobytes())
        if state.pop("schema") != _SCHEMA:
            raise ValueError("of another version")
        slots = state.pop("slots")
    except Exception as error:
        raise InvalidInputError(f"{path}: no checkpoint, or damaged ({error})") from error

    def part(prefix: str) -> dict[str, np.ndarray]:
        return {name[len(prefix) :]: array for name, array in arrays.items() if name.startswith(prefix)}

    return {
        **state,
        "model": part("model/"),
        "sums": part("sums/"),
        "slots": {slot: part(f"slots/{slot}/") for slot in slots},
    }


def _list(names: Mapping[str, Any]) -> str:
    few = list(names)[:4]
    return (", ".join(few) + (" ..." if len(names) > len(few) else "")) or "nothing"
