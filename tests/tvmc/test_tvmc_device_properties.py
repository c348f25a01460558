"""``tvmc device-properties``, and compiling with what it writes; the GPU is played by a stand-in."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tvm_mxplan.byoc.cudnn import library
from tvm_mxplan.errors import UnsupportedError

DEVICE = Path(__file__).resolve().parents[1] / "byoc" / "cudnn" / "devices" / "h200.json"


def test_the_file_is_what_compiling_takes(tvmc, tmp_path, monkeypatch):
    properties = json.loads(DEVICE.read_text())
    monkeypatch.setattr(library, "device_properties", lambda number=0: properties)
    path = tmp_path / "gpu.json"
    result = tvmc("device-properties", "-o", path)
    assert (result.code, result.err) == (0, "")
    assert json.loads(path.read_text()) == properties


def test_without_a_gpu_nothing_is_written(tvmc, tmp_path, monkeypatch):
    def refused(number: int = 0) -> None:
        raise UnsupportedError("GPU 0 cannot be asked (no driver)")

    monkeypatch.setattr(library, "device_properties", refused)
    assert "no driver" in tvmc("device-properties", "-o", tmp_path / "gpu.json").error()
    assert list(tmp_path.iterdir()) == []


def test_the_flag_names_the_file(tvmc, tmp_path, models, monkeypatch):
    monkeypatch.setattr(library, "why_not", lambda: "")
    result = tvmc(
        "compile", models / "small.onnx", "--target", "cudnn, cuda", "--device-properties",
        tmp_path / "none.json", "-o", tmp_path / "x.so",
    )  # fmt: skip
    assert "none.json: no such file" in result.error()


@pytest.mark.gpu
def test_the_gpu_that_is_here_is_known(tvmc, tmp_path):
    path = tmp_path / "gpu.json"
    assert tvmc("device-properties", "-o", path).code == 0
    assert library.device()["sm"] * 10 == json.loads(path.read_text())["deviceVer"]
