"""No test reads or writes the user's own cache folder, or knows what another one loaded."""

from __future__ import annotations

import itertools
import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import rpc_processes

from tvm_mxplan.byoc import registry
from tvm_mxplan.cache import choices_file, compile_cache
from tvm_mxplan.cache.session import Session


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests that need a GPU say why they do not run."""
    marked = [item for item in items if item.get_closest_marker("gpu")]
    reasons = [registry.engine(name).absent() for name in registry.names_beside("cuda")] if marked else []
    for reason in filter(None, reasons):
        for item in marked:
            item.add_marker(pytest.mark.skip(reason=reason))


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Slow tests start while there is time for them."""
    until = float(os.environ.get("SLOW_TESTS_UNTIL") or "inf")
    if time.time() > until and item.get_closest_marker("slow"):
        pytest.skip("slow, and the time for slow tests is over (SLOW_TESTS_UNTIL); scripts/test runs it")


@pytest.fixture(scope="session", autouse=True)
def _apart_from_the_user(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """For fixtures of modules and sessions; plans are the same on any machine unless a test measures one.

    Calls keep their threads, so that counts of what was made do not depend on what else runs.
    """
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("TVM_MXPLAN_CACHE_DIR", str(tmp_path_factory.mktemp("caches") / "shared"))
        environment.setenv("TVM_MXPLAN_MACHINE", "default")
        environment.setenv("TVM_MXPLAN_FEWER_THREADS", "0")
        yield


@pytest.fixture(scope="session")
def _folders_of_caches(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Names in one folder: what tmp_path_factory numbers it looks for among all that were made before."""
    root = tmp_path_factory.mktemp("caches")
    return (root / str(number) / "cache" for number in itertools.count())


@pytest.fixture(autouse=True)
def cache_folder(_folders_of_caches: Iterator[Path], monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder for the cache; nothing is there yet."""
    folder = next(_folders_of_caches)
    folder.parent.mkdir()
    monkeypatch.setenv("TVM_MXPLAN_CACHE_DIR", str(folder))
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
