"""Files and folders of the cache that cannot be used: a reason in the report, and right answers."""

from __future__ import annotations

import errno
import os
import pickle
from pathlib import Path

import onnx
import pytest
import tvm
from compile_outcomes import changed, check, compiled, one_bit, outcome
from tvm import relax

import tvm_mxplan
from tvm_mxplan.cache import compile_cache, container
from tvm_mxplan.cache.container import Container


def cache_file(folder: Path) -> Path:
    (path,) = folder.glob("*.mxcache")
    return path


def regions_of(data: bytes) -> dict[str, int]:
    """A byte of each part of a cache file."""
    entries = Container(data).entries
    header_end = max(data[: entries[0].offset].rfind(b"}"), 0)
    places = {"magic": 3, "version": 9, "header length": 12, "digest": 20, "header": 60}
    assert header_end + 1 < entries[0].offset
    places["padding"] = header_end + 1
    for entry in entries:
        for kind in ("json", "bytes", "program", "constant", "region", "weights"):
            if entry.kind == kind and entry.length:
                places[kind] = entry.offset + entry.length // 2
    return places


@pytest.mark.slow
@pytest.mark.parametrize("weights, packed", [({"region", "weights"}, True), ({"program", "constant"}, False)])
def test_every_part_that_is_damaged(tiny, cache_folder, weights, packed):
    """Refused with a reason, made again with the right answer, and read the next time."""
    assert outcome(tiny, packed_weights=packed) == "miss"
    good = cache_file(cache_folder).read_bytes()
    places = regions_of(good)
    assert set(places) >= {"magic", "digest", "header", "padding", "json", "bytes"} | weights
    reasons = {}
    for part, at in places.items():
        data = bytearray(good)
        data[at] ^= 0x10
        cache_file(cache_folder).write_bytes(data)
        ex = compiled(tiny, packed_weights=packed)
        assert ex.report.cache.outcome == "miss", part
        reasons[part] = ex.report.cache.reason
        assert cache_file(cache_folder).read_bytes() != bytes(data)
    check(ex, tiny)
    assert outcome(tiny) == "hit"
    assert all(reasons.values()), reasons
    assert all("digest" in reasons[part] for part in weights) and "version" in reasons["version"]


@pytest.mark.parametrize("share", [0.0, 0.001, 0.2, 0.9, 0.9999])
def test_truncated(tiny, cache_folder, share):
    compiled(tiny)
    path = cache_file(cache_folder)
    path.write_bytes(path.read_bytes()[: int(share * path.stat().st_size)])
    ex = compiled(tiny)
    assert ex.report.cache.reason
    check(ex, tiny)
    assert outcome(tiny) == "hit"


@pytest.mark.slow
def test_what_else_lies_under_this_name(tiny, cache_folder):
    compiled(tiny)
    path = cache_file(cache_folder)
    other = path.with_name("other")
    compiled(tiny, layouts="plain")
    next(file for file in cache_folder.glob("*.mxcache") if file != path).rename(other)
    reasons = []
    for put in (
        lambda: path.write_bytes(pickle.dumps([1])),
        lambda: (path.unlink(), path.symlink_to(other)),
        lambda: (path.unlink(), other.rename(path)),
    ):
        put()
        ex = compiled(tiny)
        reasons.append(ex.report.cache.reason)
        assert outcome(tiny) == "hit"
    check(ex, tiny)
    assert reasons == [
        "not a cache file of tvm_mxplan",
        "a link, not a plain file",
        "made for another model or other settings",
    ]
    path.unlink()
    path.mkdir()
    ex = compiled(tiny)
    assert "not a plain file; not stored: cannot be written" in ex.report.cache.reason
    check(ex, tiny)


def test_content_that_this_build_does_not_understand(tiny, cache_folder, monkeypatch):
    """Digests and fingerprint hold, as they would if a change forgot to count the schema up."""
    strange = [container.Entry("json", "artifact", b'{"tree": 3}')]
    with monkeypatch.context() as patch:
        patch.setattr(compile_cache, "entries_of", lambda *_: strange)
        compiled(tiny)
    ex = compiled(tiny)
    assert "its content cannot be used" in ex.report.cache.reason
    check(ex, tiny)
    assert outcome(tiny) == "hit"


@pytest.mark.parametrize("function", ["pwrite", "fsync"])
def test_a_full_disk(tiny, cache_folder, monkeypatch, function):
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(container.os, function, full)
        ex = compiled(tiny)
    assert ex.report.cache.reason == "no such file; not stored: cannot be written (No space left on device)"
    assert list(cache_folder.glob("*.mxcache")) == list(cache_folder.glob(".partial*")) == []
    check(ex, tiny)


def test_a_folder_that_is_only_read(tiny, cache_folder, monkeypatch):
    compiled(tiny)

    def read_only(*_: object, **__: object) -> None:
        raise OSError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr("tempfile.mkstemp", read_only)
    monkeypatch.setattr(os, "utime", read_only)
    assert outcome(tiny) == "hit"
    ex = compiled(tiny, layouts="plain")
    assert "not stored: cannot be written (Read-only file system)" in ex.report.cache.reason
    check(ex, tiny)


@pytest.mark.parametrize("folder", ["/proc/cache", "/dev/null"])
def test_folders_that_cannot_be(tiny, monkeypatch, tmp_path, folder):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TVM_MXPLAN_CACHE_DIR", folder)
    ex = compiled(tiny)
    assert ex.report.cache.outcome in ("miss", "bypassed") and ex.report.cache.reason
    check(ex, tiny)
    assert list(tmp_path.iterdir()) == []


def test_the_default_folder_is_in_the_users_cache_home(tmp_path, monkeypatch):
    monkeypatch.delenv("TVM_MXPLAN_CACHE_DIR")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert compile_cache.default_store().folder == tmp_path / "xdg" / "tvm_mxplan"
    monkeypatch.setenv("XDG_CACHE_HOME", "not/absolute")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert compile_cache.default_store().folder == tmp_path / ".cache" / "tvm_mxplan"


def test_the_limit_of_the_environment(tiny, monkeypatch):
    monkeypatch.setenv("TVM_MXPLAN_CACHE_BYTES", "100")
    assert "more than the cache may hold, 100" in compiled(tiny).report.cache.reason


@pytest.mark.slow
def test_bypassed_where_passes_are_watched_or_off(tiny, monkeypatch):
    from tvm_mxplan.report.inspection import RelaxDump

    compiled(tiny)
    with tvm.transform.PassContext(instruments=[dump := RelaxDump()]):
        assert outcome(tiny) == "bypassed"
    assert "mxplan_onednn" in dump.text
    monkeypatch.setenv("TVM_MXPLAN_DISABLE", "1")
    report = tvm_mxplan.compile(tiny, options={"cache": "on_compile"}).report
    assert report.regions == ()
    assert report.cache.reason == "TVM_MXPLAN_DISABLE is set"


def test_a_model_file_that_changes_while_it_is_compiled(tiny, tmp_path, monkeypatch):
    path = tmp_path / "model.onnx"
    onnx.save(tiny, path)
    real = relax.build

    def build_and_touch(*args: object, **kwargs: object) -> object:
        onnx.save(changed(tiny, one_bit), path)
        return real(*args, **kwargs)

    with monkeypatch.context() as patch:
        patch.setattr(relax, "build", build_and_touch)
        report = compiled(path).report
    assert "not stored: the model's file changed while it was compiled" in report.cache.reason
    assert outcome(tiny) == "miss"


def test_errors_are_the_same_with_a_cache(tmp_path):
    (tmp_path / "broken.onnx").write_bytes(b"\x0a\xff\xff")
    for model in (tmp_path / "missing.onnx", tmp_path / "broken.onnx", 3):
        messages = []
        for cache in ("on_compile", "disabled"):
            with pytest.raises(tvm_mxplan.InvalidInputError) as error:
                tvm_mxplan.compile(model, options={"cache": cache})
            messages.append(str(error.value))
        assert messages[0] == messages[1]
