"""The command line of scripts/bench sizes: one executable with named sizes beside one for each size.

    scripts/bench sizes --networks resnet18,text_encoder --sizes 1x224x224,3x160x192 --random 50

``named / static`` is the median over rounds of the ratio of both in the same round, in the processor's time
on one thread, where they take turns in one process. ``first`` is the first call at a size, in milliseconds,
beside loading and first calling the exported static model. ``--random`` also calls the named model at so many
random sizes, and holds every answer against onnxruntime's. Status 1 where one differs.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

import tvm_mxplan
from tvm_mxplan.execution import machine
from tvm_mxplan.execution.threads import with_threads
from tvm_mxplan.testing.environment_info import environment, format_environment
from tvm_mxplan.testing.reference import onnxruntime_outputs, worst_relative_l2

from ..harness.engines import FLOAT_TOLERANCE
from ..harness.statistics import median
from ..inputs.sizes import ENCODER, inputs_at, names_of, network_at

SIZES = {ENCODER: ("1x128", "1x17", "4x64"), "": ("1x224x224", "3x160x192", "8x96x96")}
_RANGES = {"batch": (1, 4), "tokens": (1, 160), "height": (64, 200), "width": (64, 200)}
_HEADER = ("network", "size", "static ms", "named ms", "named / static", "first", "static's", "error")


def main(arguments: Sequence[str] | None = None) -> int:
    """Print a table in Markdown; returns the exit status."""
    keep_lines = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser("bench sizes", description=__doc__, formatter_class=keep_lines)
    parser.add_argument("--networks", default=f"resnet18,mobilenet_v2,{ENCODER}")
    parser.add_argument("--sizes", help="for every network; without, some for each")
    parser.add_argument("--rounds", type=int, default=11)
    parser.add_argument("--random", type=int, default=0, help="sizes to hold against onnxruntime")
    options = parser.parse_args(arguments)
    print(format_environment(environment(Path(__file__).resolve().parents[3])), file=sys.stderr)
    print(f"| {' | '.join(_HEADER)} |")
    print(f"| --- | --- | {' | '.join('---:' for _ in _HEADER[2:])} |")
    right = True
    with with_threads(1):
        for network in options.networks.split(","):
            named = tvm_mxplan.compile(network_at(network, names_of(network)))
            chosen = options.sizes.split(",") if options.sizes else SIZES.get(network, SIZES[""])
            for size in chosen:
                cells, error = _row(network, named, [int(one) for one in size.split("x")], options.rounds)
                right = right and error <= FLOAT_TOLERANCE
                print(f"| {' | '.join([network, size, *cells])} |", flush=True)
            if options.random:
                worst = _worst(network, named, options.random)
                right = right and worst <= FLOAT_TOLERANCE
                print(f"| {network} | {options.random} random | | | | | | {worst:.1e} |", flush=True)
    return 0 if right else 1


def _row(
    network: str, named: tvm_mxplan.Executable, sizes: Sequence[int], rounds: int
) -> tuple[list[str], float]:
    """The cells behind network and size, and the error against onnxruntime."""
    model, inputs = network_at(network, sizes), inputs_at(network, sizes)
    expected = onnxruntime_outputs(model, inputs)
    with tempfile.TemporaryDirectory(prefix="bench_sizes_") as folder:
        path = Path(folder) / "static.so"
        tvm_mxplan.compile(model).export(path)
        loaded: list[tvm_mxplan.Executable] = []
        static_first = _milliseconds(lambda: _load_and_call(path, inputs, loaded))
    first = _milliseconds(lambda: named(**inputs))
    error = worst_relative_l2(named.run(inputs), expected)
    tensors = [machine.tensor_of(value) for value in inputs.values()]
    times: tuple[list[float], list[float]] = ([], [])
    for _ in range(rounds):
        for ex, own in zip((loaded[0], named), times, strict=True):
            ex(*tensors)
            own.append(_milliseconds(lambda ex=ex: ex(*tensors)))
    static, open_ = times
    ratio = median([one / other for one, other in zip(open_, static, strict=True)])
    cells = [
        f"{median(static):.2f}", f"{median(open_):.2f}", f"{ratio:.3f}",
        f"{first:.0f}", f"{static_first:.0f}", f"{error:.1e}",
    ]  # fmt: skip
    return cells, error


def _load_and_call(path: Path, inputs: dict[str, np.ndarray], loaded: list[tvm_mxplan.Executable]) -> None:
    loaded.append(tvm_mxplan.load(path))
    loaded[0](**inputs)


def _milliseconds(call: Callable[[], object]) -> float:
    start = time.process_time()
    call()
    return (time.process_time() - start) * 1e3


def _worst(network: str, named: tvm_mxplan.Executable, count: int) -> float:
    """The largest error against onnxruntime over random sizes."""
    random = np.random.default_rng(3)
    model = network_at(network, names_of(network))
    worst = 0.0
    for _ in range(count):
        sizes = [int(random.integers(low, high + 1)) for low, high in (_RANGES[n] for n in names_of(network))]
        inputs = inputs_at(network, sizes)
        worst = max(worst, worst_relative_l2(named.run(inputs), onnxruntime_outputs(model, inputs)))
    return worst
