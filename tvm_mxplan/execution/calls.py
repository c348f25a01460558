"""Calls of a compiled function: a way in that is short where all is plain, and results as arrays.

A ``Caller`` belongs to one thread.  Arrays of the element types and shapes of an earlier call go to the
function without being looked at in Python; ``byoc/runtime/ffi/calls.cc`` says what it takes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..errors import InvalidInputError
from . import machine
from .ffi import tvm_ffi
from .signature import Signature

_PLAIN: set[type] = {np.ndarray, machine.Tensor, tvm_ffi.core.Tensor}
"""Types of arrays whose elements are theirs alone; TVM's own joins them once one is seen."""
_OURS = np.ndarray | np.generic | tvm_ffi.core.Tensor
"""Types of values that are looked at, and copied, as they are."""


@dataclass(frozen=True)
class CallCounters:
    """Counts of what one thread's calls did.

    Attributes
    ----------
    calls : that ran, by the short way or after a look at their inputs.
    looked_at : whose inputs had to be checked in Python.
    copied : inputs that were copied to where kernels may read them.
    held : tensors that were made for such copies.
    parted : results that stood in an input's memory, and were copied out of it.
    """

    calls: int
    looked_at: int
    copied: int
    held: int
    parted: int


class Caller:
    """A function of the virtual machine, for the calls of one thread.

    Parameters
    ----------
    main : the function; another thread needs another one.
    signature : of the function.
    """

    def __init__(self, main: Any, signature: Signature) -> None:
        self._main = main
        make = tvm_ffi.get_global_func("tvm_mxplan.calls.caller")
        self._call, self._accept, self._counters = make(main, [port.dtype for port in signature.inputs])

    def __call__(self, values: Sequence[Any]) -> Any:
        """The function's result; None where somebody has to look at the values first."""
        if not _PLAIN.issuperset(map(type, values)):
            return None
        try:
            return self._call(*values)
        except BufferError:  # what DLPack does not carry: read-only arrays, some element types
            return self._copied(values)

    def looked_at(self, values: Sequence[Any]) -> Any:
        """The result for values that agree with the signature; others of these shapes need no look then."""
        tensors = [machine.tensor_of(value) for value in values]
        _PLAIN.update(map(type, tensors))
        self._accept([tvm_ffi.Shape(tensor.shape) for tensor in tensors])
        result = self._call(*tensors)
        return self._main(*tensors) if result is None else result

    def _copied(self, values: Sequence[Any]) -> Any:
        owned = [np.array(value, order="C") if type(value) is np.ndarray else value for value in values]
        try:
            return self._call(*owned)
        except BufferError:
            return None

    def counters(self) -> CallCounters:
        return CallCounters(*map(int, self._counters()))


def arguments_of(inputs: Any) -> tuple[Sequence[Any], Mapping[str, Any]]:
    """Inputs by position and by name."""
    if isinstance(inputs, dict):
        return (), inputs
    if isinstance(inputs, _OURS):
        return (inputs,), {}
    if isinstance(inputs, Mapping):
        return (), inputs
    if _is_foreign(inputs):
        return (inputs,), {}
    if not isinstance(inputs, Iterable):
        kind = type(inputs).__name__
        raise InvalidInputError(f"inputs: expected an array, a sequence of them or a mapping, got {kind}")
    return tuple(inputs), {}


def taken(
    args: Sequence[Any], kwargs: Mapping[str, Any], shared: bool = False
) -> tuple[list[Any], dict[str, Any]]:
    """The same inputs, arrays of other libraries (PyTorch, JAX) as numpy's or TVM's.

    Parameters
    ----------
    shared : refuse arrays whose memory cannot be used where it stands.
    """
    named = {name: _taken(value, shared) for name, value in kwargs.items()}
    return [_taken(value, shared) for value in args], named


def _taken(value: Any, shared: bool) -> Any:
    if isinstance(value, _OURS) or not _is_foreign(value):
        return value
    ways: list[Callable[[Any], Any]] = [np.from_dlpack, tvm_ffi.from_dlpack]
    if not shared:
        ways.append(np.asarray)
    reasons = []
    for way in ways:
        try:
            return way(value)
        except Exception as error:
            reasons.append(str(error))
    raise InvalidInputError(f"inputs: no memory to read in a {type(value).__name__} ({reasons[0]})")


def _is_foreign(value: Any) -> bool:
    """Whether it is an array of a library that is neither numpy nor TVM."""
    return hasattr(value, "shape") and (hasattr(value, "__dlpack__") or hasattr(value, "__array__"))


def arrays_of(result: Any) -> list[Any]:
    """A function's results as numpy arrays, of the memory that the function wrote; sequences as lists."""
    if isinstance(result, tvm_ffi.core.Tensor):
        return [_array(result)]
    return [_array(output) for output in machine.outputs_of(result)]


def _array(output: Any) -> Any:
    if isinstance(output, list):
        return [_array(part) for part in output]
    try:
        return np.from_dlpack(output)
    except (BufferError, RuntimeError, TypeError):  # an element type that numpy does not have
        return output.numpy()


def copy_into(out: Sequence[Any], results: Sequence[Any], names: Sequence[str]) -> None:
    """Copies results into the arrays given for them, or none of them where one does not fit."""
    if len(out) != len(results):
        raise InvalidInputError(f"out: {len(out)} arrays given for {len(results)} results")
    for name, array, result in zip(names, out, results, strict=True):
        check_out(name, array, result)
    for array, result in zip(out, results, strict=True):
        np.copyto(array, result)


def check_out(name: str, array: Any, result: Any) -> None:
    """Raises InvalidInputError unless ``result`` fits into ``array`` as it is."""
    if not isinstance(result, np.ndarray):
        raise InvalidInputError(f"out: result {name!r} is a sequence, which has no array to be written into")
    if not isinstance(array, np.ndarray) or not array.flags.writeable:
        kind = "a read-only array" if isinstance(array, np.ndarray) else type(array).__name__
        raise InvalidInputError(f"out: expected a numpy array to write {name!r} into, got {kind}")
    if (array.shape, array.dtype) != (result.shape, result.dtype):
        wanted, given = (f"{one.dtype}[{', '.join(map(str, one.shape))}]" for one in (result, array))
        raise InvalidInputError(f"out: result {name!r} is {wanted}; got an array of {given}")
