"""The command line of scripts/bench_convolutions: algorithms of 3x3 convolutions, layer by layer.

The layers are those of stride 1 that a compiled model has, each shape once. Every algorithm runs alone,
channels last, with bias and relu, on several instances with weights of their own, more than the last-level
cache holds together: as in a model, weights come from memory. Algorithms take turns.

direct us     median of the direct algorithm
F2, F4        times direct over times Winograd's; above 1 is faster
chosen        what the compiler chose in the model by its cost model
best          the least median; chosen / best compares the two

The last line counts the choices within 3 % of the best, and names the worst.
"""

from __future__ import annotations

import argparse
import functools
import statistics
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import tvm

import tvm_mxplan
from tvm_mxplan.byoc.onednn import library
from tvm_mxplan.core import program as ir
from tvm_mxplan.core.layout import parse_layout
from tvm_mxplan.inspection import decoded_programs
from tvm_mxplan.testing import zoo
from tvm_mxplan.testing.environment_info import environment, format_environment

from .schedule import rotated

MODELS = "vgg19,resnet18,resnet50"
WEIGHTS_BYTES = 80 << 20
"""Of all instances of a layer together: well above the last-level cache."""
NEAR = 1.03
HEADER = "| model | batch | layer | direct us | F2 | F4 | chosen | best | chosen / best |"
RULE = "| --- | ---: | --- | ---: | ---: | ---: | --- | --- | ---: |"


@dataclass(frozen=True)
class Layer:
    """Shapes of src and dst."""

    src: tuple[int, ...]
    dst: tuple[int, ...]
    padding: tuple[int, ...]

    def __str__(self) -> str:
        return f"{self.src[1]} to {self.dst[1]}, {self.dst[2]}x{self.dst[3]}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Print a table in Markdown; returns the exit status."""
    options = _parse(arguments)
    print(format_environment(environment(Path(__file__).resolve().parents[2])), file=sys.stderr)
    print(f"{HEADER}\n{RULE}")
    lost: dict[str, float] = {}
    for name in options.models.split(","):
        for layer, chosen in layers_of(name, options.batch).items():
            medians = time_algorithms(layer, options.rounds)
            lost[f"{name}, {layer}"] = medians[chosen] / min(medians.values())
            print(_row(name, options.batch, layer, chosen, medians), flush=True)
    print(f"\n{summary(lost)}")
    return 0


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="bench_convolutions", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--models", default=MODELS, help=f"comma-separated ({MODELS})")
    parser.add_argument("--batch", type=int, default=1, help="images (1)")
    parser.add_argument("--rounds", type=int, default=15, help="turns of each algorithm (15)")
    return parser.parse_args(arguments)


def layers_of(name: str, batch: int) -> dict[Layer, ir.ConvolutionAlgorithm]:
    """The model's 3x3 convolutions of stride 1, and the algorithm chosen for each."""
    layers: dict[Layer, ir.ConvolutionAlgorithm] = {}
    for program in decoded_programs(tvm_mxplan.compile(zoo.load(name, batch=batch)).module):
        for step in program.steps:
            attrs = step.attrs
            if not isinstance(attrs, ir.Convolution) or attrs.groups > 1 or max(attrs.strides) > 1:
                continue
            weights, src, dst = (
                program.values[step.operand(role)].shape for role in ("weights", "src", "dst")
            )
            if len(weights) == 4 and weights[2:] == (3, 3) and attrs.dilation == (1, 1):
                layers[Layer(src, dst, attrs.padding)] = attrs.algorithm  # type: ignore[arg-type]
    return layers


def time_algorithms(layer: Layer, rounds: int) -> dict[ir.ConvolutionAlgorithm, float]:
    """Median microseconds of one call of each algorithm."""
    calls = {algorithm: _instances(layer, algorithm) for algorithm in ir.CONVOLUTION_ALGORITHMS}
    times: dict[ir.ConvolutionAlgorithm, list[float]] = {algorithm: [] for algorithm in calls}
    for turn in range(rounds):
        for algorithm in rotated(list(calls), turn):
            instances = calls[algorithm]
            instances[-1]()
            start = time.perf_counter()
            for call in instances:
                call()
            times[algorithm].append(1e6 * (time.perf_counter() - start) / len(instances))
    return {algorithm: statistics.median(samples) for algorithm, samples in times.items()}


def _instances(layer: Layer, algorithm: ir.ConvolutionAlgorithm) -> list[Callable[[], object]]:
    program = _program(layer, algorithm)
    (info,) = library.describe(program).steps
    if info.error:
        raise SystemExit(f"bench_convolutions: {layer}: {info.error}")
    count = max(2, min(64, -(-WEIGHTS_BYTES // info.weights_bytes)))
    return [_instance(program, seed) for seed in range(count)]


def _program(layer: Layer, algorithm: ir.ConvolutionAlgorithm) -> ir.Program:
    inputs, outputs = layer.src[1], layer.dst[1]
    values = (
        ir.Value("src", layer.src, "float32", "input", "acdb", 0),
        ir.Value("weights", (outputs, inputs, 3, 3), "float32", "constant", "abcd", 0),
        ir.Value("bias", (outputs,), "float32", "constant", "a", 1),
        ir.Value("dst", layer.dst, "float32", "output", "acdb", 0),
    )
    operands = tuple(ir.Operand(value.name, number) for number, value in enumerate(values))
    attrs = ir.Convolution((1, 1), layer.padding, (1, 1), 1, algorithm)
    step = ir.Step("layer", attrs, operands, (ir.EltwisePostOp("relu", 0.0, 0.0),))
    return ir.Program("layer", values, (step,))


def _physical_shape(value: ir.Value) -> tuple[int, ...]:
    return parse_layout(value.layout).physical_shape(value.shape)


def _instance(program: ir.Program, seed: int) -> Callable[[], object]:
    generator = np.random.default_rng(seed)
    src, weights, bias, dst = (
        tvm.runtime.tensor(generator.standard_normal(_physical_shape(value), dtype="float32"))
        for value in program.values
    )
    module = library.create_module("layer", program, [weights, bias])
    call = functools.partial(module["layer"], src, dst)
    call()  # makes the primitives
    return call


def summary(lost: Mapping[str, float]) -> str:
    """One line about chosen / best, by layer."""
    near = sum(ratio <= NEAR for ratio in lost.values())
    worst = sorted(lost.items(), key=lambda item: -item[1])[:3]
    listed = "; ".join(f"{layer} ({ratio:.2f})" for layer, ratio in worst)
    return f"{near} of {len(lost)} choices are within 3 % of the best; the worst: {listed}."


def _row(
    name: str,
    batch: int,
    layer: Layer,
    chosen: ir.ConvolutionAlgorithm,
    medians: dict[ir.ConvolutionAlgorithm, float],
) -> str:
    direct, f2, f4 = (medians[algorithm] for algorithm in ir.CONVOLUTION_ALGORITHMS)
    best = min(medians, key=lambda algorithm: medians[algorithm])
    return (
        f"| {name} | {batch} | {layer} | {direct:.0f} | {direct / f2:.2f} | {direct / f4:.2f} | "
        f"{chosen} | {best} | {medians[chosen] / medians[best]:.2f} |"
    )


if __name__ == "__main__":
    sys.exit(main())
