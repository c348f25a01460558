"""The command line of scripts/bench gpu: whole networks on the NVIDIA GPU that is here.

    scripts/bench gpu --models resnet50,mobilenet_v2 --batch 1,8,64 --kinds f16,tf32

Ours beside torch.compile (max-autotune, with cuDNN's benchmark) and TVM's own CUDA code, a burst of calls in
turn.  Inputs stand on the GPU, and a call ends when the GPU has computed.  Errors are relative L2 against
float64.  ``compile s`` is ours from the model to a library with plans; ``first answer s`` is what a process
that loads the library takes to its first answer, imports included.

Where there is no GPU it says so, and that no figure exists without one; the status is then 3.  It is 1 where
ours gives no answer or a wrong one.
"""

from __future__ import annotations

import argparse
import itertools
import os
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from tvm_mxplan.byoc import registry
from tvm_mxplan.errors import UnsupportedError
from tvm_mxplan.testing import zoo
from tvm_mxplan.testing.environment_info import environment, format_environment
from tvm_mxplan.testing.float64 import float64_outputs

from ..harness import columns
from ..harness.files import INPUT_SEED, Files, write_model
from ..harness.gpu_engines import KINDS, device_file
from ..harness.schedule import Configuration, EngineResult, Options, measure
from ..harness.table import NOTHING

LIBRARY = "cudnn"
MODELS = ("resnet50", "mobilenet_v2", "vgg19", "densenet121")
NO_GPU = 3
_HEADER = (
    "model", "batch", "ours ms", "torch ms", "ours / torch", "TVM ms", "ours / TVM", "error", "compile s",
    "first answer s",
)  # fmt: skip


def main(arguments: Sequence[str] | None = None) -> int:
    """Print a table in Markdown; returns the exit status."""
    options = _parse(arguments)
    engine = registry.engine(LIBRARY)
    reason = engine.absent()
    if reason:
        print(f"bench gpu: {reason}; no figure exists without a GPU", file=sys.stderr)
        return NO_GPU
    try:
        properties = engine.device_properties()
    except UnsupportedError as error:
        print(f"bench gpu: {error}; no figure exists without them", file=sys.stderr)
        return NO_GPU
    print(format_environment(environment(Path(__file__).resolve().parents[3])), file=sys.stderr)
    print(f"| {' | '.join(_HEADER)} |")
    print(f"| --- | {' | '.join('---:' for _ in _HEADER[1:])} |")
    right = True
    for kind, name, batch in itertools.product(options.kinds, options.models, options.batch):
        with tempfile.TemporaryDirectory(prefix="bench_gpu_") as directory:
            files = Files(Path(directory))
            device_file(str(files.artifact(LIBRARY))).write_text(properties)
            results = _measured(kind, name, batch, options.rounds, files)
        right = right and results[f"cudnn_{kind}"].ok
        print(f"| {' | '.join(_row(kind, name, batch, results))} |", flush=True)
    return 0 if right else 1


def _measured(kind: str, name: str, batch: int, rounds: int, files: Files) -> dict[str, EngineResult]:
    """Every engine on one model, whose exact answer is what all are held against."""
    model = write_model(name, batch, files)
    np.savez(files.expected, *float64_outputs(model, zoo.random_inputs(model, INPUT_SEED)))
    cpus = tuple(sorted(os.sched_getaffinity(0)))
    engines = [f"{engine}_{kind}" for engine in ("cudnn", "torch_cuda", "tvm_cuda")]
    return measure(Configuration(name, batch, len(cpus)), engines, files, cpus, Options(rounds=rounds))


def _row(kind: str, name: str, batch: int, results: dict[str, EngineResult]) -> list[str]:
    ours, torch, tvm = (f"{engine}_{kind}" for engine in ("cudnn", "torch_cuda", "tvm_cuda"))
    result = results[ours]
    starts = [sum(pair) for pair in zip(result.imports_s, result.loads_s, strict=True)]
    return [
        f"{name} {kind}",
        str(batch),
        columns.latency(result),
        columns.latency(results[torch]),
        columns.ratio(results, ours, torch),
        columns.latency(results[tvm]),
        columns.ratio(results, ours, tvm),
        NOTHING if result.relative_l2 is None else f"{result.relative_l2:.1e}",
        NOTHING if result.compile_s is None else f"{result.compile_s:.1f}",
        f"{min(starts):.2f}" if starts else NOTHING,
    ]


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="bench gpu", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )

    def names(known: Sequence[str]) -> Callable[[str], list[str]]:
        return lambda text: [_known(one, known) for one in text.split(",")]

    parser.add_argument("--models", type=names(zoo.names()), default=list(MODELS), help="comma-separated")
    parser.add_argument("--kinds", type=names(tuple(KINDS)), default=list(KINDS), help="f16,tf32")
    parser.add_argument("--batch", type=_numbers, default=[1, 8, 64], help="(1,8,64)")
    parser.add_argument("--rounds", type=int, default=10, help="(10)")
    return parser.parse_args(arguments)


def _known(name: str, known: Sequence[str]) -> str:
    if name not in known:
        raise argparse.ArgumentTypeError(f"{name!r}; expected some of {','.join(known)}")
    return name


def _numbers(text: str) -> list[int]:
    return [int(one) for one in text.split(",")]


if __name__ == "__main__":
    sys.exit(main())
