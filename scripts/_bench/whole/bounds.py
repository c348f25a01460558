"""The command line of scripts/bench bounds: ``precision=auto`` at several bounds of errors.

    scripts/bench bounds --models resnet50,mobilenet_v2,encoder --bounds 1e-1,1e-2,1e-3
    scripts/bench bounds --files a.onnx,b.onnx

Types are decided on as for a processor that computes in bfloat16, by stated rates, so this runs anywhere.
``time`` is the estimate as a share of that in float32; ``added`` is what the choice states to add to the
error. ``measured`` is the error of the whole region in these types, beside float32: every value that is
bfloat16 is rounded, sums are float32, inputs are random. Status 1 where it is above the bound.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

import numpy as np
import onnx
import tvm

from tvm_mxplan.core.decisions.precision import PrecisionDecision
from tvm_mxplan.core.machine import default_rates
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.frontend.onnx import import_model
from tvm_mxplan.options import Options
from tvm_mxplan.passes.precision.split_pairs import split_pairs
from tvm_mxplan.passes.region.attached import constants_of, program_of, regions
from tvm_mxplan.pipeline import Given, compilation
from tvm_mxplan.testing import zoo

from ..harness.files import INPUT_SEED
from ..inputs import encoder
from ..rounded import RoundedProgram, StandIn

MODELS = ("resnet50", "mobilenet_v2", encoder.NAME)
BOUNDS = ("1e-1", "3e-2", "1e-2", "1e-3", "1e-4", "1e-5", "1e-6")
_HEADER = ("model", "bound", "steps in bf16", "time", "added", "measured")
_BACKEND = StandIn()


def main(arguments: Sequence[str] | None = None) -> int:
    """Print a table in Markdown; returns the exit status."""
    options = _parse(arguments)
    print(f"| {' | '.join(_HEADER)} |")
    print(f"| --- | {' | '.join('---:' for _ in _HEADER[1:])} |")
    held = True
    models = [(name, _module(name)) for name in options.models.split(",") if name]
    models += [(path, import_model(onnx.load(path), None, "")) for path in options.files.split(",") if path]
    for name, module in models:
        mod = _run(module, Options(), "canonicalize", "programs")[0]
        exact = outputs(typed(mod, Options(precision="f32"))[0])
        for bound in options.bounds.split(","):
            limit = float(bound)
            one, decision = typed(mod, Options(precision="auto", max_relative_error=limit))
            error = relative_l2(outputs(one), exact)
            held = held and error <= limit
            print(f"| {' | '.join((name, bound, *_row(decision), f'{error:.1e}'))} |", flush=True)
    return 0 if held else 1


Typed = tuple[ir.Program, list[np.ndarray]]


def typed(mod: tvm.IRModule, options: Options) -> tuple[Typed, PrecisionDecision | None]:
    """The largest region in the types that the options ask for, its constants, and what was decided.

    Pairs of convolutions are taken apart: such a step does not run in plain layouts.
    """
    mod, decisions = _run(mod, options, "precision", "precision")
    found = [(program_of(function), constants_of(function)) for _, function in regions(mod, _BACKEND.name)]
    program, constants = max(found, key=lambda one: len(one[0].steps))
    return (split_pairs(program), [one.numpy() for one in constants]), decisions.get(program.name)


def outputs(one: Typed) -> list[np.ndarray]:
    """The outputs of a region for random inputs, which are the same each time."""
    program, constants = one
    random = np.random.default_rng(INPUT_SEED)
    inputs = sorted(program.of_kind("input"), key=lambda number: program.values[number].index)
    arrays = [random.standard_normal(program.values[number].shape, np.float32) for number in inputs]
    return RoundedProgram(program, constants).run(arrays)


def relative_l2(got: Sequence[np.ndarray], exact: Sequence[np.ndarray]) -> float:
    """The largest relative error of several outputs."""
    pairs = [(a.astype(np.float64), b.astype(np.float64)) for a, b in zip(got, exact, strict=True)]
    return max(float(np.linalg.norm(a - b) / np.linalg.norm(b)) for a, b in pairs)


def _run(mod: tvm.IRModule, options: Options, first: str, last: str) -> tuple[tvm.IRModule, dict]:
    given = Given(machine=default_rates())
    made = compilation([_BACKEND], options, tvm.target.Target("llvm"), given)
    return made.run(mod, first, last), made.recorder.journal.precisions


def _row(decision: PrecisionDecision | None) -> tuple[str, ...]:
    assert decision is not None and not decision.why_not
    steps = f"{decision.counts.get('bfloat16', 0)} of {sum(decision.counts.values())}"
    share = decision.cost_us / decision.float32_us
    return steps, f"{share:.2f}", f"{decision.error:.1e}"


def _module(name: str) -> tvm.IRModule:
    return encoder.encoder() if name == encoder.NAME else import_model(zoo.load(name), None, "")


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="bench bounds", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--models", default=",".join(MODELS), help=f"comma-separated ({','.join(MODELS)})")
    parser.add_argument("--files", default="", help="ONNX files besides, comma-separated")
    parser.add_argument("--bounds", default=",".join(BOUNDS), help=f"comma-separated ({','.join(BOUNDS)})")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
