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
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tvm_mxplan import environment, errors
from tvm_mxplan.byoc import runtime_functions
from tvm_mxplan.byoc.runtime_functions import RuntimeFunctions

if TYPE_CHECKING:
    from tvm_mxplan.core.description import Description
    from tvm_mxplan.core.program.program import Program

LIBRARY = "libmxplan_runtime.so"
_ONEDNN_DISTRIBUTION = "onednn-cpu-gomp"
_ONEDNN_LIBRARY = "libdnnl.so.3"
_ONEDNN_CACHE = 64
"""Primitives that oneDNN keeps: those inside of others and what packs weights; ours are in our own cache."""
_CACHE_VARIABLE = "ONEDNN_PRIMITIVE_CACHE_CAPACITY"
"""By which a user sizes that cache."""
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
            runtime.function("set_library_cache")(_ONEDNN_CACHE)


runtime = RuntimeFunctions("onednn", lambda: load())
"""The functions that it has like every library in the runtime."""
description_text = runtime.description_text
create_module = runtime.create_module
trial = runtime.trial
load_packed = runtime.load_packed
observe = runtime.observe
clock_steps = runtime.clock_steps
set_debug = runtime.set_debug
split_weights = runtime_functions.split_weights
export_packed = runtime_functions.export_packed
save_packed = runtime_functions.save_packed
stats = runtime_functions.stats


def describe(program: Program, symbols: Sequence[int] = ()) -> Description:
    """Build every primitive of a program without running any and say what came of it.

    ``symbols`` has a number for each of the program's symbols.  Values in layout ``any`` come back with
    the layout that the first step to touch them decides.
    """
    return read_description(runtime.description_text(program, symbols))


def read_description(text: str) -> Description:
    """The inverse of ``description_text``, whose text may come from another machine."""
    from .costs.names import implementation_named

    return runtime_functions.read_description(text, implementation_named)


def cache_counters(cache: str) -> dict[str, int]:
    """Counters and capacity of the process's cache of ``primitives`` or packed ``weights``."""
    return {str(name): int(number) for name, number in runtime("cache_counters", cache).items()}


def set_cache_capacity(cache: str, entries: int, bytes: int) -> None:
    """Limits what a cache may keep beyond use; 0 of either switches it off."""
    runtime("set_cache_capacity", cache, entries, bytes)


def refuse(descriptor: str, implementation: str, reason: str) -> None:
    """Keep steps of this descriptor (``StepInfo.descriptor``) from running an implementation, from now on.

    It holds for what the process builds afterwards: questions, and modules that are created or see new
    shapes.  The next best implementation runs; where none is left the step is refused with the reasons.
    ``implementation`` is a name as ``StepInfo.implementation`` has it.
    """
    runtime("refuse", descriptor, implementation, reason)


def refusals() -> list[tuple[str, str, str]]:
    """Lists what :func:`refuse` was told in this process: descriptors, implementations, reasons."""
    told = json.loads(str(runtime("refusals")))
    return [(one["descriptor"], one["implementation"], one["reason"]) for one in told]


def forget_refusals() -> None:
    """Undo every :func:`refuse`, for what is built from now on."""
    runtime("forget_refusals")


def errata() -> list[dict[str, Any]]:
    """The table of implementations that are known to be wrong (``primitives/errata.cc``), an entry each.

    ``condition`` says for which steps, ``first`` and ``last`` for which versions of oneDNN.
    """
    table: list[dict[str, Any]] = json.loads(str(runtime("errata")))
    return table


def set_errata(on: bool) -> None:
    """Whether errata count for what is built from now on, as they do at first; off is for finding them."""
    runtime("set_errata", int(on))


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
    return str(runtime("version"))


def isa() -> str:
    """Instruction set oneDNN generates code for."""
    return str(runtime("isa"))


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
