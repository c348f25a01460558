"""The file of verified kernels: what is damaged counts as if it were not there."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tvm_mxplan.core.decisions.verification import Refusal
from tvm_mxplan.verify.remembered import Known, VerifiedFile

MACHINE = {"CPU": "one", "threads": 2}
REFUSAL = Refusal(
    "conv2d_3", "convolution 1x3x4x5 acdb -> 1x7x4x5 acdb", "convolution ...", "brg:any", "3 differ"
)


@pytest.fixture
def file(tmp_path: Path) -> VerifiedFile:
    file = VerifiedFile(tmp_path / "kernels.jsonl", MACHINE)
    assert file.load() == Known()
    assert file.add(["a", "b"], {"c": REFUSAL}) == ""
    assert file.add(["d"], {}) == ""
    return file


def test_what_was_written_is_read(file: VerifiedFile) -> None:
    assert file.load() == Known(frozenset("abd"), {"c": REFUSAL})
    assert file.path.stat().st_mode & 0o777 == 0o600
    assert file.add([], {}) == ""
    assert len(file.path.read_text().splitlines()) == 4


def test_the_later_line_holds(file: VerifiedFile) -> None:
    file.add(["c"], {"a": REFUSAL})
    assert file.load() == Known(frozenset("bcd"), {"a": REFUSAL})


@pytest.mark.parametrize("place", range(0, 700, 23))
def test_a_flipped_byte_is_a_miss(file: VerifiedFile, place: int) -> None:
    data = bytearray(file.path.read_bytes())
    place = place % len(data)
    data[place] ^= 0x04
    file.path.write_bytes(data)
    known = file.load()
    assert known != Known(frozenset("abd"), {"c": REFUSAL})
    assert known.agreed <= set("abd")  # never one that was not there
    assert known.note


def test_a_line_that_was_cut_is_left_out_and_the_next_one_is_whole(file: VerifiedFile) -> None:
    file.path.write_bytes(file.path.read_bytes()[:-7])
    assert file.load().agreed == frozenset("ab")
    assert file.add(["e"], {}) == ""
    assert file.load().agreed == frozenset("abe")


def test_a_line_made_up_without_its_check(file: VerifiedFile) -> None:
    with file.path.open("a") as lines:
        for text in ({"agreed": ["x"], "check": "0" * 16}, {"agreed": ["x"]}, ["x"], "x", None, {"check": 1}):
            lines.write(json.dumps(text) + "\n")
        lines.write('{"agreed": ' + "[" * 5000 + "\n\n")
    known = file.load()
    assert known.agreed == frozenset("abd")
    assert "8 damaged line(s) left out" in known.note


def test_a_file_of_another_machine_is_replaced(file: VerifiedFile) -> None:
    other = VerifiedFile(file.path, {**MACHINE, "threads": 1})
    assert other.load().agreed == frozenset()
    assert "not used" in other.load().note
    assert other.add(["z"], {}) == ""
    assert other.load() == Known(frozenset("z"))


def test_what_others_could_have_written(file: VerifiedFile, tmp_path: Path) -> None:
    file.path.chmod(0o666)
    assert file.load().agreed == frozenset() and "others may write to it" in file.load().note
    link = VerifiedFile(tmp_path / "link.jsonl", MACHINE)
    file.path.chmod(0o600)
    link.path.symlink_to(file.path)
    assert link.load().agreed == frozenset() and "not used" in link.load().note
    assert "not kept" in link.add(["e"], {})
    folder = VerifiedFile(tmp_path, MACHINE)
    assert folder.load().agreed == frozenset() and folder.load().note
    missing = VerifiedFile(tmp_path / "no" / "folder.jsonl", MACHINE)
    assert "not kept" in missing.add(["e"], {})


def test_two_processes_at_once(tmp_path: Path) -> None:
    code = (
        "import sys\nfrom pathlib import Path\nfrom tvm_mxplan.verify.remembered import VerifiedFile\n"
        "file = VerifiedFile(Path(sys.argv[1]), {'CPU': 'one'})\n"
        "for at in range(60):\n    assert file.add([f'{sys.argv[2]}{at}'], {}) == ''\n"
    )
    path = tmp_path / "kernels.jsonl"
    processes = [
        subprocess.Popen([sys.executable, "-c", code, str(path), name], env=os.environ) for name in "pq"
    ]
    assert [process.wait(600) for process in processes] == [0, 0]
    known = VerifiedFile(path, {"CPU": "one"}).load()
    assert known == Known(frozenset(f"{name}{at}" for name in "pq" for at in range(60)))
