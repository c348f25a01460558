"""Files that are used where their facts agree, and what the cache says of itself."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from pathlib import Path
from types import SimpleNamespace

import pytest

from tvm_mxplan.cache import choices_file, kept_file
from tvm_mxplan.cache.container import Entry, UnusableCache
from tvm_mxplan.cache.kept_file import check_facts, write_file
from tvm_mxplan.cache.outcome import CacheReport
from tvm_mxplan.cache.safe_file import open_container
from tvm_mxplan.errors import InvalidInputError, UnsupportedError

FACTS = {"type": "mkldnn", "machine": {"model": "17", "flags": "a"}, "schema": 5}


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({}, None),
        ({"schema": 6}, "made for schema 6, here it is 5"),
        ({"machine": {"model": "18", "flags": "a"}}, "made for model '18', here it is '17'"),
        ({"machine": {"model": "17"}}, "it does not say for which flags it was made, here it is 'a'"),
        ({"machine": "none"}, "made for machine 'none', here it is"),
        ({"more": 1}, "made for more 1, here it is None"),
    ],
)
def test_facts_have_to_agree(changed: dict[str, object], words: str | None) -> None:
    found = {**FACTS, **changed}
    if words is None:
        check_facts(found, FACTS)
        return
    with pytest.raises(UnusableCache) as error:
        check_facts(found, FACTS)
    assert words in str(error.value)


def test_a_fact_that_is_missing_is_told_by_name() -> None:
    with pytest.raises(UnusableCache, match="for which schema it was made, here it is 5"):
        check_facts({name: fact for name, fact in FACTS.items() if name != "schema"}, FACTS)


def test_a_file_is_its_owners_alone_and_whole(tmp_path: Path) -> None:
    path = tmp_path / "kept"
    old = os.umask(0)
    try:
        write_file(path, "0" * 64, FACTS, [Entry("json", "choices", b"[]"), Entry("text", "a", b"bytes")])
    finally:
        os.umask(old)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [one.name for one in tmp_path.iterdir()] == ["kept"], "nothing is left beside it"
    container = open_container(path)
    container.verify()
    assert dict(container.facts) == FACTS
    assert bytes(container.read("text", "a")) == b"bytes"
    write_file(path, "1" * 64, FACTS, [])
    with pytest.raises(UnusableCache):
        open_container(path).read("text", "a")


@pytest.mark.parametrize("fails", [False, True])
def test_files_are_closed_behind_what_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fails: bool
) -> None:
    """Also where the disk is full."""

    def fail(*_: object) -> None:
        raise OSError(errno.ENOSPC, "no space left")

    if fails:
        monkeypatch.setattr(kept_file, "write", fail)
    opened = len(os.listdir("/proc/self/fd"))
    with pytest.raises(InvalidInputError, match="no space") if fails else contextlib.nullcontext():
        write_file(tmp_path / "kept", "0" * 64, FACTS, [])
    assert len(os.listdir("/proc/self/fd")) == opened
    assert [one.name for one in tmp_path.iterdir()] == ([] if fails else ["kept"])


@pytest.mark.parametrize(
    ("report", "words"),
    [
        (CacheReport(), "cache: off"),
        (CacheReport("hit", file="f"), "cache: hit; f"),
        (CacheReport("miss", "no file"), "cache: miss; no file"),
        (CacheReport("miss", "why", "f"), "cache: miss; why; f"),
    ],
)
def test_what_the_cache_says_of_itself(report: CacheReport, words: str) -> None:
    assert str(report) == words


@pytest.mark.parametrize("name", ["save", "load"])
def test_execution_plans_have_files_of_their_own(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str
) -> None:
    """A library's place for plans of devices; one that keeps none says so."""
    asked: list[object] = []
    engine = SimpleNamespace(keeps_plans=True)
    monkeypatch.setattr(choices_file.registry, "engine", lambda library: asked.append(library) or engine)
    monkeypatch.setattr(choices_file, f"{name}_plans", lambda file, one: asked.append((file, one)) or 7)
    act = getattr(choices_file, f"{name}_cache")
    assert act(tmp_path / "plans", "cudnn") == 7
    assert asked == ["cudnn", (tmp_path / "plans", engine)]
    engine.keeps_plans = False
    with pytest.raises(
        UnsupportedError, match="cache type cudnn: this build keeps nothing of cudnn in files"
    ):
        act(tmp_path / "plans", "cudnn")
