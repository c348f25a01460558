"""Trials in processes of their own: one that ends its process, or never ends, is a row of the table."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from typing import Any


def answer_of(command: Sequence[str], seconds: float) -> dict[str, Any] | str:
    """Runs a trial; returns the JSON of its last line, or the reason why there is none."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=seconds)
    except subprocess.TimeoutExpired:
        return f"more than {seconds:g} s"
    if done.returncode:
        said = [line for line in done.stderr.splitlines() if line.strip() and "Warning" not in line]
        return said[-1][-300:] if said else f"ended by signal {-done.returncode}"
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found
