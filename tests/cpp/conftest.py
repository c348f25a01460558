"""The programs in C++, built once for all tests, whichever process runs them."""

from __future__ import annotations

import fcntl
import os
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
    return _built(tmp_path_factory, programs, "address,undefined")


@pytest.fixture(scope="session")
def thread_sanitized(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of the programs built with the thread sanitizer."""
    return _built(tmp_path_factory, ["stress_regions"], "thread")


@pytest.fixture(scope="session")
def without_onednn(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of the programs that need no oneDNN, built without it."""
    programs = ["cudnn_life", "cudnn_movement", "cudnn_graphs", "other_library"]
    return _built(tmp_path_factory, programs, "", with_onednn=False)


def _built(
    factory: pytest.TempPathFactory, programs: list[str], sanitizers: str, with_onednn: bool = True
) -> Path:
    if shutil.which("g++") is None:
        pytest.skip("no compiler")
    root = factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        root = root.parent  # of all workers
    folder, never_run = root / f"programs-{sanitizers or 'plain'}", root / "programs-never-run"
    for each in (folder, never_run):
        each.mkdir(exist_ok=True)
    with open(folder / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "built").exists():
            build(folder, programs, sanitizers, with_onednn, never_run)
            (folder / "built").touch()
    return folder
