"""Rooms and files that are read at once: no folder of more than 16 files, no file that goes on and on."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TOPS = ("byoc", "docs", "passes", "scripts", "tests", "tvm_mxplan")
MOST_FILES = 16
MOST_LINES = {".py": 400, ".md": 400, ".cc": 500, ".h": 500}
BUILT = {".so", ".pyc"}


def files() -> list[Path]:
    """Files written by hand: nothing that a build or a run left behind."""
    found = (path for top in TOPS for path in (ROOT / top).rglob("*") if path.is_file())
    return [path for path in found if path.suffix not in BUILT and "__pycache__" not in path.parts]


def test_folders_stay_small() -> None:
    counts = Counter(path.parent.relative_to(ROOT).as_posix() for path in files())
    assert len(counts) > 100, "the folders are found"
    large = {folder: count for folder, count in counts.items() if count > MOST_FILES}
    assert not large, "give it a second level"


def test_files_stay_short() -> None:
    lines = {path: len(path.read_text().splitlines()) for path in files() if path.suffix in MOST_LINES}
    assert len(lines) > 1000, "the files are found"
    long = {
        path.relative_to(ROOT).as_posix(): count
        for path, count in lines.items()
        if count > MOST_LINES[path.suffix]
    }
    assert not long, "look for the second idea in it"
