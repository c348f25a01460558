"""The command line of scripts/bench compile_time: seconds of the processor, over the number of operators.

checks        what is looked at in the ONNX model before it is imported
import        TVM's importer
ours          our passes, without the passes of TVM that they or the pipeline call
TVM's passes  those
build         TVM's build of what is left
TVM alone     import, TVM's own pipeline and build, with TVM_MXPLAN_DISABLE=1 as it would be

Behind the rows of a family stands the exponent that fits best: seconds grow as operators to that power.
Seconds are of the processor, so that other work on the machine changes little; each figure is of one run.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from dataclasses import astuple, dataclass
from pathlib import Path

import numpy as np
import tvm
from tvm import relax

from tvm_mxplan.byoc.onednn.backend import OneDNN
from tvm_mxplan.frontend.onnx import import_model
from tvm_mxplan.frontend.onnx.checks.checks import check_model
from tvm_mxplan.options import Options
from tvm_mxplan.pipeline import Given, build_pipeline
from tvm_mxplan.report.recorder import Recorder
from tvm_mxplan.testing import large_graphs
from tvm_mxplan.testing.environment_info import environment, format_environment

OPERATORS = "100,500,2000,5000,20000"
HEADER = "| graph | operators | regions | checks | import | ours | TVM's passes | build | TVM alone |"
RULE = "| --- |" + " ---: |" * 8
_TVM = tvm.target.Target("llvm")


@dataclass
class Seconds:
    """Of one compilation; 0 for what was not measured."""

    checks: float = 0.0
    imported: float = 0.0
    ours: float = 0.0
    tvm_passes: float = 0.0
    build: float = 0.0
    alone: float = 0.0


@tvm.instrument.pass_instrument
class PassSeconds:
    """Seconds of each pass without those that it calls, by name."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._open: list[list[float]] = []

    def run_before_pass(self, _mod: tvm.IRModule, _info: tvm.transform.PassInfo) -> None:
        self._open.append([time.process_time(), 0.0])

    def run_after_pass(self, _mod: tvm.IRModule, info: tvm.transform.PassInfo) -> None:
        start, inside = self._open.pop()
        whole = time.process_time() - start
        self.seconds[info.name] = self.seconds.get(info.name, 0.0) + whole - inside
        if self._open:
            self._open[-1][1] += whole


def main(arguments: Sequence[str] | None = None) -> int:
    """Print a table in Markdown; returns the exit status."""
    options = _parse(arguments)
    print(format_environment(environment(Path(__file__).resolve().parents[3])))
    print(f"\n{HEADER}\n{RULE}", flush=True)
    for family in options.graphs.split(","):
        measured: dict[int, Seconds] = {}
        for text in options.operators.split(","):
            number = int(text)
            measured[number], regions = compiled(family, number, options)
            print(_row(family, str(number), str(regions), astuple(measured[number])), flush=True)
        columns = zip(*map(astuple, measured.values()), strict=True)
        powers = [exponent(list(measured), column) for column in columns]
        print(_row(family, "exponent", "", powers), flush=True)
    return 0


def compiled(family: str, operators: int, options: argparse.Namespace) -> tuple[Seconds, int]:
    """Seconds of one graph, and into how many regions it goes."""
    model = large_graphs.build(family, operators)
    seconds, recorder, passes = Seconds(), Recorder(), PassSeconds()
    check_model(model, family, {})  # the first time also reads tables of onnx and TVM
    seconds.checks, _ = timed(lambda: check_model(model, family, {}))
    whole, mod = timed(lambda: import_model(model, None, family))
    seconds.imported = max(0.0, whole - seconds.checks)
    if options.import_only:
        return seconds, 0
    with _TVM, tvm.transform.PassContext(instruments=[passes]):
        _, planned = timed(lambda: build_pipeline([OneDNN()], Options(), _TVM, Given(recorder))(mod))
    ours = {name for name in passes.seconds if name in OURS or name.startswith("Record")}
    seconds.ours = sum(passes.seconds[name] for name in ours)
    seconds.tvm_passes = sum(passes.seconds.values()) - seconds.ours
    if options.build:
        seconds.build, _ = timed(lambda: relax.build(planned, _TVM, relax_pipeline=None))
    if options.alone:
        seconds.alone, _ = timed(lambda: tvm_alone(family, operators))
    return seconds, len(recorder.report.regions)


def tvm_alone(family: str, operators: int) -> None:
    """Compiles the same graph with stock TVM."""
    mod = import_model(large_graphs.build(family, operators), None, family)
    with _TVM:
        lowered = relax.get_default_pipeline(_TVM)(mod)
    relax.build(lowered, _TVM, relax_pipeline=None)


def timed(call: Callable[[], object]) -> tuple[float, object]:
    start = time.process_time()
    result = call()
    return time.process_time() - start, result


def exponent(operators: Sequence[int], seconds: Sequence[float]) -> float:
    """The power that fits best among the larger graphs: small ones take what a compilation always takes."""
    rows = [(n, s) for n, s in zip(operators, seconds, strict=True) if n >= 500 and s > 0]
    if len(rows) < 2:
        return 0.0
    numbers, times = np.log(np.array(rows)).T
    return float(np.polyfit(numbers, times, 1)[0])


def _row(family: str, operators: str, regions: str, figures: Sequence[float]) -> str:
    cells = [f"{figure:.2f}" if figure else "-" for figure in figures]
    return f"| {' | '.join([family, operators, regions, *cells])} |"


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="bench compile_time", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    every = ",".join(large_graphs.names())
    parser.add_argument("--graphs", default=every, help=f"comma-separated, of {every} (all)")
    parser.add_argument("--operators", default=OPERATORS, help=f"numbers of them ({OPERATORS})")
    parser.add_argument(
        "--import-only", action="store_true", help="checks and import alone: what comes behind is not run"
    )
    parser.add_argument("--no-build", dest="build", action="store_false", help="leave TVM's build out")
    parser.add_argument("--no-alone", dest="alone", action="store_false", help="leave TVM alone out")
    return parser.parse_args(arguments)


OURS = frozenset(
    (
        "BuildPrograms",
        "ChooseAlgorithms",
        "DispatchOperators",
        "EmitModules",
        "FoldConstants",
        "InferLayouts",
        "InlineBlocks",
        "NameOperators",
        "OutlineBlocks",
        "PartitionRegions",
        "PlanMemory",
        "PropagateLayouts",
        "RecoverOperators",
        "SerialSmallKernels",
        "SimplifyInference",
        "StorageRewrite",
        "WeighCandidates",
        "default_pipeline",
    )
)
"""Names of passes of this project; those of the recorder begin with Record."""
