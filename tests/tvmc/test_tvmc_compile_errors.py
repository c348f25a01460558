"""Whatever is wrong with a command, a model or a destination: one line names it, and no file stays."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import onnx
import pytest
from tvmc_helpers import listing, small_model

from tvm_mxplan.report import inspection

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


@pytest.mark.slow
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
        (("--target", "dnnl, foo"), ("'foo'", "dnnl, onednn, mkldnn, cudnn, host, llvm, cuda")),
        (("--target", "cuda"), ("target cuda", "no library for it is named")),
        (("--target", "llvm, llvm"), ("'llvm, llvm'", "expected one")),
        (("--target", ""), ("empty target", "'dnnl, llvm'")),
        (("--target", "dnnl, llvm -mcpu=pentium9"), ("'pentium9'", "-mcpu=")),
        (("--target", "llvm -colour=blue"), ("'colour'", "mcpu")),
        (("--input-shapes", "picture:[1,3,9,9]"), ("'picture'", "image")),
        (("--input-shapes", "image:[1,3]"), ("'image'", "4 dimensions")),
        (("--bounds", "N=1:4"), ("small.onnx", "no open dimension 'N'", "none, all are numbers")),
        (("--bounds", "N=1:4", "--bounds", "N=2:4"), ("'N'", "two bounds")),
        (("--states", "a=b", "--states", "a=c"), ("input 'a'", "two results")),
        (("--layouts", "diagonal"), ("'diagonal'", "channels_last", "blocked")),
        (("--opt", "colour=blue"), ("'colour'", "layouts")),
        (("--opt", "tune_seconds=soon"), ("tune_seconds='soon'", "number")),
        (("--layouts", "plain", "--desired-layout", "NHWC"), ("plain", "channels_last")),
        (("--precision", "int8"), ("precision='int8'", "not there yet", "f32, bf16, f16 or auto")),
        (("--precision", "half"), ("precision='half'", "f32, bf16, f16 or auto")),
        (("--precision", "bf16", "--opt", "precision=f32"), ("f32", "bf16", "choose one")),
        (("-f", "tar"), (".so",)),
        (("--device-properties", "none.json"), ("none.json: no such file", "properties of a GPU")),
        (("--target", "llvm", "--tuning-records", "none"), ("none: no such file",)),
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
        (("run", "m.so", "--input-shapes", "a:[x]"), ("'a'", "positive", "[x]")),
        (("compile", "m.onnx", "--bounds", "n=4"), ("--bounds", "batch=1:32", "'n=4'")),
        (("compile", "m.onnx", "--states", "past"), ("--states", "past=present", "'past'")),
        (("compile", "m.onnx", "--states", ","), ("--states", "got nothing")),
        (("compile", "m.onnx", "--capacity", "0"), ("--capacity", "'0'")),
        (("compile", "m.onnx", "--bounds", "n=4:1"), ("the smaller number first", "'n=4:1'")),
        (("tune", "m.onnx", "-o", "r", "--bounds", ","), ("--bounds", "got nothing")),
        (("compile", "m.onnx", "--opt", "blocked"), ("NAME=VALUE", "blocked")),
        (("tune", "m.onnx"), ("-o",)),
        (("tune", "m.onnx", "-o", "r", "--hostname", "host", "--port", "rpc"), ("--port", "from 1 on")),
        (("tune", "m.onnx", "-o", "r", "--tuner", "xgb"), ("leave it out",)),
        (("tune", "m.onnx", "-o", "r", "--trials", "0"), ("--trials", "from 1 on")),
        (("compile", "m.onnx", "--pass-config", "x=1"), ("--opt",)),
        (("compile", "m.onnx", "--cross-compiler", "gcc"), ("--cross-compiler", "CXX")),
        (("compile", "m.onnx", "-O3"), ("no levels",)),
        (("run", "m.so", "--fill-mode", "noise"), ("'noise'", "random", "zeros", "ones")),
        (("run", "m.so", "--device", "cuda"), ("'cuda'", "cpu")),
        (("run", "m.so", "--seed", "-1"), ("--seed", "from 0 on", "'-1'")),
        (("run", "m.so", "--repeat", "0"), ("--repeat", "from 1 on")),
        (("run", "m.so", "--profile"), ("not in this build yet",)),
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


@pytest.mark.slow
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


@pytest.mark.slow
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
