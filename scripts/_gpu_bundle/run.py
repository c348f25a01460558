"""Runs what a GPU machine is there for, in the order of importance, and writes results as it goes.

    scripts/gpu_bundle run RESULTS [--minutes 9] [--only NAME ...] [--without NAME ...]

Each step is a process with a limit, whose output goes to RESULTS/NAME.log while it runs; RESULTS/summary.txt
gets a line when it ends.  The same command goes on with steps that have not ended, so that a machine that is
there for some minutes at a time is used up.  A step that ran out of time begins anew.  The status is 1 where
a step failed.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
_LEAST = 20.0
"""Seconds with which no step is begun any more."""
MINUTES = 9.0
_WORKERS = 12
"""Of tests: plans are compiled by one core each."""
_FEW_THREADS = {"OPENBLAS_NUM_THREADS": "2", "OMP_NUM_THREADS": "2"}
"""Of each worker: right answers are products of matrices on the CPU."""


@dataclass(frozen=True)
class Step:
    """A command, with the Python of ``.venv``, and the seconds that it may take."""

    name: str
    arguments: tuple[str, ...]
    seconds: int
    settings: Mapping[str, str] = field(default_factory=dict)
    """Environment variables of the process; {results} in them is the folder."""


def _bench(
    name: str, seconds: int, models: str, kinds: str, batch: str, *arguments: str, **settings: str
) -> Step:
    """Begins no case in the last third: the one that has begun ends, mostly."""
    cases = ("--models", models, "--kinds", kinds, "--batch", batch, *arguments)
    return Step(name, ("-m", "_bench", "gpu", *cases, "--seconds", str(seconds * 2 // 3)), seconds, settings)


_COMPILED = ("--engines", "ours,torch_graph,torch", "--prepare-seconds", "360")
_KERNELS = {"TRITON_CACHE_DIR": "{results}/triton"}


_TESTS = ("-m", "pytest", "-q", "-m", "gpu", "-p", "no:cacheprovider", "-rfE")
STEPS = (
    Step("device", ("-m", "tvm_mxplan.tvmc", "device-properties", "-o", "{results}/gpu.json"), 20),
    Step("network", (*_TESTS, "tests/byoc/cudnn/gpu/test_cudnn_on_gpu.py"), 50),
    Step(
        "patterns",
        (*_TESTS, "{workers}", "tests/byoc/cudnn/gpu/test_cudnn_patterns_on_gpu.py"),
        150,
        _FEW_THREADS,
    ),
    _bench("resnet50_f16", 60, "resnet50", "f16", "1,8,64", "--engines", "ours,torch_graph", "--kernels"),
    _bench("mobilenet_f16", 60, "mobilenet_v2", "f16", "1,64", "--engines", "ours,torch_graph", "--kernels"),
    _bench("resnet50_tf32", 50, "resnet50", "tf32", "1,8", "--engines", "ours,torch_graph"),
    _bench("resnet50_tvm", 90, "resnet50", "f16", "1", "--engines", "ours,tvm", "--starts"),
    _bench("vgg19_f16", 40, "vgg19", "f16", "1,8", "--engines", "ours,torch_graph"),
    *(
        _bench(f"resnet50_compiled_{batch}", 420, "resnet50", "f16", batch, *_COMPILED, **_KERNELS)
        for batch in ("64", "1", "8")
    ),
)
"""The most important first: what the GPU is, right answers, then times, all of which fit into `MINUTES`; then
torch.compile, which takes minutes for a network at a batch (its kernels are kept for the next try)."""


def run(results: Path, steps: Sequence[Step], seconds: float) -> bool:
    """Runs steps that have not ended until the time is over; whether all that ended succeeded."""
    results.mkdir(parents=True, exist_ok=True)
    ended = _ended(results)
    limit = time.monotonic() + seconds
    for step in steps:
        left = limit - time.monotonic()
        if step.name in ended:
            continue
        if left < _LEAST:
            _note(results, f"{step.name}: not begun, {left:.0f} s are left")
            break
        start = time.monotonic()
        status = _call(step, results, min(left, step.seconds))
        took = f"{time.monotonic() - start:.0f} s"
        if status is None and left < step.seconds:
            _note(results, f"{step.name}: cut off after {took}, begins anew")
            break
        ended[step.name] = -1 if status is None else status
        (results / "ended.json").write_text(json.dumps(ended))
        _note(results, f"{step.name}: {'took longer than' if status is None else f'status {status},'} {took}")
    return all(status == 0 for status in ended.values())


def _call(step: Step, results: Path, seconds: float) -> int | None:
    """The status of a step's process, None where its time was over; what it began ends with it."""
    words = {"results": str(results.resolve()), "workers": _workers()}
    arguments = [word.format(**words) for word in step.arguments]
    settings = {name: value.format(**words) for name, value in step.settings.items()}
    command = [sys.executable, *filter(None, arguments)]
    with (results / f"{step.name}.log").open("wb") as log:
        process = subprocess.Popen(
            command,
            cwd=ROOT,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            env={**os.environ, **settings},
        )
        try:
            return process.wait(seconds)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            return None


def _workers() -> str:
    """pytest's option for several processes, '' without the plug-in."""
    try:
        import xdist  # noqa: F401
    except ImportError:
        return ""
    return f"-n{_WORKERS}"


def _ended(results: Path) -> dict[str, int]:
    try:
        found: dict[str, int] = json.loads((results / "ended.json").read_text())
        return found
    except (OSError, ValueError):
        return {}


def _note(results: Path, line: str) -> None:
    with (results / "summary.txt").open("a") as file:
        file.write(line + "\n")
    print(line, flush=True)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    names = [step.name for step in STEPS]
    parser.add_argument("results", type=Path, help="a folder, made where it is not there")
    parser.add_argument("--minutes", type=float, default=MINUTES, help="for all steps of this command (9)")
    parser.add_argument("--only", nargs="+", choices=names, default=names, help="these steps")
    parser.add_argument("--without", nargs="+", choices=names, default=[], help="all but these")


def main(given: argparse.Namespace) -> int:
    """The exit status."""
    wanted = [step for step in STEPS if step.name in given.only and step.name not in given.without]
    return 0 if run(given.results, wanted, 60 * given.minutes) else 1
