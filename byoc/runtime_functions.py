"""``RuntimeFunctions``: what the C++ runtime has for every library in it, under the library's name.

    tvm_mxplan.<library>.describe, create, create_trial, load_packed, observe, set_debug, ...

Needs ``tvm_ffi`` alone.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

    from tvm_mxplan.byoc.engine import Observer
    from tvm_mxplan.core.description import Description, Implementation
    from tvm_mxplan.core.program.program import Program

RUNTIME = "mxplan"
"""The name of this runtime among the libraries in it, which share regions."""
_TRIAL = "trial"


class RuntimeFunctions:
    """The functions of one library in the runtime.

    Parameters
    ----------
    library : its name there.
    load : loads the file that the runtime is; called before anything is asked of it.
    """

    def __init__(self, library: str, load: Callable[[], None]) -> None:
        self.library = library
        self.load = load

    def __call__(self, name: str, *arguments: Any) -> Any:
        """Calls the library's function of that name and returns its result."""
        self.load()
        return self.function(name)(*arguments)

    def function(self, name: str) -> Any:
        """The library's function of that name; the runtime is loaded."""
        import tvm_ffi

        return tvm_ffi.get_global_func(f"tvm_mxplan.{self.library}.{name}")

    def description_text(self, program: Program | bytes, symbols: Sequence[int] = ()) -> str:
        """Returns the result of :meth:`describe` as text for :func:`read_description`."""
        return str(self("describe", _encoded(program), [int(symbol) for symbol in symbols]))

    def describe(self, program: Program, named: Callable[[str], Implementation]) -> Description:
        """Describes the kernels that would run each step of a program; nothing is executed.

        Parameters
        ----------
        named : what the name of an implementation says.
        """
        return read_description(self.description_text(program), named)

    def create_module(self, symbol: str, program: Program | bytes, constants: Sequence[Any] = ()) -> Any:
        """A runtime module whose function ``symbol`` takes inputs, then outputs.

        ``program`` may be in its bytes already.  ``constants`` are tensors that ``tvm_ffi.from_dlpack`` takes
        (TVM's own, numpy's); they are not copied.
        """
        return self("create", symbol, _encoded(program), [_tensor(constant) for constant in constants])

    def trial(self, program: Program, constants: Sequence[np.ndarray]) -> Callable[..., object]:
        """A function that executes a program on arrays: inputs, then outputs, of their physical shapes.

        What it packs is not shared with the process, and goes with the function.
        """
        from tvm_mxplan.byoc.arrays import tensor_of

        self.load()
        module = self("create_trial", _TRIAL, _encoded(program), [tensor_of(one) for one in constants])
        function = module[_TRIAL]
        return lambda *arrays: function(*map(tensor_of, arrays))

    def load_packed(self, head: bytes, weights: Sequence[Any], mapped: bool) -> Any:
        """The region that :func:`save_packed` wrote; ``weights`` are used where they are, or packed anew.

        Each is a tensor of bytes, as ``tvm_ffi.from_dlpack`` takes it.  ``mapped``: they are pages of a file
        that nobody writes to, and may be dropped and read again.
        """
        return self("load_packed", head, [_tensor(part) for part in weights], mapped)

    def observe(self, observer: Observer | None) -> None:
        """Show every step that the calling thread runs from now on to ``observer``; None: no more.

        Such runs take their steps one by one, as they are planned.
        """
        functions = (None,) * 3 if observer is None else (observer.begin, observer.before, observer.after)
        self("observe", *functions)

    def clock_steps(self, begin: bool) -> list[int]:
        """Begin to take the time of the calling thread's steps, or end it and give each one's nanoseconds.

        Raises
        ------
        InvalidInputError : it ends what did not begin in this thread.
        """
        return [int(taken) for taken in self("clock_steps", begin)]

    def set_debug(self, memory: bool) -> None:
        """Whether runs that begin from now on check every step's memory; slow, and off at first."""
        self("set_debug", int(memory))


def read_description(text: str, named: Callable[[str], Implementation]) -> Description:
    """A description from the text that the runtime gives; see :meth:`RuntimeFunctions.describe`."""
    from tvm_mxplan.core.description import Description, Refused, StepInfo, ValueInfo

    def told(step: dict[str, Any]) -> StepInfo:
        refused = tuple(Refused(*one) for one in step["refused"])
        info = StepInfo(**{**step, "alternatives": tuple(step["alternatives"]), "refused": refused})
        return info.running(named(info.implementation))

    answer = json.loads(text)
    return Description(
        tuple(told(step) for step in answer["steps"]),
        tuple(ValueInfo(**value) for value in answer["values"]),
    )


def split_weights(module: Any) -> Any:
    """A module that exports the weights of ``module`` as data of the library: loading does not copy them.

    From now on ``module`` is saved without them, so the two belong into one library.
    """
    return module["mxplan.split_weights"]()


def export_packed(module: Any, packed: bool) -> None:
    """Whether the weights that ``module`` has split are exported in the layouts its primitives want here.

    A library with packed weights runs on any machine; where primitives want other layouts it packs when it
    is loaded.
    """
    module["mxplan.export_packed"](packed)


def save_packed(module: Any) -> tuple[bytes, list[memoryview]]:
    """A region as bytes and, beside them, its weights as this machine's kernels want them.

    Those of regions with static shapes are packed for that, if they are not yet; see
    :meth:`RuntimeFunctions.load_packed`.
    """
    import numpy as np

    head, *weights = module["mxplan.save_packed"]()
    return bytes(head), [np.from_dlpack(tensor).data for tensor in weights]


def stats(module: Any) -> dict[str, Any]:
    """Counters of a region's module: specializations, contexts, arena and weights bytes, implementations."""
    answer: dict[str, Any] = json.loads(str(module["mxplan.stats"]()))
    return answer


def _encoded(program: Program | bytes) -> bytes:
    if isinstance(program, bytes):
        return program
    from tvm_mxplan.core.program import codec

    return codec.encode(program)


def _tensor(array: Any) -> Any:
    import tvm_ffi

    return array if isinstance(array, tvm_ffi.Tensor) else tvm_ffi.from_dlpack(array)
