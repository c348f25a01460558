"""A source distribution holds all that its libraries are built of."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("byoc", "passes", "tvm_mxplan", "tests/cpp")
"""Folders with sources that are ours; ``build`` has copies of some."""


def test_every_source_of_c_plus_plus_is_in_it(tmp_path: Path) -> None:
    pytest.importorskip("setuptools")
    command = [sys.executable, "setup.py", "-q", "egg_info", "--egg-base", str(tmp_path)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    # setuptools packs the files of this list.
    held = set((tmp_path / "tvm_mxplan.egg-info" / "SOURCES.txt").read_text().splitlines())
    files = [path for folder in FOLDERS for path in (ROOT / folder).rglob("*.*")]
    sources = {path.relative_to(ROOT).as_posix() for path in files if path.suffix in (".cc", ".h")}
    assert {"byoc/cudnn/native/planner.cc", "byoc/cudnn/native/operation_graph.h"} < sources
    assert sorted(sources - held) == []
