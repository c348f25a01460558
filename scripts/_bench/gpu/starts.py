"""A fresh process up to its first answer: ``python -m _bench.gpu.starts LIBRARY INPUTS``.

The process loads an exported library, answers the inputs of an .npz file once and prints when
that was, by the clock that all processes of a machine share.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from tvm_mxplan.execution.executable import Executable

    from .cases import Case

_SCRIPTS = Path(__file__).resolve().parents[2]
LIMIT = 120.0
"""Seconds after which a process is given up."""
_ANSWERED = "answered at "


def first_answer_s(executable: Executable, case: Case) -> float:
    """Seconds from the start of a process to its first answer.

    Raises
    ------
    RuntimeError : the process gave no answer; with its last words.
    subprocess.TimeoutExpired : none within `LIMIT` seconds.
    """
    library, inputs = case.folder / "ours.so", case.folder / "inputs.npz"
    executable.export(library)
    np.savez(inputs, *case.feeds())
    paths = [str(_SCRIPTS), *filter(None, [os.environ.get("PYTHONPATH")])]
    command = [sys.executable, "-m", __name__, str(library), str(inputs)]
    settings = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    start = time.monotonic()
    ended = subprocess.run(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=settings, timeout=LIMIT
    )
    lines = ended.stdout.split("\n")
    told = [line.removeprefix(_ANSWERED) for line in lines if line.startswith(_ANSWERED)]
    if not told:
        words = next(filter(None, reversed(lines)), "no words")
        raise RuntimeError(f"a process ended with status {ended.returncode} without an answer: {words}")
    return float(told[0]) - start


def main() -> None:
    from tvm_mxplan import load

    library, inputs = sys.argv[1:]
    executable = load(library)
    with np.load(inputs) as arrays:
        executable.run([arrays[name] for name in arrays.files])
    print(f"{_ANSWERED}{time.monotonic()}", flush=True)


if __name__ == "__main__":
    main()
