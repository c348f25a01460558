"""The folder of cache files: private, bounded, safe to share between processes, and to kill."""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
import pickle
import signal
import subprocess
import sys
import textwrap
import threading
from pathlib import Path

import pytest

from tvm_mxplan.cache import container, safe_file, store
from tvm_mxplan.cache.container import Entry, UnusableCache
from tvm_mxplan.cache.store import Store

A, B, C = (hashlib.sha256(name).hexdigest() for name in (b"a", b"b", b"c"))


def entries(size: int = 100, byte: bytes = b"x") -> list[Entry]:
    return [Entry("constant", "0", byte * size)]


@pytest.fixture
def kept(tmp_path: Path) -> Store:
    """A store with a file for A."""
    kept = Store(tmp_path / "home" / "cache", 1 << 20)
    kept.save(A, {}, entries())
    return kept


def refused(kept: Store, fingerprint: str = A) -> str:
    with pytest.raises(UnusableCache) as error:
        kept.find(fingerprint)
    return str(error.value)


def names(kept: Store) -> list[str]:
    return sorted(path.name for path in kept.folder.iterdir())


def test_finds_what_was_saved(kept):
    assert bytes(kept.find(A).read("constant", "0")) == b"x" * 100
    assert refused(kept, B) == "no such file"
    assert kept.folder.stat().st_mode & 0o777 == 0o700
    assert kept.path_of(A).stat().st_mode & 0o777 == 0o600
    assert (kept.folder / "lock").stat().st_mode & 0o777 == 0o600
    assert names(kept) == [kept.path_of(A).name, "lock"]


def test_nothing_is_made_by_looking(tmp_path):
    empty = Store(tmp_path / "cache", 1 << 20)
    assert refused(empty) == "no such file"
    assert empty.files() == [] and empty.prune(0) == []
    assert not empty.folder.exists()


def test_another_models_file_under_this_name(kept):
    os.rename(kept.path_of(A), kept.path_of(B))
    assert refused(kept, B) == "made for another model or other settings"
    assert refused(kept, A[:16] + B[16:]) == "no such file"


def test_the_whole_fingerprint_is_compared(kept):
    assert refused(kept, A[:16] + B[16:]) == "made for another model or other settings"


def put_pickle(path: Path) -> None:
    path.write_bytes(pickle.dumps({"model": 1}))


def put_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def put_link(path: Path) -> None:
    path.rename(path.with_name("elsewhere"))
    path.symlink_to("elsewhere")


def put_fifo(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


@pytest.mark.parametrize(
    "spoil, reason",
    [
        (put_pickle, "not a cache file"),
        (put_folder, "not a plain file"),
        (put_link, "a link"),
        (put_fifo, "not a plain file"),
        (lambda path: path.write_bytes(b""), "an empty file"),
        (lambda path: path.write_bytes(path.read_bytes()[:-1]), "truncated"),
        (lambda path: path.chmod(0o666), "others may write"),
    ],
)
def test_what_is_not_ours_is_refused(kept, spoil, reason):
    spoil(kept.path_of(A))
    assert reason in refused(kept)
    if spoil is not put_folder:  # which nobody but its owner should remove
        kept.save(A, {}, entries(byte=b"y"))
        assert bytes(kept.find(A).read("constant", "0")) == b"y" * 100


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may give files away")
def test_files_and_folders_of_other_users(kept):
    os.chown(kept.path_of(A), 12345, 12345)
    assert "owned by user 12345" in refused(kept)
    os.chown(kept.folder, 12345, 12345)
    assert f"{kept.folder}: owned by user 12345" in refused(kept)
    with pytest.raises(UnusableCache, match="owned by user 12345"):
        kept.save(B, {}, entries())


def test_an_owner_other_than_the_process(kept, monkeypatch):
    real = os.fstat

    def of_another(descriptor: int) -> os.stat_result:
        fields = list(real(descriptor))
        fields[4] = os.geteuid() + 1
        return os.stat_result(fields)

    monkeypatch.setattr(safe_file.os, "fstat", of_another)
    assert "owned by user" in refused(kept)


def test_a_folder_that_others_may_write_to(kept):
    kept.folder.chmod(0o770)
    assert "others may write" in refused(kept)
    with pytest.raises(UnusableCache, match="others may write"):
        kept.save(B, {}, entries())
    assert not kept.path_of(B).exists()


@pytest.mark.parametrize("put", [lambda path: path.write_text(""), lambda path: path.symlink_to("/tmp")])
def test_a_folder_that_is_none(tmp_path, put):
    folder = tmp_path / "cache"
    put(folder)
    with pytest.raises(UnusableCache, match=r"no folder|cannot be written"):
        Store(folder, 1 << 20).save(A, {}, entries())
    assert "no folder" in refused(Store(folder, 1 << 20))


# --- writing that fails -------------------------------------------------------------------------------


@pytest.mark.parametrize("function", ["pwrite", "ftruncate", "fsync", "replace"])
@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO, errno.EROFS, errno.EDQUOT])
def test_a_write_that_fails_leaves_what_was_there(kept, monkeypatch, function, number):
    def fail(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    module = container.os if function in ("pwrite", "ftruncate") else store.os
    with monkeypatch.context() as patch:
        patch.setattr(module, function, fail)
        with pytest.raises(UnusableCache, match=os.strerror(number)):
            kept.save(A, {}, entries(byte=b"y"))
    assert bytes(kept.find(A).read("constant", "0")) == b"x" * 100
    assert names(kept) == [kept.path_of(A).name, "lock"]


def test_a_disk_that_fills_half_way(kept, monkeypatch):
    real = os.pwrite
    calls = []

    def short(descriptor: int, data: bytes, offset: int) -> int:
        calls.append(offset)
        if offset > 100_000:
            raise OSError(errno.ENOSPC, "No space left on device")
        return real(descriptor, data[:4096], offset)

    monkeypatch.setattr(container.os, "pwrite", short)
    with pytest.raises(UnusableCache, match="No space left"):
        kept.save(B, {}, entries(200_000))
    assert len(calls) > 20
    assert refused(kept, B) == "no such file"


def test_short_writes_are_continued(kept, monkeypatch):
    real = os.pwrite
    monkeypatch.setattr(container.os, "pwrite", lambda fd, data, at: real(fd, data[:1000], at))
    kept.save(B, {}, entries(200_000))
    kept.find(B).verify()


def test_a_writer_that_is_killed_leaves_no_file_and_its_rest_is_removed(kept):
    code = f"""
        import os, signal
        from pathlib import Path
        from tvm_mxplan.cache import container
        from tvm_mxplan.cache.store import Store
        real = os.pwrite
        def write_and_die(descriptor, data, offset):
            real(descriptor, data[: len(data) // 2], offset)
            os.kill(os.getpid(), signal.SIGKILL)
        container.os.pwrite = write_and_die
        entries = [container.Entry("constant", "0", bytes(50_000))]
        Store(Path({str(kept.folder)!r}), 1 << 20).save({B!r}, {{}}, entries)
    """
    ended = subprocess.run([sys.executable, "-c", textwrap.dedent(code)])
    assert ended.returncode == -signal.SIGKILL
    assert refused(kept, B) == "no such file"
    assert sum(name.startswith(".partial-") for name in names(kept)) == 1
    kept.save(C, {}, entries())
    assert names(kept) == sorted([kept.path_of(A).name, kept.path_of(C).name, "lock"])


def test_what_a_living_process_writes_stays(kept):
    with kept._partial() as (name, _):
        kept.prune(1 << 20)
        assert Path(name).exists()
    assert not Path(name).exists()


def test_a_lock_that_is_not_given_back(kept, monkeypatch):
    monkeypatch.setattr(store, "_PATIENCE", 0.1)
    with (kept.folder / "lock").open() as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with pytest.raises(UnusableCache, match="another process holds the lock"):
            kept.save(B, {}, entries())
        assert bytes(kept.find(A).read("constant", "0")) == b"x" * 100  # readers need none
    kept.save(B, {}, entries())


def test_many_writers_and_readers_at_once(kept):
    """Each reader sees one whole file; the last writer's stays."""
    failures: list[object] = []

    def work(byte: bytes) -> None:
        try:
            for _ in range(10):
                kept.save(A, {}, entries(50_000, byte))
                found = kept.find(A)
                found.verify()
                assert len(set(bytes(found.read("constant", "0")))) == 1
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(bytes([65 + n]),)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert names(kept) == [kept.path_of(A).name, "lock"]


def test_a_reader_keeps_what_it_opened(kept):
    found = kept.find(A)
    kept.save(A, {}, entries(byte=b"y"))
    kept.prune(0)
    assert bytes(found.read("constant", "0")) == b"x" * 100


# --- bounds -------------------------------------------------------------------------------------------


def test_the_least_recently_used_go_first(tmp_path):
    kept = Store(tmp_path / "cache", 1 << 20)
    for at, fingerprint in enumerate((A, B, C)):
        kept.save(fingerprint, {}, entries(1000))
        os.utime(kept.path_of(fingerprint), (at, at))
    kept.find(A)
    assert [file.path for file in kept.files()] == [kept.path_of(f) for f in (A, C, B)]
    total = sum(file.nbytes for file in kept.files())
    removed = kept.prune(total - 1)
    assert [file.path for file in removed] == [kept.path_of(B)]
    assert kept.prune(total - 1) == []
    assert len(kept.prune(0)) == 2
    assert kept.files() == []


def test_saving_makes_room_but_never_for_nothing(tmp_path):
    kept = Store(tmp_path / "cache", 3000)
    kept.save(A, {}, entries(1000))
    os.utime(kept.path_of(A), (1, 1))
    kept.save(B, {}, entries(1500))
    assert [file.path for file in kept.files()] == [kept.path_of(B)]
    with pytest.raises(UnusableCache, match="5,000 bytes are more than the cache may hold, 3,000"):
        kept.save(C, {}, entries(5000))
    assert [file.path for file in kept.files()] == [kept.path_of(B)]


def test_only_our_files_are_ever_removed(kept):
    (kept.folder / "notes.txt").write_text("mine")
    (kept.folder / "0123456789abcdeg.mxcache").write_text("mine")
    kept.path_of(B).mkdir()
    assert [file.path for file in kept.prune(0)] == [kept.path_of(A)]
    assert names(kept) == sorted(["0123456789abcdeg.mxcache", kept.path_of(B).name, "lock", "notes.txt"])
