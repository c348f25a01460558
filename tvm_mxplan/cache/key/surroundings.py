"""Everything besides the model that a compilation depends on, in words: the facts of a cache file."""

from __future__ import annotations

import functools
import os
import sys
from pathlib import Path
from typing import Any

from ... import environment
from ...byoc import registry
from ...configuration import distribution_version
from ...core.fingerprint import content_digest
from ...core.processor import processor_fields
from ...options import Options
from ...targets import TargetText
from ..container import UnusableCache

SCHEMA = 5
"""Of what `artifact` and `choices_file` write; count it up when that changes."""

_DISTRIBUTIONS = ("tvm_mxplan", "apache-tvm", "apache-tvm-ffi", "numpy", "scipy", "ml_dtypes")
"""The packages that compile: constants are folded with numpy, and decisions made with scipy."""
_PROCESSOR = ("vendor_id", "cpu family", "model", "model name", "stepping", "flags")
_SOURCES = (".py", ".so")
_DEFAULT_PASS_CONTEXT = {"opt_level": 2, "required_pass": [], "disabled_pass": [], "config": {}}


def surroundings(target: TargetText, options: Options) -> dict[str, Any]:
    """Versions, machine, target and options, as JSON; where they are equal, so are compilations."""
    return {
        **shared_surroundings(),
        "target": target.words(),
        "options": options.fingerprinted(),
        "TVM": _pass_context(),
    }


def shared_surroundings() -> dict[str, Any]:
    """The part that is the same for all compilations of a process."""
    return {"schema": SCHEMA, "versions": _versions(), "machine": _machine()}


@functools.cache
def _versions() -> dict[str, str]:
    versions = {name: distribution_version(name) for name in _DISTRIBUTIONS}
    return {**versions, **registry.versions(), "plugin": _plugin_digest()}


def _plugin_digest() -> str:
    """Over the files of this package: a plug-in that is worked on has one version and many contents."""
    import tvm_mxplan
    from tvm_mxplan import byoc, passes

    folders = {Path(package.__path__[0]).resolve() for package in (tvm_mxplan, byoc, passes)}
    files = {path for folder in folders for path in folder.rglob("*") if path.suffix in _SOURCES}
    try:
        named = sorted((path.name, content_digest(path.read_bytes())) for path in files)
    except OSError as error:
        raise UnusableCache(f"this plug-in's own files cannot be read ({error.strerror})") from error
    return content_digest(b"".join(name.encode() + b"\0" + digest for name, digest in named)).hex()[:16]


def _machine() -> dict[str, Any]:
    threads = environment.settings()
    return {
        **_processor(),
        "CPUs allowed": len(os.sched_getaffinity(0)),
        "OMP_NUM_THREADS": threads["OMP_NUM_THREADS"],
        "TVM_NUM_THREADS": threads["TVM_NUM_THREADS"],
        **registry.facts(),
        **registry.kernel_environment(),
    }


def _processor() -> dict[str, str]:
    found = {name: value for name, value in processor_fields().items() if name in _PROCESSOR}
    return {**found, "flags": content_digest(found.get("flags", "").encode()).hex()[:16]}


def _pass_context() -> dict[str, Any]:
    tvm = sys.modules.get("tvm")
    if tvm is None:  # nobody can have made one
        return dict(_DEFAULT_PASS_CONTEXT)
    context = tvm.transform.PassContext.current()
    return {
        "opt_level": int(context.opt_level),
        "required_pass": [str(name) for name in context.required_pass],
        "disabled_pass": [str(name) for name in context.disabled_pass],
        "config": {str(key): str(value) for key, value in context.config.items()},
    }
