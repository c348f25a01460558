"""What is installed and set: versions, the machine's instruction sets, environment variables."""

from __future__ import annotations

import importlib.metadata
import os

from . import environment

_DISTRIBUTIONS = ("tvm_mxplan", "apache-tvm", "apache-tvm-ffi", "onnx", "numpy")


def configuration() -> dict[str, dict[str, str]]:
    """Facts by section, as ``tvmc show-config`` prints them."""
    from tvm.target import codegen

    from .byoc.onednn import library
    from .caches import cache_statistics
    from .targets import LIBRARIES

    caches = cache_statistics()
    versions = {name: distribution_version(name) for name in _DISTRIBUTIONS}
    return {
        "versions": {**versions, "oneDNN": library.version()},
        "machine": {
            "CPU for LLVM": codegen.llvm_get_system_cpu(),
            "instruction set for oneDNN": library.isa(),
            "CPUs allowed": str(len(os.sched_getaffinity(0))),
        },
        "targets": {"parts": ", ".join([*LIBRARIES, "llvm"])},
        "caches, kept at most": {
            "primitives": f"{caches['primitives'].most_entries:,}",
            "packed weights": f"{caches['weights'].most_bytes:,} bytes",
        },
        "environment": {name: value or "not set" for name, value in environment.settings().items()},
    }


def distribution_version(name: str) -> str:
    """The installed version, or ``not installed``."""
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"
