"""The command line of scripts/bench accuracy: the error of whole models against float64.

Each engine runs in its own process, as scripts/bench models runs it; float64 is `tvm_mxplan.testing.float64`.
L2 is |answer - exact| / |exact|, max the largest difference over the largest exact value, both over all
outputs. Status 1 where ours is beyond the limit.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from tvm_mxplan.testing import zoo
from tvm_mxplan.testing.environment_info import environment, format_environment
from tvm_mxplan.testing.float64 import float64_outputs
from tvm_mxplan.testing.reference import max_abs_error

from ..harness.files import INPUT_SEED, Files, read_arrays, write_model
from ..harness.schedule import Configuration, Options, measure
from ..harness.table import NOTHING
from ..harness.variants import TEN

ENGINES = "ours,onnxruntime,openvino,torch"
LIMIT = 1e-4


def main(arguments: Sequence[str] | None = None) -> int:
    """Print a table in Markdown; returns the exit status."""
    options = _parse(arguments)
    engines = options.engines.split(",")
    print(format_environment(environment(Path(__file__).resolve().parents[3])), file=sys.stderr)
    print(f"| model | batch | {' | '.join(f'{name} L2 | {name} max' for name in engines)} |")
    print(f"| --- | ---: | {' | '.join('---: | ---:' for _ in engines)} |")
    within = True
    for name in options.models.split(","):
        errors = errors_of(name, options.batch, options.threads, engines)
        cells = [f"{l2:.1e} | {largest:.1e}" if l2 is not None else status for l2, largest, status in errors]
        print(f"| {name} | {options.batch} | {' | '.join(cells)} |", flush=True)
        within = within and errors[0][0] is not None and errors[0][0] <= LIMIT
    return 0 if within else 1


def errors_of(
    name: str, batch: int, threads: int, engines: Sequence[str]
) -> list[tuple[float | None, float, str]]:
    """For each engine: relative L2 (None without an answer), relative maximum, and the cells without one."""
    cpus = tuple(sorted(os.sched_getaffinity(0)))
    with tempfile.TemporaryDirectory(prefix="bench_accuracy_") as directory:
        files = Files(Path(directory))
        model = write_model(name, batch, files)
        exact = float64_outputs(model, zoo.random_inputs(model, INPUT_SEED))
        np.savez(files.expected, *exact)
        results = measure(
            Configuration(name, batch, threads), engines, files, cpus, Options(rounds=0, starts=1)
        )
        rows: list[tuple[float | None, float, str]] = []
        for engine, result in results.items():
            if result.relative_l2 is None:
                rows.append((None, 0.0, f"{result.status} | {NOTHING}"))
                continue
            answers = read_arrays(files.answer(engine))
            largest = max(max_abs_error(a, e) / abs(e).max() for a, e in zip(answers, exact, strict=True))
            rows.append((result.relative_l2, largest, result.status))
    return rows


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="bench accuracy", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--models", default=",".join(TEN), help="comma-separated (ten networks)")
    parser.add_argument("--engines", default=ENGINES, help=f"comma-separated ({ENGINES})")
    parser.add_argument("--batch", type=int, default=1, help="images (1)")
    parser.add_argument("--threads", type=int, default=2, help="(2)")
    return parser.parse_args(arguments)
