"""Fresh processes up to their first answer: ``python -m _bench.gpu.starts JOB``.

cold     compiles, with engines by times, in a folder without plans or times of engines
warm     compiles likewise in the folder that the cold one left
library  loads what was exported, with plans inside

A process answers the inputs of an .npz file once and prints when that was, by the clock that all processes of
a machine share.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from tvm_mxplan.execution.executable import Executable

    from .cases import Case

WAYS = ("cold", "warm", "library")
_SCRIPTS = Path(__file__).resolve().parents[2]
LIMIT = 120.0
"""Seconds after which a process is given up."""
_ANSWERED = "answered at "


def first_answers_s(executable: Executable, case: Case, target: str = "cudnn, cuda") -> dict[str, float]:
    """Seconds from the start of a process to its first answer, by `WAYS`.

    ``executable`` is what is exported; the others compile the case's model.

    Raises
    ------
    RuntimeError : a process gave no answer; with its last words.
    subprocess.TimeoutExpired : none within `LIMIT` seconds.
    """
    import onnx

    library, model, inputs = (case.folder / name for name in ("ours.so", "model.onnx", "inputs.npz"))
    executable.export(library)
    onnx.save(case.model(), str(model))
    np.savez(inputs, *case.feeds())
    compiling: dict[str, Any] = {
        "model": str(model),
        "target": target,
        "options": {"cache": "on_compile", "tune": "measure"},
    }
    if "cudnn" in target:
        compiling["device_properties"] = str(case.device)
        compiling["options"] |= {"tf32": case.tf32, "cuda_graphs": True}
    jobs = {"cold": compiling, "warm": compiling, "library": {"library": str(library)}}
    settings = {"TVM_MXPLAN_CACHE_DIR": str((case.folder / "kept").resolve())}
    return {way: _answered_s({**jobs[way], "inputs": str(inputs)}, settings) for way in WAYS}


def _answered_s(job: Mapping[str, Any], settings: Mapping[str, str]) -> float:
    paths = [str(_SCRIPTS), *filter(None, [os.environ.get("PYTHONPATH")])]
    command = [sys.executable, "-m", __name__, json.dumps(job)]
    environment = {**os.environ, **settings, "PYTHONPATH": os.pathsep.join(paths)}
    start = time.monotonic()
    ended = subprocess.run(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment, timeout=LIMIT
    )
    lines = ended.stdout.split("\n")
    told = [line.removeprefix(_ANSWERED) for line in lines if line.startswith(_ANSWERED)]
    if not told:
        words = next(filter(None, reversed(lines)), "no words")
        raise RuntimeError(f"a process ended with status {ended.returncode} without an answer: {words}")
    return float(told[0]) - start


def main() -> None:
    import tvm_mxplan

    job = json.loads(sys.argv[1])
    inputs = job.pop("inputs")
    if "library" in job:
        executable = tvm_mxplan.load(job["library"])
    else:
        executable = tvm_mxplan.compile(job.pop("model"), job.pop("target"), **job)
    with np.load(inputs) as arrays:
        executable.run([arrays[name] for name in arrays.files])
    print(f"{_ANSWERED}{time.monotonic()}", flush=True)


if __name__ == "__main__":
    main()
