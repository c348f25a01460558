"""The command line of scripts/bench convolutions: algorithms of 3x3 and 5x5 convolutions, layer by layer.

The layers are those of stride 1 that a compiled model has, each shape once: dense ones and groups, not
depthwise; filters are 3x3 where nothing is said. Every algorithm runs alone, channels last, with bias and
relu, in a region of several steps with weights of their own, more than the last-level cache holds together
(64 steps at most): as in a model, weights come from memory, and steps share an arena. Algorithms take turns.

direct us     median of a step by the direct algorithm
F2, F4        times direct over times Winograd's; above 1 is faster (F4 is for 3x3 alone)
chosen        what the compiler chose in the model by its cost model
best          the least median; chosen / best compares the two

With ``--precision bf16`` images and filters are in bfloat16, and the model is compiled so; layers that it
computes in float32 stay in that.  With ``--processor`` times are the processor's, of all threads.

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

import tvm_mxplan
from tvm_mxplan.byoc.onednn import library
from tvm_mxplan.core.element_types import numpy_type
from tvm_mxplan.core.layout.layout import parse_layout
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.report.inspection import decoded_programs
from tvm_mxplan.testing import zoo
from tvm_mxplan.testing.environment_info import environment, format_environment

from ..harness.schedule import rotated

MODELS = "vgg19,resnet18,resnet50"
WEIGHTS_BYTES = 80 << 20
"""Of all instances of a layer together: well above the last-level cache."""
NEAR = 1.03
HEADER = "| model | batch | layer | direct us | F2 | F4 | chosen | best | chosen / best |"
RULE = "| --- | ---: | --- | ---: | ---: | ---: | --- | --- | ---: |"


@dataclass(frozen=True)
class Layer:
    """Shapes of src and dst, and the extent of square filters."""

    src: tuple[int, ...]
    dst: tuple[int, ...]
    padding: tuple[int, ...]
    size: int = 3
    groups: int = 1
    dtype: str = "float32"

    def __str__(self) -> str:
        text = f"{self.src[1]} to {self.dst[1]}, {self.dst[2]}x{self.dst[3]}"
        if self.size != 3:
            text += f", {self.size}x{self.size} filters"
        if self.dtype != "float32":
            text += f", {self.dtype}"
        return text if self.groups == 1 else f"{text}, {self.groups} groups"

    @property
    def weights(self) -> tuple[int, ...]:
        """Shape of the filters."""
        shape = (self.dst[1] // self.groups, self.src[1] // self.groups, self.size, self.size)
        return shape if self.groups == 1 else (self.groups, *shape)


def main(arguments: Sequence[str] | None = None) -> int:
    """Print a table in Markdown; returns the exit status."""
    options = _parse(arguments)
    print(format_environment(environment(Path(__file__).resolve().parents[3])), file=sys.stderr)
    print(f"{HEADER}\n{RULE}")
    clock = time.process_time if options.processor else time.perf_counter
    lost: dict[str, float] = {}
    for name in options.models.split(","):
        for layer, chosen in layers_of(name, options.batch, options.precision).items():
            medians = time_algorithms(layer, options.rounds, clock)
            lost[f"{name}, {layer}"] = medians[chosen] / min(medians.values())
            print(_row(name, options.batch, layer, chosen, medians), flush=True)
    print(f"\n{summary(lost)}")
    return 0


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="bench convolutions", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--models", default=MODELS, help=f"comma-separated ({MODELS})")
    parser.add_argument("--batch", type=int, default=1, help="images (1)")
    parser.add_argument("--rounds", type=int, default=15, help="turns of each algorithm (15)")
    parser.add_argument("--precision", choices=["f32", "bf16"], default="f32", help="of the model (f32)")
    parser.add_argument("--processor", action="store_true", help="processor time in the place of latency")
    return parser.parse_args(arguments)


def layers_of(name: str, batch: int, precision: str = "f32") -> dict[Layer, ir.ConvolutionAlgorithm]:
    """The model's 3x3 and 5x5 convolutions of stride 1, and the algorithm chosen for each."""
    layers: dict[Layer, ir.ConvolutionAlgorithm] = {}
    compiled = tvm_mxplan.compile(zoo.load(name, batch=batch), options={"precision": precision})
    for program in decoded_programs(compiled.module):
        for step in program.steps:
            attrs = step.attrs
            if not isinstance(attrs, ir.Convolution) or max(*attrs.strides, *attrs.dilation) > 1:
                continue
            weights, src, dst = (
                program.values[step.operand(role)].shape for role in ("weights", "src", "dst")
            )
            kernel = weights[-len(attrs.strides) :]
            depthwise = attrs.groups > 1 and attrs.groups == src[1]
            if kernel in ((3, 3), (5, 5)) and not depthwise:
                dtype = program.values[step.operand("src")].dtype
                layer = Layer(src, dst, attrs.padding, kernel[0], attrs.groups, dtype)  # type: ignore[arg-type]
                layers[layer] = attrs.algorithm
    return layers


def time_algorithms(
    layer: Layer, rounds: int, clock: Callable[[], float] = time.perf_counter
) -> dict[ir.ConvolutionAlgorithm, float]:
    """Median microseconds of one step, by each algorithm that there is for the layer."""
    calls = {
        algorithm: _steps(layer, algorithm)
        for algorithm in ir.CONVOLUTION_ALGORITHMS
        if algorithm != "winograd_f4" or layer.size == 3
    }
    times: dict[ir.ConvolutionAlgorithm, list[float]] = {algorithm: [] for algorithm in calls}
    for turn in range(rounds):
        for algorithm in rotated(list(calls), turn):
            count, call = calls[algorithm]
            start = clock()
            call()
            times[algorithm].append(1e6 * (clock() - start) / count)
    return {algorithm: statistics.median(samples) for algorithm, samples in times.items()}


def _steps(layer: Layer, algorithm: ir.ConvolutionAlgorithm) -> tuple[int, Callable[[], object]]:
    """A number of steps, and a call of them all."""
    (info,) = library.describe(_program(layer, algorithm, 1)).steps
    if info.error:
        raise SystemExit(f"bench convolutions: {layer}: {info.error}")
    count = max(2, min(64, -(-WEIGHTS_BYTES // info.weights_bytes)))
    program = _program(layer, algorithm, count)
    generator = np.random.default_rng(0)
    src, bias, *rest = (
        generator.standard_normal(_physical_shape(value), dtype="float32").astype(numpy_type(value.dtype))
        for value in program.values
        if value.kind != "local"
    )
    call = functools.partial(library.trial(program, [bias, *rest[:-1]]), src, rest[-1])
    call()  # makes the primitives
    return count, call


def _program(layer: Layer, algorithm: ir.ConvolutionAlgorithm, count: int) -> ir.Program:
    """The layer ``count`` times on one image, each time with filters of its own."""
    filters = "abcde"[: len(layer.weights)]
    values = [
        ir.Value("src", layer.src, layer.dtype, "input", "acdb", 0),
        ir.Value("bias", layer.dst[1:2], "float32", "constant", "a", 0),
    ]
    attrs = ir.Convolution((1, 1), layer.padding, (1, 1), layer.groups, algorithm)
    steps = []
    for number in range(count):
        last = number == count - 1
        values += [
            ir.Value(f"weights{number}", layer.weights, layer.dtype, "constant", filters, number + 1),
            ir.Value(f"dst{number}", layer.dst, layer.dtype, "output" if last else "local", "acdb", 0),
        ]
        numbers = {"src": 0, "weights": len(values) - 2, "bias": 1, "dst": len(values) - 1}
        operands = tuple(ir.Operand(role, value) for role, value in numbers.items())
        steps.append(ir.Step(f"layer{number}", attrs, operands, (ir.EltwisePostOp("relu", 0.0, 0.0),)))
    return ir.Program("layer", tuple(values), tuple(steps))


def _physical_shape(value: ir.Value) -> tuple[int, ...]:
    return parse_layout(value.layout).physical_shape(value.shape)


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
    direct, f2, f4 = (medians.get(algorithm) for algorithm in ir.CONVOLUTION_ALGORITHMS)
    assert direct is not None
    ratios = ("" if time is None else f"{direct / time:.2f}" for time in (f2, f4))
    best = min(medians, key=lambda algorithm: medians[algorithm])
    return (
        f"| {name} | {batch} | {layer} | {direct:.0f} | {' | '.join(ratios)} | "
        f"{chosen} | {best} | {medians[chosen] / medians[best]:.2f} |"
    )
