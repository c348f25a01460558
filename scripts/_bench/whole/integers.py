"""The command line of scripts/bench integers: quantised networks on our engine and on others.

    scripts/bench integers --models resnet50,mobilenet_v2,squeezenet,encoder --threads 1

onnxruntime's static quantiser makes each network (QDQ, weights of int8); all engines run that file, each in
its own process, a burst in turn, as with scripts/bench models. ``f32`` is the network as it was, on our
engine. Ratios are of times in the same round; ``processor`` is the ratio of the least seconds of all threads
in a call: what a busy machine still tells. ``within a step`` is the share of our results that are at most one
step of the last quantiser from onnxruntime's, where the network ends in one. Errors are relative L2 against
the network as it was, in float64. Status 1 where ours gives no answer. With ``--steps`` every step of ours
follows, where it stands: its kernel and the median of its times, in microseconds.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from _shared.exact import exact_outputs

import tvm_mxplan
from tvm_mxplan.execution.threads import with_threads
from tvm_mxplan.testing import zoo
from tvm_mxplan.testing.environment_info import environment, format_environment
from tvm_mxplan.testing.float64 import float64_outputs
from tvm_mxplan.testing.reference import worst_relative_l2

from ..harness import columns
from ..harness.files import INPUT_SEED, Files, read_arrays
from ..harness.schedule import Configuration, Options, measure
from ..harness.table import NOTHING
from ..inputs import encoder
from ..inputs.quantized import ACTIVATIONS, quantized, result_step
from ..steps.profile import time_steps

MODELS = ("resnet50", "mobilenet_v2", "squeezenet", encoder.NAME)
OURS, OPENVINO, ONNXRUNTIME = "ours_int8", "openvino_int8", "onnxruntime_int8"
FLOAT = "ours"
_CALLS = 60
_PEERS = (OPENVINO, ONNXRUNTIME)
_HEADER = (
    "model", "ours ms", "OpenVINO ms", "ratio", "processor", "onnxruntime ms", "ratio", "processor",
    "f32 ms", "processor", "within a step", "error ours", "error OpenVINO", "error onnxruntime",
)  # fmt: skip


def main(arguments: Sequence[str] | None = None) -> int:
    """Print a table in Markdown; returns the exit status."""
    options = _parse(arguments)
    print(format_environment(environment(Path(__file__).resolve().parents[3])), file=sys.stderr)
    print(f"| {' | '.join(_HEADER)} |")
    print(f"| --- | {' | '.join('---:' for _ in _HEADER[1:])} |")
    right = True
    for name in options.models.split(","):
        with tempfile.TemporaryDirectory(prefix="bench_integers_") as directory:
            row, answered = _row(name, options, Path(directory))
        right = right and answered
        print(f"| {' | '.join([name, *row])} |", flush=True)
    if options.steps:
        for name in options.models.split(","):
            print("", *step_rows(name, options), sep="\n", flush=True)
    return 0 if right else 1


def step_rows(name: str, options: argparse.Namespace) -> Iterator[str]:
    """A table of the steps of one network on our engine."""
    _, made, inputs = _models(name, options)
    with with_threads(options.threads):
        executable = tvm_mxplan.compile(made)
        timed = time_steps(executable, inputs, _CALLS)
    yield from (f"| {name} | kernel | us |", "| --- | --- | ---: |")
    for one in timed:
        yield f"| {one.step.name} | {one.step.implementation} | {1e6 * one.seconds:.1f} |"


def _models(name: str, options: argparse.Namespace) -> tuple[Any, Any, dict[str, np.ndarray]]:
    """A network as it is, its quantised model, and inputs."""
    transformer = name == encoder.NAME
    if transformer:
        model = encoder.encoder_model(options.batch)
        shape = (options.batch, encoder.TOKENS, encoder.WIDTH)
        inputs = {"x": np.random.default_rng(INPUT_SEED).standard_normal(shape, np.float32)}
    else:
        model = zoo.load(name, options.batch)
        inputs = zoo.random_inputs(model, INPUT_SEED)
    return model, quantized(model, options.activations, options.per_channel, transformer), inputs


def _row(name: str, options: argparse.Namespace, directory: Path) -> tuple[list[str], bool]:
    """One network's columns, and whether ours answered."""
    import onnx

    model, made, inputs = _models(name, options)
    exact = (exact_outputs if name == encoder.NAME else float64_outputs)(model, inputs)
    integers, real = Files(directory / "integers"), Files(directory / "real")
    for files, one in ((integers, made), (real, model)):
        files.directory.mkdir()
        onnx.save(one, files.model)
        np.savez(files.inputs, **inputs)
    np.savez(integers.expected, *_answer(made, inputs))
    np.savez(real.expected, *exact)
    configuration = Configuration(name, options.batch, options.threads)
    cpus = tuple(sorted(os.sched_getaffinity(0)))
    rounds = Options(rounds=options.rounds, starts=1)
    results = measure(configuration, (OURS, *_PEERS), integers, cpus, rounds)
    results |= measure(configuration, (FLOAT,), real, cpus, rounds)
    row = [columns.latency(results[OURS])]
    for peer in _PEERS:
        against = columns.ratio(results, OURS, peer), columns.processor(results, OURS, peer)
        row += [columns.latency(results[peer]), *against]
    row += [columns.latency(results[FLOAT]), columns.processor(results, OURS, FLOAT)]
    errors = [_error(integers, engine, exact) for engine in (OURS, *_PEERS)]
    return [*row, _within(made, integers), *errors], results[OURS].ok


def _answer(model: object, inputs: dict[str, np.ndarray]) -> list[np.ndarray]:
    import onnxruntime

    session = onnxruntime.InferenceSession(
        model.SerializeToString(),  # type: ignore[attr-defined]
        providers=["CPUExecutionProvider"],
    )
    return list(session.run(None, inputs))


def _within(model: object, files: Files) -> str:
    step = result_step(model)  # type: ignore[arg-type]
    if step is None or not files.answer(OURS).exists():
        return NOTHING
    ours, theirs = read_arrays(files.answer(OURS))[0], read_arrays(files.expected)[0]
    return f"{np.mean(np.abs(ours - theirs) <= 1.01 * step):.2%}"


def _error(files: Files, engine: str, exact: Sequence[np.ndarray]) -> str:
    if not files.answer(engine).exists():
        return NOTHING
    return f"{worst_relative_l2(read_arrays(files.answer(engine)), list(exact)):.1e}"


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="bench integers", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--models", default=",".join(MODELS), help=f"comma-separated ({','.join(MODELS)})")
    parser.add_argument("--batch", type=int, default=1, help="(1)")
    parser.add_argument("--threads", type=int, default=2, help="(2)")
    parser.add_argument("--rounds", type=int, default=10, help="(10)")
    parser.add_argument("--activations", choices=ACTIVATIONS, default="u8", help="(u8)")
    parser.add_argument("--per-channel", action="store_true", help="a scale for each output of a product")
    parser.add_argument("--steps", action="store_true", help="what each step of ours takes")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
