"""The files of each room of the runtime compile as one, which the programs around it rest on."""

from __future__ import annotations

import os
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from sanitized import flags, joined


def test_rooms_compile_as_one_file(tmp_path: Path) -> None:
    if shutil.which("g++") is None:
        pytest.skip("no compiler")
    rooms = [room for room in joined(tmp_path, with_onednn=True) if room.read_text().count("#include") > 1]
    assert len(rooms) > 10

    def errors(room: Path) -> str:
        command = ["g++", *flags(with_onednn=True), "-fsyntax-only", str(room)]
        return subprocess.run(command, capture_output=True, text=True).stderr

    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        found = list(pool.map(errors, rooms))
    assert not any(found), "\n".join(found)
