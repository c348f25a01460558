"""A cache folder of its own for every test, and small models."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest

from tvm_mxplan.testing import zoo


@pytest.fixture(autouse=True)
def cache_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "cache"
    monkeypatch.setenv("TVM_MXPLAN_CACHE_DIR", str(folder))
    monkeypatch.delenv("TVM_MXPLAN_AUTOTUNE", raising=False)
    return folder


@pytest.fixture(scope="session")
def tiny() -> onnx.ModelProto:
    return zoo.load("tiny")
