"""tvm_mxplan plans libraries, layouts and memory for whole TVM Relax functions, and lowers them to oneDNN.

import tvm_mxplan
ex = tvm_mxplan.compile("resnet50.onnx")
y, = ex(x)
print(ex.report)
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from .errors import InternalError, InvalidInputError, MxplanError, RemoteError, UnsupportedError

if TYPE_CHECKING:
    from . import op, opcheck, training, transform
    from .api import compile, tune
    from .cache.choices_file import load_cache, save_cache
    from .execution.caches import CacheStatistics, cache_statistics, set_cache_capacity
    from .execution.executable import Executable, load
    from .options import Options
    from .remote.address import Remote
    from .report.report import Report

__version__ = "0.1.0"

_LAZY = {
    "CacheStatistics": "execution.caches",
    "cache_statistics": "execution.caches",
    "set_cache_capacity": "execution.caches",
    "compile": "api",
    "Executable": "execution.executable",
    "load": "execution.executable",
    "load_cache": "cache.choices_file",
    "Options": "options",
    "Remote": "remote.address",
    "Report": "report.report",
    "save_cache": "cache.choices_file",
    "tune": "api",
}

__all__ = [
    "CacheStatistics",
    "Executable",
    "InternalError",
    "InvalidInputError",
    "MxplanError",
    "Options",
    "Remote",
    "RemoteError",
    "Report",
    "UnsupportedError",
    "cache_statistics",
    "compile",
    "load",
    "load_cache",
    "op",
    "opcheck",
    "save_cache",
    "set_cache_capacity",
    "training",
    "transform",
    "tune",
]


def __getattr__(name: str) -> Any:
    """Public names on first use, so that importing the package (as TVM does) stays cheap."""
    if name in _LAZY:
        return getattr(importlib.import_module(f".{_LAZY[name]}", __name__), name)
    if name in ("op", "opcheck", "training", "transform"):
        return importlib.import_module(f".{name}", __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def _autoload() -> None:
    """Called by TVM at ``import tvm``: loads the runtime, and with Relax, registers what needs it."""
    import tvm

    from .byoc import registry
    from .execution import machine

    for engine in registry.engines():
        engine.load()
    if not tvm._RUNTIME_ONLY:
        from . import pipeline_registration
        from .remote import server

        pipeline_registration.register()
        server.register()
    machine.start_ours()
