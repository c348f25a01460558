"""The command line of scripts/bench coverage: the share of time outside of regions, estimated and measured.

Each model is compiled as it is, and with some kinds of operators left to TVM, which makes shares of every
size.  What the VM calls is timed by its instrument, in processor time of one thread: other processes do not
count, and the library has a single thread (set OMP_NUM_THREADS=1).

estimated   `Report.outside`
measured    time in TVM's kernels, over that in these and in regions; medians over the calls
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import numpy as np
import onnx
import tvm
from tvm import relax

import tvm_mxplan
from tvm_mxplan.byoc.onednn import library
from tvm_mxplan.testing import zoo
from tvm_mxplan.testing.environment_info import environment, format_environment

MODELS = ("mobilenet_v2", "resnet18", "squeezenet", "shufflenet", "bvlc_alexnet", "inception_v1")
LEFT = ("", "nn.softmax", "nn.max_pool2d", "nn.relu", "nn.conv2d", "concat", "add")
TABLE = "| model | left to TVM | estimated | measured |"


@dataclass(frozen=True)
class Shares:
    """Shares of time outside of regions, 0 to 1."""

    estimated: float
    measured: float


def main(arguments: Sequence[str] | None = None) -> int:
    """Print a table in Markdown; returns the exit status."""
    options = _parse(arguments)
    if library.threads() != 1:
        print("bench coverage: OMP_NUM_THREADS=1 is needed: times are those of one thread", file=sys.stderr)
        return 2
    print(format_environment(environment(Path(__file__).resolve().parents[3])), file=sys.stderr)
    print(f"{TABLE}\n| --- | --- | ---: | ---: |")
    for name in options.models.split(","):
        for kind in options.left.split(","):
            shares = shares_of(name, kind, options.calls)
            if shares is not None:
                left = kind.rpartition(".")[2] or "nothing more"
                label = Path(name).stem
                print(f"| {label} | {left} | {shares.estimated:.2%} | {shares.measured:.2%} |", flush=True)
    return 0


def shares_of(name: str, kind: str, calls: int) -> Shares | None:
    """The shares of a model with all operators of a kind left to TVM; None where it has none of that kind."""
    model = onnx.load(name) if os.path.exists(name) else zoo.load(name)
    prefer = {kind.rpartition(".")[2]: "llvm"} if kind else {}
    executable = tvm_mxplan.compile(model, options={"prefer": prefer, "cache": "disabled"})
    report = executable.report
    if report.outside is None or (kind and f"relax.{kind}" not in {one.kind for one in report.kept}):
        return None
    inside, outside = measured_us(executable, _inputs(executable), calls)
    return Shares(report.outside, outside / (inside + outside))


def measured_us(
    executable: tvm_mxplan.Executable, inputs: Sequence[np.ndarray], calls: int
) -> tuple[float, float]:
    """Microseconds in regions, and in kernels of TVM; medians over the calls."""
    machine = relax.VirtualMachine(executable.module, tvm.cpu())
    arguments = [tvm.runtime.tensor(array) for array in inputs]
    machine["main"](*arguments)
    spent: Counter[bool] = Counter()
    start = 0.0

    def instrument(_function: object, name: str, before: bool, _result: object, *_rest: object) -> int:
        nonlocal start
        now = time.thread_time()
        if not before and not name.startswith(("vm.", "tvm_mxplan.")):
            spent[name.startswith("mxplan_")] += now - start
        start = time.thread_time()
        return 0

    machine.set_instrument(instrument)
    rows: list[Mapping[bool, float]] = []
    for _ in range(calls):
        spent.clear()
        machine["main"](*arguments)
        rows.append(dict(spent))
    return tuple(1e6 * median(row.get(region, 0.0) for row in rows) for region in (True, False))  # type: ignore[return-value]


def _inputs(executable: tvm_mxplan.Executable) -> list[np.ndarray]:
    """Images and the like at random, integers small; 4 for what has no fixed extent."""
    random, found = np.random.default_rng(0), []
    for port in executable.signature.inputs:
        shape = [dim if isinstance(dim, int) else 4 for dim in port.shape]
        whole = not port.dtype.startswith("float")
        array = random.integers(0, 2, shape) if whole else random.standard_normal(shape)
        found.append(array.astype(port.dtype))
    return found


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="bench coverage", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    models, left = ",".join(MODELS), ",".join(LEFT)
    parser.add_argument("--models", default=models, help=f"names or files, comma-separated ({models})")
    parser.add_argument("--left", default=left, help=f"kinds left to TVM, comma-separated ({left})")
    parser.add_argument("--calls", type=int, default=9, help="timed calls (9)")
    return parser.parse_args(arguments)
