"""The command line of scripts/bench calls: what a call costs by itself, beside onnxruntime's.

    scripts/bench calls --rounds 15

Networks so small that the way into and out of them counts, on one thread, in microseconds of the processor's
time. The ways take turns in one process, a burst each; ``ratio`` is the median over rounds of ours /
onnxruntime's.

run        from a numpy array to a new numpy array: ``ex.run(x)``, ``session.run(None, {"x": x})``
bound      arrays that stay: ``ex.bind(x, out=[y])()``, ``session.run_with_iobinding(binding)``
tensors    from TVM's tensor to a new one: ``ex(tensor)``, and the virtual machine's function alone

Status 1 where an answer is not onnxruntime's.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import tvm_mxplan
from tvm_mxplan.execution import machine
from tvm_mxplan.execution.threads import with_threads
from tvm_mxplan.testing.environment_info import environment, format_environment
from tvm_mxplan.testing.mlp import mlp
from tvm_mxplan.testing.reference import worst_relative_l2

from ..harness.engines import FLOAT_TOLERANCE
from ..harness.statistics import median

WIDTHS = ("8-16-4", "64-128-128-64-10", "784-512-256-10")
_HEADER = (
    "network", "batch", "run", "onnxruntime", "ratio", "bound", "onnxruntime", "ratio", "tensors", "function",
)  # fmt: skip
_MICRO = 1e6


def main(arguments: Sequence[str] | None = None) -> int:
    """Print a table in Markdown; returns the exit status."""
    parser = argparse.ArgumentParser(
        "bench calls", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--widths", default=",".join(WIDTHS), help="networks, each as its layers' widths")
    parser.add_argument("--batches", default="1,8")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--calls", type=int, default=1000, help="in a burst")
    options = parser.parse_args(arguments)
    print(format_environment(environment(Path(__file__).resolve().parents[3])), file=sys.stderr)
    print(f"| {' | '.join(_HEADER)} |")
    print(f"| --- | {' | '.join('---:' for _ in _HEADER[1:])} |")
    right = True
    for widths in options.widths.split(","):
        for batch in map(int, options.batches.split(",")):
            with with_threads(1):
                ways, agree = _ways([int(width) for width in widths.split("-")], batch)
                times = _times(ways, options.rounds, options.calls)
            right = right and agree
            print(f"| {' | '.join([widths, str(batch), *_cells(times)])} |", flush=True)
    return 0 if right else 1


def _ways(widths: Sequence[int], batch: int) -> tuple[dict[str, Callable[[], Any]], bool]:
    """Calls by name, and whether ours gives onnxruntime's answers."""
    import onnxruntime

    model = mlp(widths, batch)
    x = np.random.default_rng(1).standard_normal((batch, widths[0]), np.float32)
    ex = tvm_mxplan.compile(model)
    settings = onnxruntime.SessionOptions()
    settings.intra_op_num_threads = settings.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), settings, providers=["CPUExecutionProvider"]
    )
    expected = session.run(None, {"x": x})
    y = np.empty_like(expected[0])
    bound = ex.bind(x, out=[y])
    bound()
    agree = max(worst_relative_l2(answer, expected) for answer in ([y], ex.run(x))) <= FLOAT_TOLERANCE
    binding, values = session.io_binding(), [onnxruntime.OrtValue.ortvalue_from_numpy(v) for v in (x, y)]
    binding.bind_ortvalue_input("x", values[0])
    binding.bind_ortvalue_output("y", values[1])
    tensor, function = machine.tensor_of(x), machine.virtual_machine(ex.module.mod)["main"]
    ways = {
        "run": lambda: ex.run(x),
        "their run": lambda: session.run(None, {"x": x}),
        "bound": bound,
        "their bound": lambda: session.run_with_iobinding(binding),
        "tensors": lambda: ex(tensor),
        "function": lambda: function(tensor),
    }
    return ways, agree


def _times(ways: Mapping[str, Callable[[], Any]], rounds: int, calls: int) -> dict[str, list[float]]:
    """Microseconds of a call by way and round."""
    times: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(rounds):
        for name, call in ways.items():
            call()
            start = time.process_time()
            for _ in range(calls):
                call()
            times[name].append((time.process_time() - start) / calls * _MICRO)
    return times


def _cells(times: Mapping[str, Sequence[float]]) -> list[str]:
    cells = []
    for way in ("run", "bound"):
        ours, theirs = times[way], times[f"their {way}"]
        ratio = median([one / other for one, other in zip(ours, theirs, strict=True)])
        cells += [f"{median(ours):.2f}", f"{median(theirs):.2f}", f"{ratio:.2f}"]
    return [*cells, f"{median(times['tensors']):.2f}", f"{median(times['function']):.2f}"]
