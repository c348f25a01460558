"""The command line of scripts/bench bounds: ``precision=auto`` at several bounds of errors.

    scripts/bench bounds --models resnet50,mobilenet_v2,encoder --bounds 1e-1,1e-2,1e-3
    scripts/bench bounds --files a.onnx,b.onnx
    scripts/bench bounds --here --rounds 8

Types are decided on as for a processor that computes in bfloat16, by stated rates, so this runs anywhere.
``time`` is the estimate as a share of that in float32; ``added`` is what the choice states to add to the
error. ``measured`` is the error of the whole region in these types, beside float32: every value that is
bfloat16 is rounded, sums are float32, inputs are random. Status 1 where it is above the bound.

With ``--here`` the networks run, on a processor that computes in bfloat16: ``time`` is the processor time of
a call as a share of that in float32, of all bounds in turns, medians, and ``measured`` the error against
float64. Set OMP_NUM_THREADS=1 where the machine is busy.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence

import numpy as np
import onnx
import tvm
from _shared.exact import exact_outputs

import tvm_mxplan
from tvm_mxplan.core.decisions.precision import PrecisionDecision
from tvm_mxplan.core.machine import default_rates
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.frontend.onnx import import_model
from tvm_mxplan.options import Options
from tvm_mxplan.passes.precision.split_pairs import split_pairs
from tvm_mxplan.passes.region.attached import constants_of, program_of, regions
from tvm_mxplan.pipeline import Given, compilation
from tvm_mxplan.report.inspection import decoded_programs
from tvm_mxplan.testing import zoo
from tvm_mxplan.testing.float64 import float64_outputs

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
    if options.here:
        held = [_ran(name, options) for name in options.models.split(",") if name]
        return 0 if all(held) else 1
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


def _ran(name: str, options: argparse.Namespace) -> bool:
    """Prints the rows of one network that runs; whether no error is above its bound."""
    model, inputs, exact = _network(name)
    bounds = options.bounds.split(",")
    asked = [{"precision": "f32"}]
    asked += [{"precision": "auto", "max_relative_error": float(bound)} for bound in bounds]
    made = [tvm_mxplan.compile(model, options=one) for one in asked]
    spent = _spent(made, inputs, options.rounds)
    held = True
    for bound, one, seconds in zip(("", *bounds), made, spent, strict=True):
        error = relative_l2([result.numpy() for result in one(*inputs)], exact)
        held = held and (not bound or error <= float(bound))
        types = [
            program.values[step.dst].dtype
            for program in decoded_programs(one.module)
            for step in program.steps
        ]
        short = f"{types.count('bfloat16')} of {len(types)}"
        row = (name, bound or "float32", short, f"{seconds / spent[0]:.2f}", "", f"{error:.1e}")
        print(f"| {' | '.join(row)} |", flush=True)
    return held


def _network(name: str) -> tuple[onnx.ModelProto, list[np.ndarray], list[np.ndarray]]:
    """A network, its inputs, and its results in float64."""
    if name != encoder.NAME:
        model = zoo.load(name)
        inputs = zoo.random_inputs(model, INPUT_SEED)
        return model, list(inputs.values()), list(float64_outputs(model, inputs))
    model = encoder.encoder_model(1)
    shape = (1, encoder.TOKENS, encoder.WIDTH)
    given = {"x": np.random.default_rng(INPUT_SEED).standard_normal(shape, np.float32)}
    return model, list(given.values()), list(exact_outputs(model, given))


def _spent(made: Sequence[tvm_mxplan.Executable], inputs: list[np.ndarray], rounds: int) -> list[float]:
    """Processor seconds of a call of each, medians over rounds in which they take turns."""
    spent: list[list[float]] = [[] for _ in made]
    for turn in range(rounds + 1):
        for one, times in zip(made, spent, strict=True):
            begin = time.process_time()
            one(*inputs)
            if turn:  # the first finds no caches
                times.append(time.process_time() - begin)
    return [float(np.median(times)) for times in spent]


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
    parser.add_argument("--here", action="store_true", help="run the networks, and measure times")
    parser.add_argument("--rounds", type=int, default=12, help="of calls in turns, with --here (12)")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
