"""The command line of scripts/bench memory: arena bytes of memory plans, nothing is run.

For each model the plan of the Relax function that TVM alone makes of it (``relax``), and the plans inside
the regions that oneDNN gets of it (``regions``, summed). Bytes are MiB, tensors that leave the function
included; what a TVM kernel allocates while it runs is in none of the columns, what a oneDNN primitive needs
is in ``regions``:

bound         the lower bound: what any plan needs that writes the same results in place
ours          the plan; ratio, of it to the bound, is 1.000 where it is known to be the best
tensors       the lower bound without scratchpads: what tensors alone need
TVM           StaticPlanBlockMemory on the function without regions
no reuse      every tensor in bytes of its own
seconds       analysis and search
"""

from __future__ import annotations

import argparse
import itertools
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import tvm
from tvm.relax.backend.cpu_generic import pipeline as tvm_pipeline

from tvm_mxplan.byoc.onednn.backend import OneDNN
from tvm_mxplan.core.allocation import Plan, Problem, lower_bound, solve
from tvm_mxplan.frontend.onnx import import_model
from tvm_mxplan.options import Options
from tvm_mxplan.passes.memory.liveness import arena_problem
from tvm_mxplan.passes.memory.plan_memory import stacked
from tvm_mxplan.passes.region.attached import program_of, regions
from tvm_mxplan.passes.storage.stock_plan import stock_plan
from tvm_mxplan.passes.storage.storage_plan import plan_storage
from tvm_mxplan.pipeline import compilation
from tvm_mxplan.testing import zoo
from tvm_mxplan.testing.environment_info import environment, format_environment

MODELS = ",".join((*zoo.LIGHT, *zoo.BUILT))
HEADER = "| model | batch | plan | bound | ours | ratio | tensors | TVM | no reuse | seconds | status |"
RULE = "| --- | ---: | --- |" + " ---: |" * 7 + " --- |"
_TARGET = tvm.target.Target("llvm")


@dataclass
class Figures:
    """Bytes of one or several plans; ``tvm`` is None where TVM has no plan."""

    kind: str
    bound: int = 0
    ours: int = 0
    tensors: int = 0
    tvm: int | None = None
    no_reuse: int = 0
    seconds: float = 0.0
    statuses: tuple[str, ...] = ()

    def outside(self, nbytes: int) -> None:
        """Count bytes that no plan can do without."""
        self.bound, self.ours, self.tensors = self.bound + nbytes, self.ours + nbytes, self.tensors + nbytes

    def add(self, plan: Plan, tensors: int, no_reuse: int, seconds: float) -> None:
        self.bound += plan.lower_bound
        self.ours += plan.height
        self.tensors += tensors
        self.no_reuse += no_reuse
        self.seconds += seconds
        self.statuses = (*self.statuses, plan.status.name.lower())

    def row(self, model: str, batch: int) -> str:
        status = ", ".join(sorted(set(self.statuses)))
        ratio = f"{self.ours / self.bound:.3f}" if self.bound else "-"
        nbytes = [_mib(number) for number in (self.bound, self.ours, self.tensors, self.tvm, self.no_reuse)]
        cells = [model, str(batch), self.kind, *nbytes[:2], ratio, *nbytes[2:], f"{self.seconds:.2f}", status]
        return f"| {' | '.join(cells)} |"


def main(arguments: Sequence[str] | None = None) -> int:
    """Print a table in Markdown; returns the exit status."""
    options = _parse(arguments)
    print(format_environment(environment(Path(__file__).resolve().parents[3])))
    print(f"\n{HEADER}\n{RULE}")
    for name, batch in itertools.product(options.models.split(","), options.batch.split(",")):
        for figures in _figures(name, int(batch), _planned_with(options)):
            print(figures.row(name, int(batch)), flush=True)
    return 0


def _planned_with(options: argparse.Namespace) -> Options:
    return Options(order=options.order, convolutions=options.convolutions)


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="bench memory", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--models", default=MODELS, help="comma-separated names from the zoo")
    parser.add_argument("--order", default="keep", choices=("keep", "memory"), help="the option (keep)")
    parser.add_argument("--convolutions", default="cost", help="the option (cost)")
    parser.add_argument("--batch", default="1,8", help="batches (1,8)")
    return parser.parse_args(arguments)


def _figures(name: str, batch: int, options: Options) -> Iterator[Figures]:
    with _TARGET:
        imported = import_model(zoo.load(name, batch), None, name)
        mod = compilation([OneDNN()], options, _TARGET).run(imported, "canonicalize", "canonicalize")
        relax_figures = _relax_figures(_lowered(mod))
        yield relax_figures
        yield _region_figures(mod, options, relax_figures.tvm)


def _lowered(mod: tvm.IRModule) -> tvm.IRModule:
    """Lowers a module to the form that TVM's planner would get."""
    passes = (
        tvm_pipeline.library_dispatch_passes(_TARGET)
        + tvm_pipeline.legalize_passes(_TARGET)
        + tvm_pipeline.dataflow_lower_passes(_TARGET)
    )
    return tvm.transform.Sequential(passes)(mod)


def _relax_figures(mod: tvm.IRModule) -> Figures:
    gvar = mod.get_global_var("main")
    start = time.perf_counter()
    planned = plan_storage(mod, gvar)
    seconds = time.perf_counter() - start
    placed = {number for group in planned.problem.groups for number in group}
    sizes = [_rounded(tensor.size.nbytes) for tensor in planned.trace.tensors if tensor.size]
    own = sum(size for number, size in enumerate(sizes) if number not in placed)
    stock = stock_plan(mod, gvar)
    figures = Figures("relax", tvm=stock.total if stock else None)
    figures.outside(own)
    figures.add(planned.plan, planned.plan.height, sum(sizes), seconds)
    return figures


def _region_figures(mod: tvm.IRModule, options: Options, stock: int | None) -> Figures:
    backend = OneDNN()
    mod = compilation([backend], options, _TARGET).run(mod, "dispatch", "memory")
    figures = Figures("regions", tvm=stock)
    for _, function in regions(mod, backend.name):
        program = program_of(function)
        leaving = sum(_rounded(program.values[output].nbytes) for output in program.of_kind("output"))
        figures.outside(leaving)
        start = time.perf_counter()
        posed = arena_problem(program)
        problem = posed.problem
        plan = solve(problem)
        seconds = time.perf_counter() - start
        tensors = lower_bound(Problem(problem.items[: len(posed.values)]))
        figures.add(plan, tensors, stacked(problem).height + leaving, seconds)
    return figures


def _mib(nbytes: int | None) -> str:
    return "-" if nbytes is None else f"{nbytes / 2**20:.2f}"


def _rounded(nbytes: int) -> int:
    return -(-nbytes // 64) * 64
