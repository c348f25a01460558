"""A large file is hashed once, and again when anything about it changed."""

from __future__ import annotations

import os
import time

import pytest

from tvm_mxplan.cache import known_files
from tvm_mxplan.cache.known_files import digests_of, state_of
from tvm_mxplan.cache.store import Store
from tvm_mxplan.core.fingerprint import content_digests


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path / "store", 1 << 30)


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "model.onnx"
    path.write_bytes(os.urandom(17 << 20))
    return path


@pytest.fixture
def hashed(monkeypatch):
    """How often weights were hashed."""
    calls: list[int] = []
    monkeypatch.setattr(
        known_files, "content_digests", lambda weights: calls.append(1) or content_digests(weights)
    )
    return calls


def ask(store, path):
    data = path.read_bytes()
    weights = [data[:100], data[100:]]
    found = digests_of(store, path, state_of(path), weights)
    assert found == tuple(content_digests(weights))


def settle(monkeypatch):
    now = time.time_ns()
    monkeypatch.setattr(known_files.time, "time_ns", lambda: now + 10**10)


def test_a_file_that_stays_is_hashed_once(store, file, hashed, monkeypatch):
    settle(monkeypatch)
    ask(store, file)
    ask(store, file)
    assert len(hashed) == 1


def test_a_file_that_has_just_changed_is_not_kept(store, file, hashed):
    ask(store, file)
    ask(store, file)
    assert len(hashed) == 2
    assert not store.files()


def test_another_content_of_the_same_size(store, file, hashed, monkeypatch):
    settle(monkeypatch)
    ask(store, file)
    before = file.stat()
    data = bytearray(file.read_bytes())
    data[1 << 20] ^= 1
    file.write_bytes(data)
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))  # as copying programs do
    ask(store, file)
    assert len(hashed) == 2


def test_a_file_that_changes_while_it_is_hashed(store, file, monkeypatch):
    settle(monkeypatch)
    before = state_of(file)
    data = file.read_bytes()
    file.write_bytes(b"")
    assert digests_of(store, file, before, [data]) == tuple(content_digests([data]))
    assert not store.files()


def test_damage_costs_the_hashing_alone(store, file, hashed, monkeypatch):
    settle(monkeypatch)
    ask(store, file)
    (kept,) = store.files()
    content = bytearray(kept.path.read_bytes())
    content[-1] ^= 1
    kept.path.write_bytes(content)
    ask(store, file)
    assert len(hashed) == 2
    ask(store, file)
    assert len(hashed) == 2


def test_no_folder_to_keep_it_in(file, hashed, tmp_path, monkeypatch):
    settle(monkeypatch)
    (tmp_path / "plain").write_text("no folder")
    ask(Store(tmp_path / "plain", 1 << 30), file)
    assert len(hashed) == 1


def test_small_files_are_not_kept(store, tmp_path, hashed, monkeypatch):
    settle(monkeypatch)
    path = tmp_path / "small.onnx"
    path.write_bytes(os.urandom(1000))
    ask(store, path)
    assert not store.files() and len(hashed) == 1
