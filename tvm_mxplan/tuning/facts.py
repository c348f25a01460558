"""What measurements depend on besides the question: the machine, its threads, and who makes the kernels."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..configuration import distribution_version
from ..core import program
from ..core.fingerprint import Fingerprint

SCHEMA = 1
"""Count it up when the plug-in's own kernels, or how questions are measured, change."""


def machine() -> dict[str, Any]:
    """The facts of a record file's header; see the module's text."""
    from ..byoc.onednn import library

    return {
        "CPU": _processor(),
        "instruction set": library.isa(),
        "oneDNN": library.version(),
        "oneDNN threads": library.threads(),
        "plug-in": distribution_version("tvm_mxplan"),
        "schema": [SCHEMA, program.VERSION],
    }


def digest_of(facts: Mapping[str, Any]) -> str:
    fingerprint = Fingerprint()
    fingerprint.add("machine", facts)
    return fingerprint.hexdigest()


@functools.cache
def _processor() -> str:
    """The first processor's model as Linux names it, '' elsewhere."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return ""
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "")
