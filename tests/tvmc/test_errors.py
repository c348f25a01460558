"""Whatever is wrong: one line that names it, a code that is not zero, and no file left behind."""

from __future__ import annotations

import importlib
import os
import shutil
from pathlib import Path

import numpy as np
import onnx
import pytest
from conftest import small_model

from tvm_mxplan import inspection

# --- models -------------------------------------------------------------------------------------------


def truncated(path: Path) -> None:
    data = small_model().SerializeToString()
    path.write_bytes(data[: len(data) * 2 // 3])


def picture(path: Path) -> None:
    path.write_bytes(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + bytes(range(64)))


def unknown_operator(path: Path) -> None:
    model = small_model()
    model.graph.node[1].op_type = "Frobnicate"
    onnx.save(model, path)


def missing_weights(path: Path) -> None:
    onnx.save(small_model(), path, save_as_external_data=True, location="weights.bin", size_threshold=0)
    path.with_name("weights.bin").unlink()


BAD_MODELS = {
    "truncated": (truncated, "truncated"),
    "picture": (picture, "not an ONNX model"),
    "text": (lambda path: path.write_text("hello world\n"), "not an ONNX model"),
    "empty": (lambda path: path.write_bytes(b""), "not an ONNX model"),
    "directory": (lambda path: path.mkdir(), "is a directory"),
    "missing": (lambda path: None, "no such file"),
    "operator": (unknown_operator, "Frobnicate"),
    "weights": (missing_weights, "weights.bin"),
}


@pytest.mark.parametrize("name", BAD_MODELS)
def test_bad_model(tvmc, tmp_path, name):
    make, word = BAD_MODELS[name]
    model = tmp_path / "model.onnx"
    make(model)
    before = listing(tmp_path)
    error = tvmc("compile", model, "-o", tmp_path / "m.so").error()
    assert str(model) in error
    assert word in error
    assert listing(tmp_path) == before


def test_every_truncation_of_a_model_is_noticed(tvmc, tmp_path):
    data = small_model().SerializeToString()
    model = tmp_path / "model.onnx"
    for size in range(1, len(data), len(data) // 17):
        model.write_bytes(data[:size])
        assert str(model) in tvmc("compile", model, "-o", tmp_path / "m.so").error()


def test_a_shape_that_does_not_fit_prints_nothing_of_tvms(tvmc, models, tmp_path):
    shapes = "image:[1,5,9,9]"
    error = tvmc("compile", models / "small.onnx", "--input-shapes", shapes, "-o", tmp_path / "m.so").error()
    assert "small.onnx" in error
    assert listing(tmp_path) == []


# --- arguments of compile -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "flags, words",
    [
        (("--target", "dnnl, foo"), ("'foo'", "dnnl, onednn, mkldnn, llvm")),
        (("--target", "cuda"), ("'cuda'", "'dnnl, llvm'")),
        (("--target", "llvm, llvm"), ("'llvm, llvm'", "expected one")),
        (("--target", ""), ("empty target", "'dnnl, llvm'")),
        (("--target", "dnnl, llvm -mcpu=pentium9"), ("'pentium9'", "-mcpu=")),
        (("--target", "llvm -colour=blue"), ("'colour'", "mcpu")),
        (("--input-shapes", "picture:[1,3,9,9]"), ("'picture'", "image")),
        (("--input-shapes", "image:[1,3]"), ("'image'", "4 dimensions")),
        (("--layouts", "diagonal"), ("'diagonal'", "channels_last", "blocked")),
        (("--opt", "colour=blue"), ("'colour'", "layouts")),
        (("--layouts", "plain", "--desired-layout", "NHWC"), ("plain", "channels_last")),
        (("-f", "tar"), (".so",)),
    ],
)
def test_bad_value(tvmc, models, tmp_path, flags, words):
    error = tvmc("compile", models / "small.onnx", *flags, "-o", tmp_path / "m.so").error()
    assert all(word in error for word in words), error
    assert listing(tmp_path) == []


@pytest.mark.parametrize(
    "args, words",
    [
        ((), ("COMMAND",)),
        (("frobnicate",), ("'frobnicate'", "compile", "run")),
        (("compile",), ("FILE",)),
        (("compile", "m.onnx", "--colour", "blue"), ("--colour",)),
        (("compile", "m.onnx", "--desired-layout", "CHWN"), ("'CHWN'", "NHWC")),
        (("compile", "m.onnx", "--model-format", "caffe"), ("'caffe'", "onnx")),
        (("compile", "m.onnx", "--dump-code", "asm"), ("'asm'", "relax, program, report")),
        (("compile", "m.onnx", "--input-shapes", "1,3,9,9"), ("name:[1,3,224,224]", "1,3,9,9")),
        (("compile", "m.onnx", "--input-shapes", "a:[1] a:[2]"), ("'a'", "two shapes")),
        (("compile", "m.onnx", "--input-shapes", "a:[0,x]"), ("'a'", "positive", "[0,x]")),
        (("compile", "m.onnx", "--opt", "blocked"), ("NAME=VALUE", "blocked")),
        (("compile", "m.onnx", "--tuning-records", "log.json"), ("tuning",)),
        (("compile", "m.onnx", "--pass-config", "x=1"), ("--opt",)),
        (("compile", "m.onnx", "--cross-compiler", "gcc"), ("--cross-compiler", "CXX")),
        (("compile", "m.onnx", "-O3"), ("no levels",)),
        (("run", "m.so", "--fill-mode", "noise"), ("'noise'", "random", "zeros", "ones")),
        (("run", "m.so", "--device", "cuda"), ("'cuda'", "cpu")),
        (("run", "m.so", "--repeat", "0"), ("--repeat", "from 1 on")),
        (("run", "m.so", "--profile"), ("not in this build yet",)),
        (("run", "m.so", "--rpc-key", "pi"), ("RPC",)),
    ],
)
def test_wrong_usage(tvmc, tmp_path, monkeypatch, args, words):
    monkeypatch.chdir(tmp_path)
    error = tvmc(*args).error(code=2)
    assert all(word in error for word in words), error
    assert listing(tmp_path) == []


# --- destinations -------------------------------------------------------------------------------------


def unwritable(folder: Path) -> Path:
    """A folder that nobody can write to; root goes past permissions, but not into /proc."""
    if os.geteuid() == 0:
        return Path("/proc")
    folder = folder / "locked"
    folder.mkdir(mode=0o555)
    return folder


def test_output_folders_that_cannot_be_written(tvmc, models, tmp_path):
    run = ("run", models / "small.so")
    for folder in (tmp_path / "nowhere", unwritable(tmp_path)):
        before = listing(folder)
        for command, name in ((("compile", models / "small.onnx"), "m.so"), (run, "out.npz")):
            error = tvmc(*command, "-o", folder / name).error()
            assert str(folder / name) in error
            assert "folder" in error
        if folder != Path("/proc"):
            assert listing(folder) == before


def test_output_suffixes_and_directories(tvmc, models, tmp_path):
    for name in ("m.tar", "m", "m.dll"):
        error = tvmc("compile", models / "small.onnx", "-o", tmp_path / name).error()
        assert str(tmp_path / name) in error
        assert ".so" in error
    error = tvmc("run", models / "small.so", "-o", tmp_path / "out.txt").error()
    assert "out.txt" in error
    assert ".npz" in error
    assert listing(tmp_path) == []
    (tmp_path / "m.so").mkdir()
    assert "is a directory" in tvmc("compile", models / "small.onnx", "-o", tmp_path / "m.so").error()
    assert listing(tmp_path) == ["m.so"]


def test_a_failing_linker_leaves_the_old_library(tvmc, models, tmp_path, monkeypatch):
    output = tmp_path / "m.so"
    output.write_text("old")
    monkeypatch.setenv("CXX", shutil.which("false") or "false")
    error = tvmc("compile", models / "small.onnx", "-o", output).error()
    assert str(output) in error
    assert "false" in error
    assert output.read_text() == "old"
    assert listing(tmp_path) == ["m.so"]


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


# --- what -v adds -------------------------------------------------------------------------------------


def test_verbose_shows_the_traceback(tvmc, tmp_path):
    for args in (("-v", "compile", tmp_path / "m.onnx"), ("compile", tmp_path / "m.onnx", "-v")):
        result = tvmc(*args)
        assert result.code == 1
        assert "Traceback" in result.err
        assert result.err.splitlines()[-1].startswith("tvmc: error: ")


def test_a_mistake_of_ours_is_one_line_too(tvmc, models, tmp_path, monkeypatch):
    def fail(_module: object) -> str:
        raise KeyError("of ours\nin two lines")

    monkeypatch.setattr(inspection, "region_programs", fail)
    error = tvmc("show", models / "small.so", "--program").error()
    assert "internal error" in error
    assert "-v" in error


def listing(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []
