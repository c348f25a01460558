"""``StatefulSession``: calls of a model that keeps something from one to the next."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core.element_types import numpy_type
from ..core.program.dim_text import dim_from_text
from ..core.program.dims import evaluate, symbols_of
from ..errors import InvalidInputError, UnsupportedError
from . import machine
from .calls import arguments_of, arrays_of, taken
from .signature import KeptState, Signature, is_symbol

if TYPE_CHECKING:
    import tvm


class StatefulSession:
    """Calls that follow one another, each on what the calls before it left, from :meth:`Executable.session`.

    Each session has states of its own, zeros at first: caches, to which calls add rows, and what a call
    replaces as a whole, such as the hidden state of a recurrent layer.  One call runs at a time.

    Attributes
    ----------
    signature : inputs and outputs of a call, without states.
    length : rows of the caches that count; 0 at first.
    """

    def __init__(self, main: Any, signature: Signature) -> None:
        self._main, self._whole = main, signature
        self._lock = threading.Lock()
        self._states = {state.input: state for state in signature.states}
        self._growing = [state for state in signature.states if state.axis >= 0]
        self._given = {state.output for state in signature.states}
        own = [port for at, port in enumerate(signature.inputs) if at not in self._states]
        self._added = 0
        if self._growing:
            self._added = 1 if isinstance(self._growing[0].rows, int) else 2
        kept = own[: len(own) - self._added]
        outputs = [port for at, port in enumerate(signature.outputs) if at not in self._given]
        self.signature = Signature(
            tuple(kept), tuple(outputs), signature.bounds, conditions=signature.conditions
        )
        self._length = 0
        self._filled = machine.tensor_of(np.zeros(1, "int32"))
        self._rows = np.zeros(self._growing[0].capacity if self._growing else 0, "uint8")
        self._tensors = {at: self._zeros(at) for at in self._states}

    @property
    def length(self) -> int:
        """Rows of the caches that count."""
        return self._length

    @property
    def capacity(self) -> int:
        """Rows that the caches have room for; 0 without caches."""
        return self._growing[0].capacity if self._growing else 0

    def __call__(self, /, *args: Any, **kwargs: Any) -> list[tvm.runtime.Tensor]:
        """Run the model on arrays or tensors, by position or by name, and on the states.

        Returns
        -------
        outputs : those that are no state.

        Raises
        ------
        InvalidInputError : as calls of executables raise it; rows for which the caches have no room.
        """
        with self._lock:
            return self._called(self._bound(args, kwargs))

    def run(self, inputs: Any) -> list[np.ndarray]:
        """Run the model from arrays to numpy arrays.

        Parameters
        ----------
        inputs : one array, a sequence of them in the order of the inputs, or a mapping by name.
        """
        args, kwargs = arguments_of(inputs)
        return arrays_of(self(*args, **kwargs))

    def rewind(self, length: int = 0) -> None:
        """Forget the rows behind the first ``length``; without a number, all states, as in a new session.

        Raises
        ------
        InvalidInputError : more rows than there are.
        """
        with self._lock:
            if not 0 <= length <= self._length:
                raise InvalidInputError(f"rewind: expected 0 to {self._length} rows, got {length}")
            for state in self._growing:  # what follows may read them, and multiply by 0
                self._array(state)[_rows(state, length, self._length)] = 0
            self._length = length
            if length == 0:
                self._tensors |= {at: self._zeros(at) for at, one in self._states.items() if one.axis < 0}

    def state(self, name: str) -> np.ndarray:
        """A copy of a state, by the name of the input that it is; of a cache, the rows that count."""
        with self._lock:
            state = self._named(name)
            return self._array(state)[_rows(state, 0, self._length)].copy()

    def load(self, states: Mapping[str, np.ndarray]) -> None:
        """Put arrays in the place of states, by the names of inputs; caches have as many rows each.

        Raises
        ------
        InvalidInputError : a name that is no state, an array of another shape or type, caches of several
            lengths, or without the others.
        """
        with self._lock:
            length = self._length_of(states)
            for name, value in states.items():
                state = self._named(name)
                self._array(state)[_rows(state, 0, length)] = value
            self._length = length

    def _named(self, name: str) -> KeptState:
        for state in self._whole.states:
            if self._whole.inputs[state.input].name == name:
                return state
        known = ", ".join(self._whole.inputs[state.input].name for state in self._whole.states)
        raise InvalidInputError(f"no state {name!r}; the states are {known}")

    def _array(self, state: KeptState) -> np.ndarray:
        """The memory of a state."""
        return np.from_dlpack(self._tensors[state.input])

    def _length_of(self, states: Mapping[str, np.ndarray]) -> int:
        """The length behind ``load``; what does not fit is an error."""
        lengths = set()
        for name, value in states.items():
            state = self._named(name)
            wanted = self._array(state)
            shape = list(wanted.shape)
            if state.axis >= 0 and np.ndim(value) == len(shape):
                lengths.add(value.shape[state.axis])
                shape[state.axis] = min(value.shape[state.axis], state.capacity)
            if getattr(value, "dtype", None) != wanted.dtype or list(np.shape(value)) != shape:
                got = f"{getattr(value, 'dtype', type(value).__name__)}{list(np.shape(value))}"
                raise InvalidInputError(f"state {name!r}: expected {wanted.dtype}{shape}, got {got}")
        caches = {self._whole.inputs[state.input].name for state in self._growing}
        if lengths and (len(lengths) > 1 or not caches <= states.keys()):
            raise InvalidInputError("load: expected all caches at once, of as many rows each")
        return lengths.pop() if lengths else self._length

    def _zeros(self, at: int) -> Any:
        port = self._whole.inputs[at]
        if any(not isinstance(dim, int) for dim in port.shape):
            raise InvalidInputError(
                f"state {port}: expected numbers in its shape, as memory is kept for it; state it (shapes=)"
            )
        return machine.tensor_of(np.zeros([int(dim) for dim in port.shape], numpy_type(port.dtype)))

    def _bound(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[Any]:
        """All inputs of the function, in their order."""
        own = iter([machine.tensor_of(value) for value in self._checked(args, kwargs)])
        bound = [
            self._tensors[at] if at in self._states else next(own)
            for at in range(len(self._whole.inputs) - self._added)
        ]
        if self._growing:
            np.from_dlpack(self._filled)[0] = self._length
            bound.append(self._filled)
        if self._added > 1:
            bound.append(machine.tensor_of(self._rows[: self._length]))
        return bound

    def _checked(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[Any]:
        wanted = self._growing[0].rows if self._growing else 0
        known = {wanted: self._length} if isinstance(wanted, str) else {}
        given = self.signature.bind(*taken(args, kwargs), known)
        if self._growing and isinstance(wanted, int) and wanted != self._length:
            raise InvalidInputError(
                f"the model was made for calls on {wanted} rows of its caches, of which {self._length} "
                "count; load as many, rewind, or compile it with a name in the place of the number"
            )
        return given

    def _called(self, bound: list[Any]) -> list[Any]:
        rows = self._rows_behind(bound) if self._growing else 0
        if rows > self.capacity:
            raise InvalidInputError(
                f"caches of {self.capacity} rows have no room for {rows}; rewind, or compile with more "
                "capacity"
            )
        results = machine.outputs_of(self._main(*bound))
        for state in self._whole.states:
            self._tensors[state.input] = results[state.output]
        self._length = rows
        return [result for at, result in enumerate(results) if at not in self._given]

    def _rows_behind(self, bound: Sequence[Any]) -> int:
        """Rows of the caches that count behind a call."""
        after = self._growing[0].after
        if isinstance(after, int):
            return after
        sizes = {
            dim: int(extent)
            for port, value in zip(self._whole.inputs, bound, strict=True)
            for dim, extent in zip(port.shape, value.shape, strict=True)
            if is_symbol(dim)
        }
        dim = dim_from_text(after)
        if dim is None or not symbols_of(dim) <= sizes.keys():
            raise UnsupportedError(
                f"rows behind a call, {after}, do not follow from the shapes of its inputs"
            )
        return evaluate(dim, sizes)


def _rows(state: KeptState, begin: int, end: int) -> tuple[slice, ...]:
    """Some rows of a cache; all of another state."""
    return (*(slice(None),) * state.axis, slice(begin, end)) if state.axis >= 0 else ()


__all__ = ["StatefulSession"]
