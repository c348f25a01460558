"""No test reads or writes the user's own cache folder, or knows what another one loaded."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import rpc_processes

from tvm_mxplan.cache import choices_file, compile_cache
from tvm_mxplan.cache.session import Session


@pytest.fixture(autouse=True)
def cache_folder(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the cache would be; nothing is there yet."""
    folder = tmp_path_factory.mktemp("caches") / "cache"
    monkeypatch.setenv("TVM_MXPLAN_CACHE_DIR", str(folder))
    # Nothing is measured, and plans are the same on any machine, unless a test asks for it.
    monkeypatch.setenv("TVM_MXPLAN_MACHINE", "default")
    for name in ("TVM_MXPLAN_CACHE_BYTES", "TVM_MXPLAN_AUTOTUNE"):
        monkeypatch.delenv(name, raising=False)
    return folder


@pytest.fixture(autouse=True)
def _no_choices_of_others(monkeypatch: pytest.MonkeyPatch) -> None:
    session = Session()
    for module in (choices_file, compile_cache):
        monkeypatch.setattr(module, "SESSION", session)


@pytest.fixture(scope="session")
def pi() -> Iterator[str]:
    """The address of a tracker that lends one server under the key ``pi``; it has a thread for oneDNN."""
    with rpc_processes.tracker() as address, rpc_processes.lent(address, OMP_NUM_THREADS="1"):
        yield address
