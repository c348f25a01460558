"""``tvmc cache``: looking after what compilations kept."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tvmc_helpers import listing


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "cache"
    monkeypatch.setenv("TVM_MXPLAN_CACHE_DIR", str(folder))
    monkeypatch.delenv("TVM_MXPLAN_CACHE_BYTES", raising=False)
    return folder


@pytest.fixture
def file(tvmc, models, tmp_path, folder) -> Path:
    """The only file of the cache."""
    outputs = []
    for number in range(2):
        arguments = ["--opt", "cache=on_compile", "--report", "-o", tmp_path / f"{number}.so"]
        result = tvmc("compile", models / "small.onnx", *arguments)
        assert result.code == 0
        outputs.append(re.search("cache: (.*)", result.out)[1])
    (file,) = folder.glob("*.mxcache")
    assert outputs == [f"miss; no such file; {file.name}", f"hit; {file.name}"]
    return file


def test_list_and_show(tvmc, file):
    out = tvmc("cache", "list").out
    assert re.search(rf"{file.name} +{file.stat().st_size:,}  used 20", out)
    assert f"1 file(s), {file.stat().st_size:,} of 4,294,967,296 bytes" in out
    for name in (file.name, file.name[:5], file):
        shown = tvmc("cache", "show", name).out
        assert f"fingerprint {file.stem}" in shown
        assert "apache-tvm" in shown and "json/artifact" in shown and "region/0" in shown


def test_an_empty_cache(tvmc, folder):
    assert "0 file(s), 0 of" in tvmc("cache", "list").out
    assert tvmc("cache", "verify").out == "0 file(s) verified\n"
    assert "0 file(s) removed" in tvmc("cache", "prune").out
    assert "0 file(s) removed" in tvmc("cache", "clear").out
    assert not folder.exists()


def test_verify(tvmc, file):
    assert tvmc("cache", "verify").out == f"{file.name}: right\n1 file(s) verified\n"
    data = bytearray(file.read_bytes())
    data[-1] ^= 1
    file.write_bytes(data)
    for arguments in ((), (file.name,), (file,)):
        error = tvmc("cache", "verify", *arguments).error()
        assert "1 of 1 file(s) damaged" in error and "does not match its digest" in error


def test_prune_and_clear(tvmc, file, folder):
    size = f"{file.stat().st_size:,}"
    assert "0 file(s) removed" in tvmc("cache", "prune").out
    assert "0 file(s) removed" in tvmc("cache", "prune", "--max-bytes", "1G").out
    assert f"1 file(s) removed, {size} bytes" in tvmc("cache", "prune", "--max-bytes", "1K").out
    assert "0 file(s) removed" in tvmc("cache", "clear").out
    assert listing(folder) == ["lock", "verified"]  # what is known of kernels stays


@pytest.mark.parametrize(
    "arguments, code, words",
    [
        (["show", "abc"], 1, ["no file", "'abc'", "tvmc cache list"]),
        (["show", "/dev/null"], 1, ["/dev/null", "not a plain file"]),
        (["verify", "./missing"], 1, ["missing", "no such file"]),
        (["prune", "--max-bytes", "-1"], 2, ["--max-bytes", "500M", "'-1'"]),
        (["prune", "--max-bytes", "1T"], 2, ["500M", "'1T'"]),
        (["sweep"], 2, ["sweep", "list"]),
        ([], 2, ["ACTION"]),
    ],
)
def test_wrong_usage(tvmc, folder, arguments, code, words):
    error = tvmc("cache", *arguments).error(code)
    assert all(word in error for word in words), error


@pytest.mark.slow
def test_a_folder_that_cannot_be_used(tvmc, monkeypatch):
    monkeypatch.setenv("TVM_MXPLAN_CACHE_DIR", "relative")
    for action in ("list", "verify", "prune", "clear"):
        assert "TVM_MXPLAN_CACHE_DIR" in tvmc("cache", action).error()
    monkeypatch.setenv("TVM_MXPLAN_CACHE_DIR", "/dev/null")
    assert "/dev/null is no folder" in tvmc("cache", "list").error()
