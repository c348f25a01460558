"""The C++ runtime from Python: loads the shared library on first use and wraps its functions.

Needs ``tvm_ffi`` alone, so that a deployment with TVM's runtime library works too.
"""

from __future__ import annotations

import ctypes
import importlib.metadata
import json
import mmap
import re
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tvm_mxplan import environment, errors

if TYPE_CHECKING:
    import numpy as np

    from tvm_mxplan.byoc.engine import Observer
    from tvm_mxplan.core.description import Description
    from tvm_mxplan.core.program.program import Program

LIBRARY = "libmxplan_runtime.so"
_ONEDNN_DISTRIBUTION = "onednn-cpu-gomp"
_ONEDNN_LIBRARY = "libdnnl.so.3"
_ONEDNN_CACHE = 64
"""Primitives that oneDNN keeps: those inside of others and what packs weights; ours are in our own cache."""
_CACHE_VARIABLE = "ONEDNN_PRIMITIVE_CACHE_CAPACITY"
"""By which a user sizes that cache."""
_TRIAL = "trial"
_STAMP = re.compile(rb"mxplan-tvm-ffi=([0-9.]+);")

_lock = threading.Lock()
_loaded: list[ctypes.CDLL] = []  # kept open for good: TVM holds functions of it


class LibraryError(RuntimeError):
    """The runtime library is missing or does not fit what is installed."""


def library_path() -> Path:
    """Returns the path of the shared library, built or not."""
    return Path(__file__).resolve().parent.parent / "runtime" / LIBRARY


def load() -> None:
    """Load the library once; raises :class:`LibraryError` with the way out."""
    with _lock:
        if _loaded:
            return
        path = library_path()
        if not path.exists():
            raise LibraryError(f"{path} does not exist; build it with `pip install -e .`")
        _check_tvm_ffi(path)
        import tvm_ffi  # noqa: F401  (puts libtvm_ffi into the process before ours asks for it)

        environment.settle_pool()
        with environment.brief_spinning():
            libraries = [_load_onednn()]
        try:
            libraries.append(ctypes.CDLL(str(path)))
        except OSError as error:
            raise LibraryError(f"cannot load {path}: {error}") from error
        _loaded.extend(libraries)
        errors.register()
        if not environment.those_set([_CACHE_VARIABLE]):
            _function("set_library_cache")(_ONEDNN_CACHE)


def describe(program: Program, symbols: Sequence[int] = ()) -> Description:
    """Build every primitive of a program without running any and say what came of it.

    ``symbols`` has a number for each of the program's symbols.  Values in layout ``any`` come back with
    the layout that the first step to touch them decides.
    """
    return read_description(description_text(program, symbols))


def description_text(program: Program | bytes, symbols: Sequence[int] = ()) -> str:
    """Returns the result of :func:`describe` as text for :func:`read_description`, on another machine too."""
    load()
    return str(_function("describe")(_encoded(program), [int(symbol) for symbol in symbols]))


def read_description(text: str) -> Description:
    """The inverse of :func:`description_text`."""
    from tvm_mxplan.core.description import Description, Refused, StepInfo, ValueInfo

    from .costs.names import implementation_named

    def told(step: dict[str, Any]) -> StepInfo:
        refused = tuple(Refused(*one) for one in step["refused"])
        info = StepInfo(**{**step, "alternatives": tuple(step["alternatives"]), "refused": refused})
        return info.running(implementation_named(info.implementation))

    answer = json.loads(text)
    return Description(
        tuple(told(step) for step in answer["steps"]),
        tuple(ValueInfo(**value) for value in answer["values"]),
    )


def create_module(symbol: str, program: Program | bytes, constants: Sequence[Any] = ()) -> Any:
    """A runtime module whose function ``symbol`` takes inputs, then outputs.

    ``program`` may be in its bytes already.  ``constants`` are tensors that ``tvm_ffi.from_dlpack`` takes
    (TVM's own, numpy's); they are not copied.
    """
    load()
    import tvm_ffi

    tensors = [
        constant if isinstance(constant, tvm_ffi.Tensor) else tvm_ffi.from_dlpack(constant)
        for constant in constants
    ]
    return _function("create")(symbol, _encoded(program), tensors)


def trial(program: Program, constants: Sequence[np.ndarray]) -> Callable[..., object]:
    """A function that executes a program on arrays: inputs, then outputs, of their physical shapes.

    What it packs is not shared with the process, and goes with the function.
    """
    from tvm_mxplan.byoc.arrays import tensor_of

    load()
    module = _function("create_trial")(
        _TRIAL, _encoded(program), [tensor_of(constant) for constant in constants]
    )
    function = module[_TRIAL]
    return lambda *arrays: function(*map(tensor_of, arrays))


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
    """A region as bytes and, beside them, its weights as this machine's primitives want them.

    Those of regions with static shapes are packed for that, if they are not yet; see :func:`load_packed`.
    """
    import numpy as np

    head, *weights = module["mxplan.save_packed"]()
    return bytes(head), [memoryview(np.from_dlpack(tensor)) for tensor in weights]


def load_packed(head: bytes, weights: Sequence[Any], mapped: bool) -> Any:
    """The region that :func:`save_packed` wrote; ``weights`` are used where they are, or packed anew.

    Each is a tensor of bytes, as ``tvm_ffi.from_dlpack`` takes it.  ``mapped``: they are pages of a file that
    nobody writes to, and may be dropped and read again.
    """
    load()
    import tvm_ffi

    return _function("load_packed")(head, [tvm_ffi.from_dlpack(part) for part in weights], mapped)


def stats(module: Any) -> dict[str, Any]:
    """Counters of a module: specializations, contexts, arena and weights bytes, implementations."""
    answer: dict[str, Any] = json.loads(str(module["mxplan.stats"]()))
    return answer


def cache_counters(cache: str) -> dict[str, int]:
    """Counters and capacity of the process's cache of ``primitives`` or packed ``weights``."""
    load()
    return {str(name): int(number) for name, number in _function("cache_counters")(cache).items()}


def set_cache_capacity(cache: str, entries: int, bytes: int) -> None:
    """Limits what a cache may keep beyond use; 0 of either switches it off."""
    load()
    _function("set_cache_capacity")(cache, entries, bytes)


def set_debug(memory: bool) -> None:
    """Whether runs that begin from now on check every step's memory; slow, and off at first."""
    load()
    _function("set_debug")(int(memory))


def refuse(descriptor: str, implementation: str, reason: str) -> None:
    """Keep steps of this descriptor (``StepInfo.descriptor``) from running an implementation, from now on.

    It holds for what the process builds afterwards: questions, and modules that are created or see new
    shapes.  The next best implementation runs; where none is left the step is refused with the reasons.
    ``implementation`` is a name as ``StepInfo.implementation`` has it.
    """
    load()
    _function("refuse")(descriptor, implementation, reason)


def refusals() -> list[tuple[str, str, str]]:
    """Lists what :func:`refuse` was told in this process: descriptors, implementations, reasons."""
    load()
    told = json.loads(str(_function("refusals")()))
    return [(one["descriptor"], one["implementation"], one["reason"]) for one in told]


def forget_refusals() -> None:
    """Undo every :func:`refuse`, for what is built from now on."""
    load()
    _function("forget_refusals")()


def errata() -> list[dict[str, Any]]:
    """The table of implementations that are known to be wrong (``primitives/errata.cc``), an entry each.

    ``condition`` says for which steps, ``first`` and ``last`` for which versions of oneDNN.
    """
    load()
    table: list[dict[str, Any]] = json.loads(str(_function("errata")()))
    return table


def set_errata(on: bool) -> None:
    """Whether errata count for what is built from now on, as they do at first; off is for finding them."""
    load()
    _function("set_errata")(int(on))


def observe(observer: Observer | None) -> None:
    """Show every step of the regions that the calling thread runs from now on to ``observer``; None: no more.

    Such runs take their steps one by one, as they are planned.
    """
    load()
    functions = (None, None, None) if observer is None else (observer.begin, observer.before, observer.after)
    _function("observe")(*functions)


def threads() -> int:
    """Number of threads that primitives which the calling thread makes and runs will use."""
    load()
    return int(_loaded[0].omp_get_max_threads())  # of the OpenMP runtime that oneDNN is linked to


def set_threads(count: int) -> None:
    """Set what :func:`threads` says, for the calling thread."""
    load()
    _loaded[0].omp_set_num_threads(count)


def thread_limit() -> int:
    """The most threads that OpenMP gives, whatever is asked for; 1 where it may give fewer as it likes."""
    load()
    return 1 if _loaded[0].omp_get_dynamic() else int(_loaded[0].omp_get_thread_limit())


def version() -> str:
    """Version of oneDNN, as ``3.2.0``."""
    load()
    return str(_function("version")())


def isa() -> str:
    """Instruction set oneDNN generates code for."""
    load()
    return str(_function("isa")())


def _encoded(program: Program | bytes) -> bytes:
    if isinstance(program, bytes):
        return program
    from tvm_mxplan.core.program import codec

    return codec.encode(program)


def _function(name: str) -> Any:
    import tvm_ffi

    return tvm_ffi.get_global_func(f"tvm_mxplan.onednn.{name}")


def _check_tvm_ffi(path: Path) -> None:
    """The module ABI moves with every tvm-ffi release: refuse any other than the one built against."""
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        stamp = _STAMP.search(data)
        built = stamp.group(1).decode() if stamp else "an unknown version"
    installed = importlib.metadata.version("apache-tvm-ffi")
    if installed.split(".")[:3] != built.split("."):
        raise LibraryError(
            f"the runtime was built against apache-tvm-ffi {built}, installed is {installed}; "
            "reinstall tvm_mxplan, or install that version"
        )


def _load_onednn() -> ctypes.CDLL:
    """Load oneDNN from the distribution that brings it, so that no search path has to be set."""
    candidates: list[str] = []
    try:
        for file in importlib.metadata.files(_ONEDNN_DISTRIBUTION) or []:
            if file.name == _ONEDNN_LIBRARY:
                candidates.append(str(Path(str(file.locate())).resolve()))
    except importlib.metadata.PackageNotFoundError:
        pass
    candidates += [str(Path(sys.prefix) / "lib" / _ONEDNN_LIBRARY), _ONEDNN_LIBRARY]
    failures = []
    for candidate in candidates:
        try:
            return ctypes.CDLL(candidate)
        except OSError as error:
            failures.append(str(error))
    raise LibraryError(
        f"cannot load oneDNN ({'; '.join(failures)}); install {_ONEDNN_DISTRIBUTION}==2023.2.0"
    )
