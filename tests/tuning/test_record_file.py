"""A file of records that several processes write, and that kills leave damaged."""

from __future__ import annotations

import multiprocessing
import stat
from dataclasses import replace
from pathlib import Path

import pytest

from tvm_mxplan import InvalidInputError
from tvm_mxplan.tuning.record_file import RecordFile
from tvm_mxplan.tuning.records import Record, Records, UnusableRecords

MACHINE = {"CPU": "a"}
STEP = Record("step", "d1", "a step", 12.5, 8, 1000.25)


@pytest.fixture
def file(tmp_path: Path) -> RecordFile:
    return RecordFile(tmp_path / "records.jsonl", MACHINE)


def test_no_file(file):
    with pytest.raises(UnusableRecords, match="no such file"):
        file.load()


def test_appended_records_are_read(file):
    second = replace(STEP, digest="d2")
    file.append(STEP)
    file.append(second)
    records, damaged = file.load()
    assert (list(records), damaged) == ([STEP, second], 0)
    assert stat.S_IMODE(file.path.stat().st_mode) == 0o600


def test_what_a_killed_writer_left_does_not_spoil_the_next_line(file):
    file.append(STEP)
    file.append(replace(STEP, digest="d2"))
    file.path.write_bytes(file.path.read_bytes()[:-20])
    third = replace(STEP, digest="d3")
    file.append(third)
    records, damaged = file.load()
    assert (list(records), damaged) == ([STEP, third], 1)


def test_merge_keeps_what_others_added(file):
    file.append(STEP)
    better, new = replace(STEP, repeats=100), replace(STEP, digest="d2")
    merged = file.merge([better, new])
    assert list(merged) == [better, new]
    assert list(file.load()[0]) == [better, new]
    assert [path.name for path in file.path.parent.iterdir()] == [file.path.name]


def test_another_machines_file_is_replaced_by_merge(file):
    RecordFile(file.path, {"CPU": "b"}).append(STEP)
    with pytest.raises(UnusableRecords, match="CPU 'b', here it is 'a'"):
        file.load()
    file.merge([replace(STEP, digest="d2")])
    assert [record.digest for record in file.load()[0]] == ["d2"]


def test_nothing_is_lost_between_processes(file):
    context = multiprocessing.get_context("spawn")
    workers = [context.Process(target=_write, args=(str(file.path), number)) for number in range(3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    records, damaged = file.load()
    assert (len(records), damaged) == (3 * 40, 0)


def _write(path: str, worker: int) -> None:
    file = RecordFile(Path(path), MACHINE)
    for number in range(40):
        record = replace(STEP, digest=f"{worker}-{number}")
        if number % 10 == 9:
            file.merge(Records([record]))
        else:
            file.append(record)


def test_a_folder_that_is_not_there(tmp_path):
    file = RecordFile(tmp_path / "no" / "records", MACHINE)
    with pytest.raises(OSError, match="No such file"):
        file.append(STEP)
    with pytest.raises(InvalidInputError, match="cannot be written"):
        file.merge([STEP])


def test_a_link_is_not_written_through(file, tmp_path):
    (tmp_path / "target").write_text("mine")
    file.path.symlink_to(tmp_path / "target")
    with pytest.raises(OSError):
        file.append(STEP)
    assert (tmp_path / "target").read_text() == "mine"
