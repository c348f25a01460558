"""No test reads or writes the user's own cache folder, or knows what another one loaded."""

from __future__ import annotations

import pytest

from tvm_mxplan.cache import choices_file, compile_cache
from tvm_mxplan.cache.session import Session


@pytest.fixture(autouse=True)
def _no_cache_of_the_user(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TVM_MXPLAN_CACHE_DIR", str(tmp_path_factory.mktemp("caches")))
    monkeypatch.delenv("TVM_MXPLAN_AUTOTUNE", raising=False)


@pytest.fixture(autouse=True)
def _no_choices_of_others(monkeypatch: pytest.MonkeyPatch) -> None:
    session = Session()
    for module in (choices_file, compile_cache):
        monkeypatch.setattr(module, "SESSION", session)
