"""A large model's file is read and hashed once, and again when anything about it changed."""

from __future__ import annotations

import os
import time

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

import tvm_mxplan
from tvm_mxplan.cache.key import known_files, model_source
from tvm_mxplan.cache.key.known_files import KnownFile, KnownModel, state_of
from tvm_mxplan.cache.store import Store
from tvm_mxplan.core.fingerprint import content_digests


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path / "store", 1 << 30)


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "model.onnx"
    path.write_bytes(os.urandom(5 << 20))
    return path


def ask(store, path, shapes=None) -> bool:
    """Whether a file had to be read; what it holds is its digest, and that of its halves."""
    known = KnownFile(store, path, state_of(path), shapes)
    data = path.read_bytes()
    halves = content_digests([data[:100], data[100:]])
    expected = KnownModel(content_digests([data])[0].hex(), tuple(halves))
    found = known.find()
    if found is None:
        known.keep(expected)
        return True
    assert found == expected
    return False


def settle(monkeypatch):
    now = time.time_ns()
    monkeypatch.setattr(known_files.time, "time_ns", lambda: now + 10**10)


def test_a_file_that_stays_is_read_once(store, file, monkeypatch):
    settle(monkeypatch)
    assert [ask(store, file) for _ in range(3)] == [True, False, False]


@pytest.mark.parametrize("which", ["modified", "changed"])
def test_a_file_that_was_just_touched_may_change_again_unseen(store, file, monkeypatch, which):
    """Each of its two times counts: that of its content can be set, that of its entry cannot."""
    old = time.time_ns() - 10**12
    if which == "modified":
        settle(monkeypatch)
        ahead = known_files.time.time_ns()
        os.utime(file, ns=(ahead, ahead))
    else:
        os.utime(file, ns=(old, old))
    assert [ask(store, file) for _ in range(2)] == [True, True]


@pytest.mark.parametrize(("beyond", "read"), [(0, [True, True]), (1, [True, False])])
def test_a_clock_may_have_ticks_of_two_seconds(store, file, monkeypatch, beyond, read):
    """A file that changed exactly that long ago may change again in the same tick."""
    state = state_of(file)
    monkeypatch.setattr(known_files.time, "time_ns", lambda: max(state[-2:]) + 2 * 10**9 + beyond)
    assert [ask(store, file) for _ in range(2)] == read


def test_other_shapes_are_another_model(store, file, monkeypatch):
    settle(monkeypatch)
    asked = [None, {"x": [1, 3]}, {"x": (1, 3)}, {"x": [2, 3]}, {}]
    assert [ask(store, file, shapes) for shapes in asked] == [True, True, False, True, False]


def test_another_version_of_the_plug_in_reads_for_itself(store, file, monkeypatch):
    settle(monkeypatch)
    assert ask(store, file)
    monkeypatch.setattr(known_files, "shared_surroundings", lambda: {"versions": {"plugin": "another"}})
    assert ask(store, file)


def test_a_file_that_has_just_changed_is_not_kept(store, file):
    assert ask(store, file) and ask(store, file)
    assert not store.files()


def test_another_content_of_the_same_size(store, file, monkeypatch):
    settle(monkeypatch)
    assert ask(store, file)
    before = file.stat()
    data = bytearray(file.read_bytes())
    data[1 << 20] ^= 1
    file.write_bytes(data)
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))  # as copying programs do
    assert ask(store, file)


def test_a_file_that_changes_while_it_is_read(store, file, monkeypatch):
    settle(monkeypatch)
    known = KnownFile(store, file, state_of(file), None)
    file.write_bytes(b"")
    known.keep(KnownModel("0" * 64, ()))
    assert not store.files()


def test_damage_costs_the_reading_alone(store, file, monkeypatch):
    settle(monkeypatch)
    assert ask(store, file)
    (kept,) = store.files()
    content = bytearray(kept.path.read_bytes())
    content[-1] ^= 1
    kept.path.write_bytes(content)
    assert [ask(store, file) for _ in range(2)] == [True, False]


def test_no_folder_to_keep_it_in(file, tmp_path, monkeypatch):
    settle(monkeypatch)
    (tmp_path / "plain").write_text("no folder")
    store = Store(tmp_path / "plain", 1 << 30)
    assert ask(store, file) and ask(store, file)


def test_small_files_are_not_kept(store, tmp_path, monkeypatch):
    settle(monkeypatch)
    path = tmp_path / "small.onnx"
    path.write_bytes(os.urandom(1000))
    assert ask(store, path) and not store.files()
    monkeypatch.setattr(store, "find", None)
    assert KnownFile(store, path, state_of(path), None).find() is None, "nothing is looked for"


def large_model() -> onnx.ModelProto:
    weights = np.random.default_rng(0).standard_normal((1024, 1280), np.float32) / 32
    ends = [helper.make_tensor_value_info(*end) for end in (("x", 1, (1, 1024)), ("y", 1, (1, 1280)))]
    node = helper.make_node("MatMul", ["x", "w"], ["y"])
    graph = helper.make_graph([node], "large", ends[:1], ends[1:], [numpy_helper.from_array(weights, "w")])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


@pytest.mark.parametrize("packed", [True, False])
def test_a_compilation_from_the_cache_reads_a_known_model_for_plain_weights_alone(
    cache_folder, tmp_path, monkeypatch, packed
):
    settle(monkeypatch)
    path = tmp_path / "large.onnx"
    onnx.save(large_model(), path)
    reads: list[int] = []
    real = model_source.split_file
    monkeypatch.setattr(model_source, "split_file", lambda file: reads.append(1) or real(file))
    options = {"cache": "on_compile", "packed_weights": packed}
    exs = [tvm_mxplan.compile(path, options=options) for _ in range(2)]
    assert [ex.report.cache.outcome for ex in exs] == ["miss", "hit"]
    assert all(ex.report.regions for ex in exs)
    assert len(reads) == (1 if packed else 2)
    x = np.random.default_rng(1).standard_normal((1, 1024), np.float32)
    first, second = (ex(x)[0].numpy() for ex in exs)
    assert (first == second).all()


@pytest.mark.parametrize(("size", "reads"), [(4 << 20, [True, False]), ((4 << 20) - 1, [True, True])])
def test_files_from_four_mebibytes_on_are_kept(store, tmp_path, monkeypatch, size, reads):
    settle(monkeypatch)
    path = tmp_path / "edge.onnx"
    path.write_bytes(os.urandom(size))
    assert [ask(store, path) for _ in range(2)] == reads


def test_a_file_goes_by_where_it_really_is(store, file, tmp_path, monkeypatch):
    """A link is the file itself; a second entry for the same bytes is not."""
    settle(monkeypatch)
    (tmp_path / "link.onnx").symlink_to(file)
    os.link(file, tmp_path / "other.onnx")
    assert [ask(store, tmp_path / name) for name in ("model.onnx", "link.onnx", "other.onnx")] == [
        True,
        False,
        True,
    ]


@pytest.mark.parametrize(
    ("text", "digests"),
    [(b"0" * 63, b""), (b"0" * 65, b""), (b"X" * 64, b""), (b"\xff" * 64, b""), (b"0" * 64, b"1" * 33)],
)
def test_what_was_kept_wrongly_is_not_used(store, file, monkeypatch, text, digests):
    settle(monkeypatch)
    known = KnownFile(store, file, state_of(file), None)
    entries = [
        known_files.Entry("text", "fingerprint", text),
        known_files.Entry("digests", "weights", digests),
    ]
    store.save(known._key, known._facts, entries)
    assert known.find() is None


def test_a_file_that_is_missing_is_not_known(store, tmp_path):
    assert state_of(tmp_path / "missing.onnx") == ()
    known = KnownFile(store, tmp_path / "missing.onnx", (), None)
    known.keep(KnownModel("0" * 64, ()))
    assert known.find() is None and not store.files()
