"""Whatever is wrong with a library or its inputs: one line that names it, and no file left behind."""

from __future__ import annotations

import importlib
import shutil
from pathlib import Path

import numpy as np
import pytest
from tvmc_helpers import listing

# --- libraries ----------------------------------------------------------------------------------------


def cut(path: Path, models: Path) -> None:
    data = (models / "small.so").read_bytes()
    path.write_bytes(data[: len(data) // 2])


def foreign(path: Path, _models: Path) -> None:
    """A library that is none of TVM's: one of numpy's."""
    shutil.copy(importlib.import_module("numpy._core._multiarray_umath").__file__, path)


BAD_LIBRARIES = {
    "truncated": (cut, "truncated"),
    "foreign": (foreign, "none of TVM's"),
    "text": (lambda path, models: path.write_text("hello world\n"), "not a shared library"),
    "model": (lambda path, models: shutil.copy(models / "small.onnx", path), "not a shared library"),
    "empty": (lambda path, models: path.write_bytes(b""), "an empty file"),
    "directory": (lambda path, models: path.mkdir(), "is a directory"),
    "missing": (lambda path, models: None, "no such file"),
}


@pytest.mark.parametrize("name", BAD_LIBRARIES)
def test_bad_library(tvmc, models, tmp_path, name):
    make, word = BAD_LIBRARIES[name]
    library = tmp_path / "m.so"
    make(library, models)
    before = listing(tmp_path)
    for command in (("run", library, "-o", tmp_path / "out.npz"), ("show", library)):
        error = tvmc(*command).error()
        assert str(library) in error
        assert word in error
        assert "expected a compiled model" in error
    assert listing(tmp_path) == before


# --- inputs -------------------------------------------------------------------------------------------

GOOD = np.ones((1, 3, 9, 9), np.float32)

BAD_INPUTS = {
    "shape": ({"image": GOOD[:, :, :8]}, ("image", "[1, 3, 9, 9]", "[1, 3, 8, 9]")),
    "rank": ({"image": GOOD[0]}, ("image", "[1, 3, 9, 9]", "[3, 9, 9]")),
    "dtype": ({"image": GOOD.astype(np.float64)}, ("image", "float32", "float64")),
    "name": ({"picture": GOOD}, ("'picture'", "image")),
    "missing": ({}, ("'image'", "missing")),
    "extra": ({"image": GOOD, "mask": GOOD}, ("'mask'", "image")),
}


@pytest.mark.parametrize("name", BAD_INPUTS)
def test_bad_input(tvmc, models, tmp_path, name):
    arrays, words = BAD_INPUTS[name]
    np.savez(tmp_path / "in.npz", **arrays)
    command = ("run", models / "small.so", "-i", tmp_path / "in.npz", "-o", tmp_path / "out.npz")
    error = tvmc(*command).error()
    assert all(word in error for word in words), error
    assert listing(tmp_path) == ["in.npz"]


@pytest.mark.slow
def test_bad_input_files(tvmc, models, tmp_path):
    path = tmp_path / "in.npz"

    def error() -> str:
        return tvmc("run", models / "small.so", "-i", path, "-o", tmp_path / "out.npz").error()

    assert "no such file" in error()
    for content in (b"", b"hello world", b"PK\x03\x04"):
        path.write_bytes(content)
        message = error()
        assert str(path) in message
        assert "not an .npz file" in message
    np.savez(path, image=GOOD)
    path.write_bytes(path.read_bytes()[:-40])
    assert "truncated" in error()
    np.savez(path, image=np.array([object()]))
    assert "plain arrays" in error()
    assert listing(tmp_path) == ["in.npz"]


def test_shapes_of_unknown_inputs_at_run_time(tvmc, models):
    error = tvmc("run", models / "batch.so", "--input-shapes", "picture:[1,3,9,9]").error()
    assert "'picture'" in error
    assert "image" in error
    assert "image" in tvmc("run", models / "batch.so", "--input-shapes", "image:[1,4,9,9]").error()
