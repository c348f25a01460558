"""The sanitized programs, built once for all tests."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).resolve().parent))
from sanitized import build


@pytest.fixture(scope="session")
def address_sanitized(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of the programs built with the address and undefined-behaviour sanitizers."""
    programs = ["fuzz_bytes", "fuzz_programs", "stress_regions"]
    return _built(tmp_path_factory.mktemp("address"), programs, "address,undefined")


@pytest.fixture(scope="session")
def thread_sanitized(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of the programs built with the thread sanitizer."""
    return _built(tmp_path_factory.mktemp("thread"), ["stress_regions"], "thread")


def _built(folder: Path, programs: list[str], sanitizers: str) -> Path:
    if shutil.which("g++") is None:
        pytest.skip("no compiler")
    build(folder, programs, sanitizers)
    return folder
