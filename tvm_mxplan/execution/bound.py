"""``BoundCall``: a model with its arrays, for calls that have nothing left to check."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..errors import InvalidInputError
from . import machine
from .calls import CallCounters, arrays_of, check_out
from .ffi import tvm_ffi
from .signature import Port, Signature


class BoundCall:
    """Calls of a model on the same arrays each time, from :meth:`Executable.bind`.

    Write the next inputs into the arrays that were bound, and call.  One call runs at a time; calls of other
    threads wait.

    Attributes
    ----------
    out : the arrays that every call writes its results into; None where each call returns new ones.
    """

    def __init__(
        self, main: Any, signature: Signature, values: Sequence[Any], out: Sequence[np.ndarray] | None
    ) -> None:
        inputs = [_shared(port, value) for port, value in zip(signature.inputs, values, strict=True)]
        self.out = None if out is None else list(out)
        if self.out is not None:
            results = arrays_of(main(*map(machine.tensor_of, inputs)))
            _check_outs(signature, self.out, results)
        outputs = [tvm_ffi.from_dlpack(array) for array in self.out or []]
        make = tvm_ffi.get_global_func("tvm_mxplan.calls.bound")
        self._call, self._counters = make(main, inputs, outputs)

    def __call__(self) -> list[Any]:
        """Runs the model on what the inputs hold now, and returns the results as numpy arrays."""
        result = self._call()
        return arrays_of(result) if self.out is None else self.out

    def counters(self) -> CallCounters:
        return CallCounters(*map(int, self._counters()))


def _shared(port: Port, value: Any) -> Any:
    """A tensor of the value's own memory."""
    if isinstance(value, tvm_ffi.core.Tensor):
        return value
    found = _fault(value)
    if found:
        raise InvalidInputError(
            f"input {port}: expected a writable array, dense in C order, of numpy's own element types, as it "
            f"is read where it stands; got {found}; bind a copy, and write the inputs into that"
        )
    return tvm_ffi.from_dlpack(value)


def _fault(array: np.ndarray) -> str:
    """The reason that an array's memory cannot be handed over, '' if it can."""
    if not array.flags.c_contiguous:
        return "an array with strides"
    if not array.flags.writeable:
        return "a read-only array"
    try:
        array.__dlpack__()
    except (BufferError, RuntimeError, TypeError) as error:
        return f"an array of {array.dtype} ({error})"
    return ""


def _check_outs(signature: Signature, out: Sequence[Any], results: Sequence[Any]) -> None:
    if len(out) != len(results):
        raise InvalidInputError(f"out: {len(out)} arrays given for {len(results)} results")
    names = [port.name for port in signature.outputs]
    for n, (name, array, result) in enumerate(zip(names, out, results, strict=True)):
        check_out(name, array, result)
        if not array.flags.c_contiguous:
            raise InvalidInputError(f"out: the array for {name!r} has strides; expected one dense in C order")
        if any(np.may_share_memory(array, other) for other in out[:n]):
            raise InvalidInputError(f"out: the array for {name!r} shares memory with one for another result")


__all__ = ["BoundCall"]
