"""Conditions of measurements besides the question: the machine, its threads, and who makes the kernels."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..byoc import registry
from ..configuration import distribution_version
from ..core.fingerprint import Fingerprint
from ..core.processor import processor_fields
from ..core.program import program

SCHEMA = 1
"""Count it up when the plug-in's own kernels, or how questions are measured, change."""


def machine() -> dict[str, Any]:
    """The facts of a record file's header; see the module's text."""
    return {
        "CPU": processor_fields().get("model name", ""),
        **registry.facts(),
        "plug-in": distribution_version("tvm_mxplan"),
        "schema": [SCHEMA, program.VERSION],
    }


def digest_of(facts: Mapping[str, Any]) -> str:
    fingerprint = Fingerprint()
    fingerprint.add("machine", facts)
    return fingerprint.hexdigest()
