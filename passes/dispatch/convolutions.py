"""Which algorithm computes each convolution: the direct sum, or Winograd's with fewer multiplications.

Every algorithm costs what it costs in its best layout; all of them work in the same layouts, so the choice
can be made before that of layouts.  An algorithm other than the direct one also has an error of its own.
Errors of steps add up along a program, to first order, and their sum is held below a limit: the steps that
gain the most time choose first.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from tvm_mxplan.core import program as ir
from tvm_mxplan.core.policies import Rule
from tvm_mxplan.core.specialize import typical

from ..layout.candidates import options_of
from ..layout.costs import StepCost
from ..layout.queries import StepQueries


@dataclass(frozen=True)
class Candidate:
    """One algorithm for one step: microseconds, and the relative error it adds."""

    algorithm: ir.ConvolutionAlgorithm
    cost: float
    error: float


def choose_algorithms(
    program: ir.Program,
    queries: StepQueries,
    cost: StepCost,
    block: int,
    *,
    rule: Rule = "cost",
    max_error: float,
    margin: float,
) -> ir.Program:
    """The program with an algorithm in every convolution.

    Parameters
    ----------
    rule : ``cost``, or the algorithm to use wherever it exists and ``max_error`` allows it.
    max_error : limit on the sum of the errors of all steps.
    margin : share of the direct cost that another algorithm has to stay below; costs are estimates.
    """
    concrete = typical(program)
    candidates = {
        number: candidates_of(concrete, step, queries, cost, block)
        for number, step in enumerate(concrete.steps)
        if isinstance(step.attrs, ir.Convolution)
    }
    chosen = decide(candidates, rule, max_error, margin)
    steps = list(program.steps)
    for number, algorithm in chosen.items():
        steps[number] = with_algorithm(steps[number], algorithm)
    return replace(program, steps=tuple(steps))


def candidates_of(
    program: ir.Program, step: ir.Step, queries: StepQueries, cost: StepCost, block: int
) -> list[Candidate]:
    """What can compute ``step``, each at its cost in the layout that suits it best."""
    result = []
    for algorithm in ir.CONVOLUTION_ALGORITHMS:
        variant = with_algorithm(step, algorithm)
        costs, errors = [], []
        for layouts in options_of(program, variant, block):
            info = queries.ask(program, variant, layouts)
            if not info.error and not info.is_reference:
                costs.append(cost(program, variant, layouts, info))
                errors.append(info.relative_error)
        if costs:
            result.append(Candidate(algorithm, min(costs), max(errors)))
    return result


def decide(
    candidates: dict[int, list[Candidate]], rule: Rule, max_error: float, margin: float
) -> dict[int, ir.ConvolutionAlgorithm]:
    """An algorithm for each step that has candidates."""
    offers: list[tuple[float, int, Candidate]] = []
    for number, options in candidates.items():
        direct = next((option.cost for option in options if option.algorithm == "direct"), float("inf"))
        for option in options:
            gain = direct - option.cost
            wanted = option.cost < margin * direct if rule == "cost" else option.algorithm == rule
            if option.algorithm != "direct" and wanted:
                offers.append((gain, number, option))
    chosen: dict[int, ir.ConvolutionAlgorithm] = dict.fromkeys(candidates, "direct")
    left = max_error
    for _, number, option in sorted(offers, key=lambda offer: -offer[0]):
        if chosen[number] == "direct" and option.error <= left:
            chosen[number] = option.algorithm
            left -= option.error
    return chosen


def with_algorithm(step: ir.Step, algorithm: ir.ConvolutionAlgorithm) -> ir.Step:
    """The convolution ``step`` computed another way."""
    assert isinstance(step.attrs, ir.Convolution)
    return replace(step, attrs=replace(step.attrs, algorithm=algorithm))
