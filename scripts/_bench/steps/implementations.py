"""The command line of scripts/bench implementations: all that could run a convolution, beside its cost.

    scripts/bench implementations --dtype bfloat16 --layers 1x64x256x56:1:1:swish,1x3x64x224:7:2:relu

Layers are samples x channels x channels of the result x pixels of a side, the window, its stride, and the
function behind it, channels last on both ends, windows of odd sides around their pixel; a bias stands in
front of the function.  Arrays begin on a line of the caches; each implementation runs several times in its
turn, the first ones untimed, so that its operands are in caches as far as they fit.  Times are microseconds
by the clock, medians of turns, with what a call takes from Python; costs are those of the model of this
machine, by which plans choose.  "chosen / best" compares the implementation of least cost with the one of
least time.  OMP_NUM_THREADS says how many threads.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from tvm_mxplan.byoc.onednn import library
from tvm_mxplan.byoc.onednn.costs import cost, implementation_named
from tvm_mxplan.core.element_types import numpy_type
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.core.program.operands import operands_of
from tvm_mxplan.core.step_facts import StepFacts
from tvm_mxplan.frontend.aligned import aligned_bytes
from tvm_mxplan.rates.kept import rates_here
from tvm_mxplan.testing.environment_info import environment, format_environment

from ..harness.one_step import medians_in_turns

LAYERS = (
    "1x64x64x56:1:1:relu,1x64x256x56:1:1:relu,1x64x256x56:1:1:swish,1x256x1024x14:1:1:relu,"
    "1x256x1024x14:1:1:swish,1x2048x512x7:1:1:relu,1x16x96x112:1:1:swish,1x192x1152x7:1:1:swish,"
    "1x192x768x14:1:1:gelu_erf,1x3x64x224:7:2:relu,1x3x16x320:3:2:swish,1x32x32x40:3:1:swish,"
    "1x80x80x40:3:1:swish,1x128x128x28:3:1:relu,1x512x512x7:3:1:relu"
)
_EACH, _UNTIMED = 10, 3
"""Calls in a turn, and those in front of them."""
_TYPES = ("float32", "bfloat16", "uint8")


_LAYER = re.compile(r"{n}x{n}x{n}x{n}:{n}:{n}:(\w+)".replace("{n}", r"([1-9]\d*)"), re.ASCII)


@dataclass(frozen=True)
class _Layer:
    """One convolution in one type; products of integers have scales, and a result in 8 bits."""

    text: str
    dtype: str
    numbers: tuple[int, ...]
    function: str

    @classmethod
    def read(cls, text: str, dtype: str) -> _Layer:
        """Of the command line; SystemExit where it is no layer."""
        found = _LAYER.fullmatch(text)
        if found is None:
            raise SystemExit(f"bench: {text!r} is no layer; one is {LAYERS.partition(',')[0]}")
        *numbers, function = found.groups()
        return cls(text, dtype, tuple(int(number) for number in numbers), function)

    def program(self, preferred: str = "") -> ir.Program:
        samples, inputs, outputs, side, window, stride = self.numbers
        around = window // 2
        size = (side + 2 * around - window) // stride + 1
        filters, integers = (outputs, inputs, window, window), self.dtype == "uint8"
        values = [
            ir.Value("src", (samples, inputs, side, side), self.dtype, "input", "acdb", 0),
            ir.Value("weights", filters, "int8" if integers else self.dtype, "constant", "abcd", 0),
            ir.Value("bias", (outputs,), "float32", "constant", "a", 1),
            ir.Value("dst", (samples, outputs, size, size), self.dtype, "output", "acdb", 0),
        ]
        scales = ("src_scale", "weights_scale", "dst_scale") if integers else ()
        values += [ir.Value(role, (1,), "float32", "constant", "a", 2 + at) for at, role in enumerate(scales)]
        operands = tuple(ir.Operand(value.name, number) for number, value in enumerate(values))
        attrs = ir.Convolution((stride,) * 2, (around,) * 4, (1, 1), 1, preferred=preferred)
        alpha = 1.0 if self.function == "swish" else 0.0
        step = ir.Step("step", attrs, operands, (ir.EltwisePostOp(self.function, alpha, 0.0),))
        return ir.Program("layer", tuple(values), (step,))

    def implementations(self) -> list[str]:
        """The library's first choice, and the others that are worth their time."""
        (info,) = library.describe(self.program()).steps
        if info.error:
            raise SystemExit(f"bench: {self.text}: {info.error}")
        names = (info.implementation, *info.alternatives)
        return [name for name in names if not implementation_named(name).is_reference]

    def cost(self, name: str) -> float:
        """Microseconds by the model of costs."""
        program = self.program(name)
        (step,), (info,) = program.steps, library.describe(program).steps
        layouts = tuple(program.values[number].layout for _, number in operands_of(step))
        return cost(StepFacts(program, step, layouts, info), rates_here())

    def calls(self, names: Sequence[str]) -> list[Callable[[], object]]:
        """A call of each implementation, all on the same arrays of drawn numbers."""
        rng = np.random.default_rng(0)
        arrays = {value.name: self._drawn(value, rng) for value in self.program().values}

        def call(name: str) -> Callable[[], object]:
            program = self.program(name)
            constants = [arrays[value.name] for value in program.values if value.kind == "constant"]
            return partial(library.trial(program, constants), arrays["src"], arrays["dst"])

        return [call(name) for name in names]

    def _drawn(self, value: ir.Value, rng: np.random.Generator) -> np.ndarray:
        """Numbers as a value is stored, by which sums are about as large as 1."""
        shape, kind = tuple(int(extent) for extent in value.shape), numpy_type(value.dtype)
        _, inputs, _, _, window, _ = self.numbers
        terms = float(np.sqrt(inputs * window * window))
        if value.name.endswith("scale"):
            scales = {"src": 2.0**-5, "weights": 2.0**-6 / terms, "dst": 2.0**-5}
            numbers = np.full(shape, scales[value.name.removesuffix("_scale")])
        elif kind.kind in "iu":
            numbers = rng.integers(-64 if kind.kind == "i" else 0, 64, shape)
        else:
            numbers = rng.standard_normal(shape) / (terms if value.name == "weights" else 1.0)
        if value.layout == "acdb":
            numbers = numbers.transpose(0, 2, 3, 1)
        array = aligned_bytes(numbers.size * kind.itemsize).view(kind).reshape(numbers.shape)
        array[...] = numbers.astype(kind)
        return array


def main(arguments: Sequence[str] | None = None) -> int:
    """Print a table in Markdown; returns the exit status."""
    parser = argparse.ArgumentParser(
        prog="bench implementations",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--layers", default=LAYERS, help="(layers of networks of today)")
    parser.add_argument("--dtype", default="float32", choices=_TYPES, help="(float32)")
    parser.add_argument("--rounds", type=int, default=30, help="turns of each (30)")
    options = parser.parse_args(arguments)
    layers = [_Layer.read(text, options.dtype) for text in options.layers.split(",")]
    print(format_environment(environment(Path(__file__).resolve().parents[3])), file=sys.stderr)
    print("| layer | chosen | us | best | us | chosen / best | all: us / cost |")
    print("| --- | --- | ---: | --- | ---: | ---: | --- |")
    for layer in layers:
        names = layer.implementations()
        medians = medians_in_turns(layer.calls(names), options.rounds, each=_EACH, untimed=_UNTIMED)
        times = dict(zip(names, medians, strict=True))
        costs = {name: layer.cost(name) for name in names}
        chosen, best = min(names, key=costs.__getitem__), min(names, key=times.__getitem__)
        every = "; ".join(f"{name} {times[name]:.0f} / {costs[name]:.0f}" for name in names)
        cells = [layer.text, chosen, f"{times[chosen]:.0f}", best, f"{times[best]:.0f}"]
        print(f"| {' | '.join([*cells, f'{times[chosen] / times[best]:.2f}', every])} |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
