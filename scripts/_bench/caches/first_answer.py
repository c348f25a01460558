"""The section ``first``: seconds from the start of a process to its first answer, cold and warm, and peers'.

Each way runs in processes of its own, one after the other in each round; cold ones find empty folders.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

from ..harness.process import environment_of_workers
from ..harness.statistics import median, ratio_text

_COLUMNS = ("ours", "ours-library", "onnxruntime", "onnxruntime-saved", "openvino")
_CACHED = ("ours", "onnxruntime-saved", "openvino")
"""Ways that keep something for the next process; the others are the same cold and warm."""
_TOLERANCE = 1e-3
HEADER = (
    "| model | ours cold s | ours warm s | ours, library s | onnxruntime s | saved graph cold s | warm s | "
    "openvino cold s | warm s | ours warm / best peer | ours, library / best peer |\n"
    "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |"
)


def first_answer_table(models: Sequence[str], rounds: int) -> Iterator[str]:
    yield f"\n## first answer, {rounds} rounds\n\n{HEADER}"
    for name in models:
        with tempfile.TemporaryDirectory(prefix="bench-first-") as folder:
            yield _row(name, rounds, Path(folder))


def _row(name: str, rounds: int, folder: Path) -> str:
    _prepare(name, folder)
    seconds: dict[tuple[str, str], list[float]] = {}
    for _ in range(rounds):
        for way in _COLUMNS:
            if way in _CACHED:
                _forget(name, folder)
                seconds.setdefault((way, "cold"), []).append(_answer(way, name, folder))
            kept = _kept(way, name, folder)
            seconds.setdefault((way, "warm"), []).append(_answer(way, name, folder))
            if way in _CACHED and (not kept or _kept(way, name, folder) != kept):
                raise RuntimeError(f"{name}, {way}: what the cold run kept was not there, or made again")
        _check(name, folder)
    order = [("ours", "cold"), ("ours", "warm"), ("ours-library", "warm"), ("onnxruntime", "warm")]
    order += [(way, state) for way in _CACHED[1:] for state in ("cold", "warm")]
    medians = [f"{median(seconds[key]):.2f}" for key in order]
    ratios = [_ratio(seconds, way) for way in ("ours", "ours-library")]
    return f"| {name} | {' | '.join([*medians, *ratios])} |"


def _prepare(name: str, folder: Path) -> None:
    import onnx

    import tvm_mxplan
    from tvm_mxplan.testing import zoo

    model = zoo.load(name)
    onnx.save(model, folder / f"{name}.onnx")
    np.savez(folder / f"{name}.npz", **zoo.random_inputs(model))
    tvm_mxplan.compile(folder / f"{name}.onnx").export(folder / f"{name}.so")


def _forget(name: str, folder: Path) -> None:
    """Remove what engines keep."""
    for kept in ("ours", "openvino"):
        shutil.rmtree(folder / kept, ignore_errors=True)
    for path in folder.glob(f"{name}.optimized.onnx*"):
        path.unlink()


def _kept(way: str, name: str, folder: Path) -> dict[str, int]:
    """Files that a way keeps, by inode: what is made again is another file under the same name."""
    saved = f"{name}.optimized.*"
    patterns = {"ours": "ours/*.mxcache", "openvino": "openvino/*", "onnxruntime-saved": saved}
    return {path.name: path.stat().st_ino for path in folder.glob(patterns[way])} if way in patterns else {}


def _answer(way: str, name: str, folder: Path) -> float:
    threads = str(len(os.sched_getaffinity(0)))
    settings = {
        **environment_of_workers(),
        "OMP_NUM_THREADS": threads,
        "TVM_NUM_THREADS": threads,
        "TVM_MXPLAN_CACHE_DIR": str(folder / "ours"),
    }
    command = [sys.executable, "-m", "_bench.caches.answer_once", way, name, str(folder), threads]
    start = time.perf_counter()
    with subprocess.Popen(command, env=settings, stdout=subprocess.PIPE, text=True) as process:
        line = process.stdout.readline() if process.stdout else ""
        seconds = time.perf_counter() - start
    if process.returncode or line != "answered\n":
        raise RuntimeError(f"{name}, {way}: no answer (status {process.returncode})")
    return seconds


def _check(name: str, folder: Path) -> None:
    """The last answers of a round agree."""
    expected = np.load(folder / "answer-onnxruntime.npy")
    for way in _COLUMNS:
        error = np.linalg.norm(np.load(folder / f"answer-{way}.npy") - expected) / np.linalg.norm(expected)
        if not error < _TOLERANCE:
            raise RuntimeError(f"{name}, {way}: differs from onnxruntime by {error:.1e}")


def _ratio(seconds: Mapping[tuple[str, str], Sequence[float]], way: str) -> str:
    """Of our time to that of the fastest peer in the same round: median (least to greatest)."""
    peers = zip(*(seconds[peer, "warm"] for peer in _COLUMNS[2:]), strict=True)
    return ratio_text(seconds[way, "warm"], [min(others) for others in peers])
