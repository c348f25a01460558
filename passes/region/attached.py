"""Region programs as they travel on the IR: attributes of the region functions.

``mxplan.program`` holds the encoded program, ``mxplan.constants`` its constants, ``mxplan.fused`` the
operators that run inside others' steps, ``mxplan.rounding`` what roundings to shorter types add to errors,
where that is bounded.  A pass that works on programs is ``map_programs(mod, backend,
function)``.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from threading import Lock

import numpy as np
import tvm
from tvm import relax, tirx

from tvm_mxplan.byoc.backend import Fused
from tvm_mxplan.core.program import codec
from tvm_mxplan.core.program.program import Program
from tvm_mxplan.errors import InvalidInputError, UnsupportedError

from .dissolve import Dissolved, dissolve

PROGRAM = "mxplan.program"
CONSTANTS = "mxplan.constants"
FUSED = "mxplan.fused"
ROUNDING = "mxplan.rounding"


def regions(mod: tvm.IRModule, backend: str) -> Iterator[tuple[tvm.ir.GlobalVar, relax.Function]]:
    """The functions that ``backend`` is to generate code for."""
    for gvar, function in mod.functions.items():
        attrs = getattr(function, "attrs", None)
        if isinstance(function, relax.Function) and attrs and attrs.get("Codegen") == backend:
            yield gvar, function


def attach(
    function: relax.Function,
    program: Program,
    constants: Sequence[np.ndarray | tvm.runtime.Tensor] | None = None,
) -> relax.Function:
    """``function`` carrying ``program``; constants only where they are new."""
    function = function.with_attr(PROGRAM, tvm.runtime.tensor(np.frombuffer(codec.encode(program), np.uint8)))
    if constants is not None:
        function = function.with_attr(CONSTANTS, [_tensor(array) for array in constants])
    return function


def carries_program(function: tvm.ir.BaseFunc) -> bool:
    """True for regions, of any library, that have programs."""
    return isinstance(function, relax.Function) and bool(function.attrs) and PROGRAM in function.attrs


def program_of(function: relax.Function) -> Program:
    """The program of a region; InvalidInputError where ``BuildPrograms`` has not made it."""
    if not carries_program(function):
        name = function.attrs.get("global_symbol") if function.attrs else None
        raise InvalidInputError(f"region {name or 'without a name'} has no program; run BuildPrograms first")
    return _decoded(function.attrs[PROGRAM].numpy().tobytes())


class _Decoder:
    """Programs by their bytes, as pass after pass reads the same; the last ones up to so many bytes."""

    def __init__(self, capacity: int) -> None:
        self._capacity, self._held = capacity, 0
        self._programs: OrderedDict[bytes, Program] = OrderedDict()
        self._lock = Lock()

    def __call__(self, data: bytes) -> Program:
        with self._lock:
            if data in self._programs:
                self._programs.move_to_end(data)
                return self._programs[data]
        program = codec.decode(data)
        with self._lock:
            self._held += len(data) * (data not in self._programs)
            self._programs[data] = program
            while self._held > self._capacity:
                self._held -= len(self._programs.popitem(last=False)[0])
        return program


_decoded = _Decoder(capacity=4 << 20)


def constants_of(function: relax.Function) -> list[tvm.runtime.Tensor]:
    return list(function.attrs[CONSTANTS])


def with_fused(function: relax.Function, fused: Fused) -> relax.Function:
    """``function`` saying which steps run inside others, by their names."""
    return function.with_attr(FUSED, dict(fused)) if fused else function


def fused_of(function: relax.Function) -> Fused:
    written = function.attrs.get(FUSED)
    return {str(name): str(into) for name, into in written.items()} if written else {}


def with_rounding(function: relax.Function, spent: float) -> relax.Function:
    """``function`` saying what its roundings add: the square of a relative error."""
    return function.with_attr(ROUNDING, tirx.FloatImm("float64", spent))


def rounding_in(mod: tvm.IRModule) -> float:
    """The square of the relative error that roundings in all regions add, as far as they state it."""
    written = [function.attrs.get(ROUNDING) for function in mod.functions.values() if function.attrs]
    return sum(float(one.value) for one in written if one is not None)


def map_programs(mod: tvm.IRModule, backend: str, transform: Callable[[Program], Program]) -> Dissolved:
    """The module with the program of each region replaced by what ``transform`` makes of it.

    Regions for which it raises UnsupportedError go back to TVM with that reason.
    """
    mod = mod.clone()
    refused: dict[tvm.ir.GlobalVar, str] = {}
    for gvar, function in list(regions(mod, backend)):
        try:
            mod.update_func(gvar, attach(function, transform(program_of(function))))
        except UnsupportedError as error:
            refused[gvar] = str(error)
    return dissolve(mod, refused)


def _tensor(array: np.ndarray | tvm.runtime.Tensor) -> tvm.runtime.Tensor:
    """The array as TVM's tensor, without a copy where the memory allows."""
    if isinstance(array, tvm.runtime.Tensor):
        return array
    try:
        return tvm.runtime.from_dlpack(array)
    except (BufferError, RuntimeError, ValueError, TypeError):
        return tvm.runtime.tensor(array)
