"""The command line of scripts/bench accuracy: the error of whole models against float64.

    scripts/bench accuracy --models resnet50 --engines ours_bf16,openvino_bf16
    scripts/bench accuracy --zoo modern --models Bert,GPT2 --exporting-python other/bin/python

The second takes networks of timm and transformers, exported as scripts/bench models exports them.
Each engine runs in its own process, as scripts/bench models runs it; float64 is `tvm_mxplan.testing.float64`,
and ONNX's reference operators in float64 for exported networks.
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
import onnx
from _shared.exact import exact_outputs

from tvm_mxplan.testing import zoo
from tvm_mxplan.testing.environment_info import environment, format_environment
from tvm_mxplan.testing.float64 import float64_outputs
from tvm_mxplan.testing.reference import max_abs_error

from ..harness.files import INPUT_SEED, Files, read_arrays, write_exported, write_model
from ..harness.schedule import Configuration, Options, measure
from ..harness.table import NOTHING
from ..harness.variants import TEN
from ..inputs import modern

ENGINES = "ours,onnxruntime,openvino,torch"
LIMIT = 1e-4
PUBLISHED = "published"


def main(arguments: Sequence[str] | None = None) -> int:
    """Print a table in Markdown; returns the exit status."""
    options = _parse(arguments)
    engines = options.engines.split(",")
    print(format_environment(environment(Path(__file__).resolve().parents[3])), file=sys.stderr)
    print(f"| model | batch | {' | '.join(f'{name} L2 | {name} max' for name in engines)} |")
    print(f"| --- | ---: | {' | '.join('---: | ---:' for _ in engines)} |")
    within = True
    for name in options.models.split(","):
        errors = errors_of(name, options, engines)
        cells = [f"{l2:.1e} | {largest:.1e}" if l2 is not None else status for l2, largest, status in errors]
        print(f"| {name} | {options.batch} | {' | '.join(cells)} |", flush=True)
        within = within and errors[0][0] is not None and errors[0][0] <= LIMIT
    return 0 if within else 1


def errors_of(
    name: str, options: argparse.Namespace, engines: Sequence[str]
) -> list[tuple[float | None, float, str]]:
    """For each engine: relative L2 (None without an answer), relative maximum, and the cells without one."""
    cpus = tuple(sorted(os.sched_getaffinity(0)))
    batch, threads = options.batch, options.threads
    with tempfile.TemporaryDirectory(prefix="bench_accuracy_") as directory:
        files, exact = _written(name, options, Path(directory))
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


def _written(name: str, options: argparse.Namespace, directory: Path) -> tuple[Files, list[np.ndarray]]:
    """A model and its inputs as files, and its exact outputs."""
    if options.zoo == PUBLISHED:
        files = Files(directory)
        model = write_model(name, options.batch, files)
        return files, list(float64_outputs(model, zoo.random_inputs(model, INPUT_SEED)))
    exports = modern.Exports(options.folder, options.exporting_python, zoo=options.zoo)
    inputs = modern.inputs(name, options.batch, options.zoo)
    files = write_exported(exports.model(name, options.batch), inputs, directory)
    return files, exact_outputs(onnx.load(files.model), inputs)


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="bench accuracy", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    zoos = (PUBLISHED, *modern.ZOOS)
    parser.add_argument("--zoo", choices=zoos, default=PUBLISHED, help=f"networks ({PUBLISHED})")
    parser.add_argument("--models", default=",".join(TEN), help="comma-separated (ten networks)")
    parser.add_argument(
        "--folder", type=Path, default=modern.default_folder(), help="of the modern zoo's exports"
    )
    parser.add_argument("--exporting-python", default=sys.executable, help="of the modern zoo's exports")
    parser.add_argument("--engines", default=ENGINES, help=f"comma-separated ({ENGINES})")
    parser.add_argument("--batch", type=int, default=1, help="images (1)")
    parser.add_argument("--threads", type=int, default=2, help="(2)")
    return parser.parse_args(arguments)
