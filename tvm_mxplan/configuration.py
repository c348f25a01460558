"""Lists what is installed and set: versions, the machine's instruction sets, environment variables."""

from __future__ import annotations

import importlib.metadata
import os

from . import environment

_DISTRIBUTIONS = ("tvm_mxplan", "apache-tvm", "apache-tvm-ffi", "onnx", "numpy")


def configuration() -> dict[str, dict[str, str]]:
    """Facts by section, as ``tvmc show-config`` prints them."""
    from tvm.target import codegen

    from .byoc import registry
    from .execution.caches import cache_statistics

    caches = cache_statistics()
    settings = environment.settings(registry.variables())
    versions = {name: distribution_version(name) for name in _DISTRIBUTIONS}
    return {
        "versions": {**versions, **registry.versions()},
        "machine": {
            "CPU for LLVM": codegen.llvm_get_system_cpu(),
            **{name: value for name, value in registry.code().items() if name not in registry.versions()},
            "CPUs allowed": str(len(os.sched_getaffinity(0))),
        },
        "targets": {"parts": ", ".join([*registry.spellings(), "llvm"])},
        "caches, kept at most": {
            "primitives": f"{caches['primitives'].most_entries:,}",
            "packed weights": f"{caches['weights'].most_bytes:,} bytes",
        },
        "environment": {name: value or "not set" for name, value in settings.items()},
    }


def distribution_version(name: str) -> str:
    """The installed version, or ``not installed``."""
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"
