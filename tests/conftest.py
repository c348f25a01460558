"""No test reads or writes the user's own cache folder."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def _no_cache_of_the_user(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TVM_MXPLAN_CACHE_DIR", str(tmp_path_factory.mktemp("caches")))
    monkeypatch.delenv("TVM_MXPLAN_AUTOTUNE", raising=False)
