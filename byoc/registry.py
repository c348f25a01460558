"""The libraries there are, by name: the one file that imports a concrete backend.

    name       spellings in targets and options   code generator    planner           engine
    onednn     dnnl, onednn, mkldnn               mxplan_onednn     onednn/backend    onednn/engine
    cudnn      cudnn                              mxplan_cudnn      cudnn/backend     cudnn/engine
    host       host                               mxplan_host       host/backend      host/engine

Both sides are made when somebody asks for them: the planner's imports TVM, which running a compiled library
does without.  ``register`` adds a library of somebody else's, and so does an installed distribution with an
entry point in the group ``tvm_mxplan.libraries``; docs/adding_a_backend.md shows one.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tvm_mxplan.errors import UnsupportedError

from .engine import Engine

if TYPE_CHECKING:
    from .backend import Backend


@dataclass(frozen=True)
class Library:
    """A row of the table.

    Attributes
    ----------
    name : what reports call it.
    codegen : name of its code generator, with which the names of regions and of composites begin.
    planner, engine : make its two sides; the engine is made once.
    spellings : what targets and options may call it; the first one is shown.
    beside : the kind of TVM's target that it runs beside.
    """

    name: str
    codegen: str
    planner: Callable[[], Backend]
    engine: Callable[[], Engine]
    spellings: tuple[str, ...]
    beside: str = "llvm"


def _onednn_planner() -> Backend:
    from .onednn.backend import OneDNN

    return OneDNN()


def _onednn_engine() -> Engine:
    from .onednn.engine import OneDNNEngine

    return OneDNNEngine()


def _cudnn_planner() -> Backend:
    from .cudnn.backend import Cudnn

    return Cudnn()


def _cudnn_engine() -> Engine:
    from .cudnn.engine import CudnnEngine

    return CudnnEngine()


def _load_runtime() -> None:
    """Load the file that holds the parts of all libraries in this table; it is linked to oneDNN."""
    engine("onednn").load()


def _host_planner() -> Backend:
    from .host.backend import Host
    from .runtime_functions import RuntimeFunctions

    return Host(RuntimeFunctions("host", _load_runtime))


def _host_engine() -> Engine:
    from .host.engine import HostEngine

    return HostEngine(_load_runtime)


_LIBRARIES = {
    library.name: library
    for library in (
        Library("onednn", "mxplan_onednn", _onednn_planner, _onednn_engine, ("dnnl", "onednn", "mkldnn")),
        Library("cudnn", "mxplan_cudnn", _cudnn_planner, _cudnn_engine, ("cudnn",), "cuda"),
        Library("host", "mxplan_host", _host_planner, _host_engine, ("host",)),
    )
}
_engines: dict[str, Engine] = {}
GROUP = "tvm_mxplan.libraries"
"""Of entry points, each a :class:`Library`."""

DEFAULT = ("onednn", "host")
"""The libraries that are asked where nobody names any, by preference; the first one leads."""


def register(library: Library) -> None:
    """Add a library; ValueError where a name of it is taken."""
    taken = {*_LIBRARIES, *spellings(), *(one.codegen for one in _LIBRARIES.values()), "llvm"}
    for name in (library.name, library.codegen, *library.spellings):
        if name in taken:
            raise ValueError(f"library {library.name}: the name {name} is taken")
    _LIBRARIES[library.name] = library


@functools.cache
def register_installed() -> dict[str, str]:
    """Register the libraries that installed distributions announce, once.

    Asked for a name that is in no row: looking at all distributions takes some hundredths of a second.

    Returns
    -------
    failed : the reason for each that cannot be used, by the name of its entry point.
    """
    import importlib.metadata  # takes as long as all else here, and is rarely wanted

    failed = {}
    for entry in importlib.metadata.entry_points(group=GROUP):
        try:
            library = entry.load()
            if library not in _LIBRARIES.values():
                register(library)
        except Exception as error:  # somebody else's code
            failed[entry.name] = f"{entry.value} failed with {type(error).__name__}: {error}"
    return failed


@contextmanager
def registered(library: Library) -> Iterator[None]:
    """A library that is there inside only, as tests want it."""
    register(library)
    try:
        yield
    finally:
        del _LIBRARIES[library.name]
        _engines.pop(library.name, None)


def spellings() -> dict[str, str]:
    """Names of libraries by all that targets and options may call them."""
    return {spelling: one.name for one in _LIBRARIES.values() for spelling in one.spellings}


def shown(name: str) -> str:
    """The library ``name`` as targets that are shown spell it."""
    return _row(name).spellings[0]


def beside(name: str) -> str:
    """The kind of TVM's target that the library ``name`` runs beside."""
    return _row(name).beside


def names_beside(kind: str) -> list[str]:
    """The libraries that run beside a kind of TVM's target."""
    return [name for name, row in _LIBRARIES.items() if row.beside == kind]


def planner(name: str) -> Backend:
    """A planner's side of the library ``name``, of its own."""
    return _row(name).planner()


def planners() -> list[Backend]:
    """Those of all libraries."""
    return [planner(name) for name in _LIBRARIES]


def default_planners() -> list[Backend]:
    """Those of the libraries in ``DEFAULT``."""
    return [planner(name) for name in DEFAULT]


def engine(name: str) -> Engine:
    """The engine of the library ``name``, one for the process."""
    if name not in _engines:
        _engines[name] = _row(name).engine()
    return _engines[name]


def engines() -> list[Engine]:
    """Those of all libraries."""
    return [engine(name) for name in _LIBRARIES]


def code() -> dict[str, str]:
    """Returns the properties that tell all libraries' machine code apart."""
    return {name: value for engine in engines() for name, value in engine.code().items()}


def versions() -> dict[str, str]:
    """Those of all libraries, by what people call them."""
    return {name: value for engine in engines() for name, value in engine.versions().items()}


def facts() -> dict[str, Any]:
    """:func:`code`, and what else the times of libraries depend on."""
    return {name: value for engine in engines() for name, value in engine.facts().items()}


def kernel_environment() -> dict[str, dict[str, str]]:
    """The environment variables by which libraries choose kernels."""
    return {name: found for engine in engines() for name, found in engine.kernel_environment().items()}


def variables() -> list[str]:
    """Names of the environment variables that libraries read by themselves."""
    return [name for engine in engines() for name in engine.variables]


def _row(name: str) -> Library:
    if name not in _LIBRARIES:
        register_installed()
    if name not in _LIBRARIES:
        raise UnsupportedError(f"no library {name!r} here; there are {', '.join(_LIBRARIES)}")
    return _LIBRARIES[name]


def engine_of(module: Any) -> Engine | None:
    """The engine that made a runtime module of a region; None for modules of anybody else's."""
    return next((engine(one.name) for one in _LIBRARIES.values() if one.codegen == module.kind), None)
