"""Whatever is wrong with a library or its inputs: one line that names it, and no file left behind."""

from __future__ import annotations

import importlib
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
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
    "text": ({"image": np.array(["a"])}, ("image", "float32", "<U1")),
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


def test_made_up_indices_that_are_out_of_bounds(tvmc, tmp_path):
    node = helper.make_node("Gather", ["table", "ids"], ["rows"])
    types = (("ids", TensorProto.INT64, (40,)), ("rows", TensorProto.FLOAT, (40, 3)))
    ids, rows = (helper.make_tensor_value_info(*one) for one in types)
    table = numpy_helper.from_array(np.ones((2, 3), np.float32), "table")
    graph = helper.make_graph([node], "gather", [ids], [rows], [table])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), tmp_path / "m.onnx")
    assert tvmc("compile", tmp_path / "m.onnx", "-o", tmp_path / "m.so").code == 0
    error = tvmc("run", tmp_path / "m.so").error()
    assert "out of bounds" in error
    assert "give some with -i, or --fill-mode zeros" in error
    assert tvmc("run", tmp_path / "m.so", "--fill-mode", "zeros").code == 0
    np.savez(tmp_path / "in.npz", ids=np.full(40, 2))
    assert "--fill-mode" not in tvmc("run", tmp_path / "m.so", "-i", tmp_path / "in.npz").error()


# --- streams and interrupts ----------------------------------------------------------------------------

TVMC = (sys.executable, "-m", "tvm_mxplan.tvmc")
INTERRUPTED = """
import importlib.abc, sys

class Interrupts(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name == "tvm_mxplan.tvmc.compile":
            raise KeyboardInterrupt

from tvm_mxplan.tvmc.main import main
sys.meta_path.insert(0, Interrupts())
sys.exit(main(["show", "nowhere.so"]))
"""


@pytest.mark.parametrize("closed", [">&-", "2>&-", ">&- 2>&-", "<&- >&- 2>&-"])
def test_closed_streams(models, tmp_path, closed):
    """The command does its work, and files that it writes do not get what it prints."""
    library, outputs = models / "small.so", tmp_path / "out.npz"
    for words, code in ((f"run {library} -o {outputs}", 0), (f"show {tmp_path}/none.so", 1)):
        command = f"{' '.join(TVMC)} {words} {closed}"
        done = subprocess.run(["sh", "-c", command], capture_output=True, text=True)
        assert done.returncode == code, done.stderr
        assert "Traceback" not in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["out.npz"]


def test_an_interrupt_while_verbs_are_imported_is_one_line():
    done = subprocess.run([sys.executable, "-c", INTERRUPTED], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "tvmc: error: interrupted\n")
