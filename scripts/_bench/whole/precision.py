"""The command line of scripts/bench precision: whole networks in bf16 beside float32.

    scripts/bench precision --models resnet50,mobilenet_v2,encoder --threads 2

Each engine runs in its own process, a burst in turn, as with scripts/bench models; the encoder is one like
BERT-base, on 128 tokens. ``bf16 / f32`` is the median over rounds of the ratio of times in the same round,
and so is ``bf16 / OpenVINO``, whose default is bf16 where the processor has it. ``processor`` is the
ratio of the least seconds of all threads in a call: what a busy machine still tells. Errors are relative L2
against float64. Bytes are those of arenas, and of weights as they are exported, float32 -> bf16.
Status 1 where ours in bf16 gives no answer or one that is wrong.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from _shared.exact import exact_outputs

import tvm_mxplan
from tvm_mxplan.testing import zoo
from tvm_mxplan.testing.environment_info import environment, format_environment
from tvm_mxplan.testing.float64 import float64_outputs

from ..harness import columns
from ..harness.files import INPUT_SEED, Files, write_model
from ..harness.schedule import Configuration, EngineResult, Options, measure
from ..harness.table import NOTHING
from ..inputs import encoder

MODELS = ("resnet50", "mobilenet_v2", encoder.NAME)
OURS, OURS_BF16, PEER = "ours", "ours_bf16", "openvino_bf16"
_HEADER = (
    "model", "f32 ms", "bf16 ms", "bf16 / f32", "processor", "OpenVINO ms", "bf16 / OpenVINO", "processor",
    "error f32", "error bf16", "error OpenVINO", "arena bytes", "weight bytes",
)  # fmt: skip


def main(arguments: Sequence[str] | None = None) -> int:
    """Print a table in Markdown; returns the exit status."""
    options = _parse(arguments)
    print(format_environment(environment(Path(__file__).resolve().parents[3])), file=sys.stderr)
    print(f"| {' | '.join(_HEADER)} |")
    print(f"| --- | {' | '.join('---:' for _ in _HEADER[1:])} |")
    right = True
    for name in options.models.split(","):
        with tempfile.TemporaryDirectory(prefix="bench_precision_") as directory:
            files = Files(Path(directory))
            results = _measured(name, options, files)
            right = right and results[OURS_BF16].ok
            print(f"| {' | '.join(_row(name, results, files))} |", flush=True)
    return 0 if right else 1


def _measured(name: str, options: argparse.Namespace, files: Files) -> dict[str, EngineResult]:
    """Every engine on one model, whose exact answer is what all are held against."""
    if name == encoder.NAME:
        import onnx

        model = encoder.encoder_model(options.batch)
        shape = (options.batch, encoder.TOKENS, encoder.WIDTH)
        inputs = {"x": np.random.default_rng(INPUT_SEED).standard_normal(shape, np.float32)}
        onnx.save(model, files.model)
        np.savez(files.inputs, **inputs)
        exact = exact_outputs(model, inputs)
    else:
        model = write_model(name, options.batch, files)
        exact = float64_outputs(model, zoo.random_inputs(model, INPUT_SEED))
    np.savez(files.expected, *exact)
    cpus = tuple(sorted(os.sched_getaffinity(0)))
    return measure(
        Configuration(name, options.batch, options.threads),
        (OURS, OURS_BF16, PEER),
        files,
        cpus,
        Options(rounds=options.rounds, starts=1),
    )


def _row(name: str, results: dict[str, EngineResult], files: Files) -> list[str]:
    arenas, weights = zip(*(_bytes(files, engine) for engine in (OURS, OURS_BF16)), strict=True)
    return [
        name,
        columns.latency(results[OURS]),
        columns.latency(results[OURS_BF16]),
        columns.ratio(results, OURS_BF16, OURS),
        columns.processor(results, OURS_BF16, OURS),
        columns.latency(results[PEER]),
        columns.ratio(results, OURS_BF16, PEER),
        columns.processor(results, OURS_BF16, PEER),
        *(_error(results[engine]) for engine in (OURS, OURS_BF16, PEER)),
        " -> ".join(f"{one:,}" for one in arenas),
        " -> ".join(f"{one:,}" for one in weights),
    ]


def _bytes(files: Files, engine: str) -> tuple[int, int]:
    """Bytes of arenas and of weights in what an engine of ours has compiled; 0 where it has not."""
    if not files.artifact(engine).exists():
        return 0, 0
    report = tvm_mxplan.load(files.artifact(engine)).report
    own = sum(memory.height for memory in report.memory if not memory.stands_in)
    return own, sum(region.constant_bytes for region in report.regions)


def _error(result: EngineResult) -> str:
    return NOTHING if result.relative_l2 is None else f"{result.relative_l2:.1e}"


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="bench precision", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--models", default=",".join(MODELS), help=f"comma-separated ({','.join(MODELS)})")
    parser.add_argument("--batch", type=int, default=1, help="(1)")
    parser.add_argument("--threads", type=int, default=2, help="(2)")
    parser.add_argument("--rounds", type=int, default=10, help="(10)")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
