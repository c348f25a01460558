"""Plans of a library in the cache's folder, around one compilation; the library is played."""

from __future__ import annotations

import stat
from pathlib import Path
from typing import Any

import pytest

from tvm_mxplan.cache.plans_file import PlansOnDisk, load_plans, save_plans
from tvm_mxplan.cache.safe_file import open_container
from tvm_mxplan.cache.store import Store
from tvm_mxplan.errors import InvalidInputError


class Library:
    """Keeps plans, which are bytes by name."""

    name = "played"

    def __init__(self, version: str = "1") -> None:
        self.plans: dict[str, bytes] = {}
        self.version = version

    def kept_plans(self) -> dict[str, bytes]:
        return dict(self.plans)

    def add_plans(self, plans: dict[str, bytes]) -> None:
        self.plans.update(plans)

    def plan_title(self, plan: bytes) -> str:
        return plan.decode()

    def plan_versions(self) -> dict[str, str]:
        return {"played": self.version}


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """A folder below one that is not there yet either."""
    return Store(tmp_path / "caches" / "of all", 1 << 20)


def compiled(store: Store, *made: str, version: str = "1") -> tuple[Any, Library]:
    """The report on a compilation in a new process, which asked for the plans ``made``; and the library."""
    library = Library(version)
    disk = PlansOnDisk(library, store)  # type: ignore[arg-type]
    library.plans.update({name * 64: name.encode() for name in made})
    disk.keep()
    return disk.report, library


def test_plans_that_were_made_are_there_for_another_process(store: Store) -> None:
    report, _ = compiled(store, "a", "b")
    assert (report.outcome, report.reason, report.file) == ("miss", "2 plan(s) made", "played_plans.bin")
    assert stat.S_IMODE(store.folder.stat().st_mode) == 0o700
    report, library = compiled(store, "a")
    assert (report.outcome, report.reason, report.file) == ("hit", "", "played_plans.bin")
    assert library.plans == {"a" * 64: b"a", "b" * 64: b"b"}


def test_files_are_written_for_new_plans_alone(store: Store) -> None:
    compiled(store, "a")
    path = store.folder / "played_plans.bin"
    before = path.stat()
    compiled(store, "a")
    assert path.stat() == before
    report, _ = compiled(store, "a", "c")
    assert report.reason == "1 plan(s) made"
    _, library = compiled(store)
    assert sorted(library.plans) == ["a" * 64, "c" * 64]


def test_plans_of_another_version_are_made_again(store: Store) -> None:
    compiled(store, "a")
    with pytest.warns(RuntimeWarning, match="all plans are made again: made for played '1', here it is '2'"):
        report, library = compiled(store, "b", version="2")
    assert (report.outcome, list(library.plans)) == ("miss", ["b" * 64])


def test_plans_of_another_library_are_not_taken(store: Store) -> None:
    compiled(store, "a")
    other = Library()
    other.name = "other"
    with pytest.warns(RuntimeWarning, match="not used, all plans are made again"):
        assert load_plans(store.folder / "played_plans.bin", other) == 0  # type: ignore[arg-type]
    assert other.plans == {}


def test_files_are_told_apart_by_their_plans(store: Store, tmp_path: Path) -> None:
    seen = set()
    for made in ("a", "b", "a"):
        library = Library()
        library.plans[made * 64] = made.encode()
        assert save_plans(tmp_path / "plans.bin", library) == 1  # type: ignore[arg-type]
        seen.add(open_container(tmp_path / "plans.bin").fingerprint)
    assert len(seen) == 2


def test_damaged_plans_are_made_again(store: Store) -> None:
    plan = "a plan of many bytes"
    compiled(store, plan)
    path = store.folder / "played_plans.bin"
    data = path.read_bytes()
    assert data.endswith(plan.encode())
    path.write_bytes(data.removesuffix(plan.encode()) + plan.upper().encode())
    with pytest.warns(RuntimeWarning, match="all plans are made again"):
        _, library = compiled(store)
    assert library.plans == {}


def test_a_file_that_cannot_be_written_is_a_warning(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise InvalidInputError("no place")

    monkeypatch.setattr("tvm_mxplan.cache.plans_file.write_file", fail)
    with pytest.warns(RuntimeWarning, match="no cache was saved: no place"):
        report, _ = compiled(store, "a")
    assert (report.outcome, report.reason, report.file) == ("miss", "1 plan(s) made", "")
