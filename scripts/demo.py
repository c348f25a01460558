"""The main job in a minute: ONNX in, oneDNN regions out, checked against onnxruntime, timed side by side."""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import onnxruntime

import tvm_mxplan
from tvm_mxplan.testing import zoo
from tvm_mxplan.testing.environment_info import environment
from tvm_mxplan.testing.reference import relative_l2

TOLERANCE = 1e-4
ROUNDS, CALLS, PAUSE = 5, 10, 1.0


def main() -> None:
    """Run the demonstration; exits with an error where the numbers differ."""
    for name, value in environment().items():
        print(f"{name:14} {value}")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "resnet50.onnx"
        model = zoo.load("resnet50")
        onnx.save(model, path)
        start = time.perf_counter()
        executable = tvm_mxplan.compile(path)
        print(f"\ncompiled in {time.perf_counter() - start:.1f} s\n\n{executable.report}\n")
        library = Path(folder) / "resnet50.so"
        executable.export(library)
        loaded = tvm_mxplan.load(library)
        session = onnxruntime.InferenceSession(model.SerializeToString())
        (name, x), *_ = zoo.random_inputs(model).items()
        check(loaded(x)[0].numpy(), session.run(None, {name: x})[0])
        engines = {"tvm_mxplan": lambda: loaded(x), "onnxruntime": lambda: session.run(None, {name: x})}
        print(latency_table(engines))


def check(actual: np.ndarray, expected: np.ndarray) -> None:
    """Compare with onnxruntime; SystemExit names the error where it is too large."""
    error = relative_l2(actual, expected)
    print(f"relative error against onnxruntime {error:.1e}, allowed {TOLERANCE:.0e}")
    if not error <= TOLERANCE:
        raise SystemExit("demo: the numbers differ from onnxruntime's")


def latency_table(engines: dict[str, Callable[[], object]]) -> str:
    """Median latencies of engines that take turns; a first look only, see scripts/bench models.

    A turn begins with a pause and a call that is not timed: an engine's threads wait for more work, on the
    processors that the next one wants, for some time after its last call.
    """
    times: dict[str, list[float]] = {name: [] for name in engines}
    for _ in range(ROUNDS):
        for name, call in engines.items():
            time.sleep(PAUSE)
            call()
            for _ in range(CALLS):
                start = time.perf_counter()
                call()
                times[name].append(1e3 * (time.perf_counter() - start))
    lines = [f"{'engine':14} {'median ms':>10} {'min ms':>10}"]
    lines += [f"{name:14} {statistics.median(t):10.2f} {min(t):10.2f}" for name, t in times.items()]
    return "\n".join(lines)


if __name__ == "__main__":
    main()
