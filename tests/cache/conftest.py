"""A cache folder of its own for every test."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def cache_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "cache"
    monkeypatch.setenv("TVM_MXPLAN_CACHE_DIR", str(folder))
    monkeypatch.delenv("TVM_MXPLAN_CACHE_BYTES", raising=False)
    return folder
