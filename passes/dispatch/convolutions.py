"""Chooses the algorithm of each convolution, transposed ones too: the direct sum, or Winograd's with fewer
multiplications.

Every algorithm costs what it costs in its best layout; all of them work in the same layouts, so the choice
can be made before that of layouts.  An algorithm other than the direct one also has an error of its own.
Errors of steps add up along a program, to first order, and their sum is held below a limit: the steps that
gain the most time choose first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from tvm_mxplan.core.decisions.dispatch import Candidate, Source, Weighed
from tvm_mxplan.core.policies import Rule
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.core.program.specialize import typical

from ..costs.source import StepCost
from ..layout.candidates import RulesOf, options_of
from ..layout.queries import StepQueries

_NONE = Candidate(algorithm="direct")


class ChosenAlgorithms(NamedTuple):
    """A program with algorithms, and those that were not chosen, by the steps' names."""

    program: ir.Program
    weighed: Weighed


def choose_algorithms(
    program: ir.Program,
    queries: StepQueries,
    cost: StepCost,
    rules: RulesOf,
    *,
    rule: Rule = "cost",
    max_error: float,
    margin: float,
) -> ChosenAlgorithms:
    """The program with an algorithm in every convolution.

    Parameters
    ----------
    rule : ``cost``, or the algorithm to use wherever it exists and ``max_error`` allows it.
    max_error : limit on the sum of the errors of all steps.
    margin : share of the direct cost that another algorithm has to stay below; costs are estimates.
    """
    concrete = typical(program)
    candidates = {
        number: candidates_of(concrete, step, queries, cost, rules)
        for number, step in enumerate(concrete.steps)
        if isinstance(step.attrs, ir.Convolution | ir.Deconvolution)
    }
    decided = decide(candidates, rule, max_error, margin)
    steps, weighed = list(program.steps), {}
    for number, options in decided.items():
        chosen = next((option.algorithm for option in options if not option.out), "direct")
        steps[number] = with_algorithm(steps[number], chosen)  # type: ignore[arg-type]
        weighed[steps[number].name] = [option for option in options if option.out]
    return ChosenAlgorithms(replace(program, steps=tuple(steps)), weighed)


def candidates_of(
    program: ir.Program, step: ir.Step, queries: StepQueries, cost: StepCost, rules: RulesOf
) -> list[Candidate]:
    """Every algorithm for ``step``, at its cost in the layout that suits it best; impossible ones are out."""
    result = []
    for algorithm in ir.CONVOLUTION_ALGORITHMS:
        variant = with_algorithm(step, algorithm)
        options, reason = [], ""
        for layouts in options_of(program, variant, rules(variant)):
            info = queries.ask(program, variant, layouts)
            if info.error or info.is_reference:
                reason = reason or info.error or "the library has nothing but reference code"
                continue
            options.append((cost(program, variant, layouts, info), layouts, info))
        if not options:
            # Questions are about steps without names.
            result.append(Candidate(algorithm=algorithm, out=reason.removeprefix(f"{step.kind} : ")))
            continue
        least, layouts, info = min(options, key=lambda option: option[0])
        error = max(info.relative_error for _, _, info in options)
        source: Source = "measured" if cost.knows(program, variant, layouts) else "model"
        result.append(
            Candidate("", info.implementation, (), algorithm, round(least, 2), source, relative_error=error)
        )
    return result


def wanted_others(candidates: Sequence[Candidate], rule: Rule, margin: float) -> list[Candidate]:
    """The candidates of one step that may take the place of the direct sum, whatever they err."""
    direct = _direct(candidates)
    return [
        option
        for option in candidates
        if option.algorithm != "direct" and not option.out and _is_wanted(option, direct, rule, margin)
    ]


def decide(
    candidates: Mapping[int, Sequence[Candidate]], rule: Rule, max_error: float, margin: float
) -> dict[int, list[Candidate]]:
    """The candidates of each step, all but the chosen one with reasons; without any left, it is direct."""
    chosen = _choose(candidates, rule, max_error, margin)
    left = max_error - sum(option.relative_error for option in chosen.values())
    return {
        number: [
            option
            if option.out or option is chosen.get(number)
            else replace(option, out=_reason(option, chosen.get(number, _NONE), options, rule, margin, left))
            for option in options
        ]
        for number, options in candidates.items()
    }


def _choose(
    candidates: Mapping[int, Sequence[Candidate]], rule: Rule, max_error: float, margin: float
) -> dict[int, Candidate]:
    offers: list[tuple[float, int, Candidate]] = []
    chosen: dict[int, Candidate] = {}
    for number, options in candidates.items():
        direct = _direct(options)
        if direct is not None:
            chosen[number] = direct
        for option in wanted_others(options, rule, margin):
            offers.append((_cost(direct) - _cost(option), number, option))
    left = max_error
    for _, number, option in sorted(offers, key=lambda offer: -offer[0]):
        taken = number in chosen and chosen[number].algorithm != "direct"
        if not taken and option.relative_error <= left:
            chosen[number] = option
            left -= option.relative_error
    return chosen


def _direct(options: Sequence[Candidate]) -> Candidate | None:
    return next((option for option in options if option.algorithm == "direct" and not option.out), None)


def _cost(option: Candidate | None) -> float:
    return float("inf") if option is None or option.cost_us is None else option.cost_us


def _is_wanted(option: Candidate, direct: Candidate | None, rule: Rule, margin: float) -> bool:
    return _cost(option) < margin * _cost(direct) if rule == "cost" else option.algorithm == rule


def _reason(
    option: Candidate, chosen: Candidate, options: Sequence[Candidate], rule: Rule, margin: float, left: float
) -> str:
    """Returns the reason why ``option``, which is possible, is not chosen."""
    if option.algorithm == "direct":
        return f"{chosen.algorithm} costs less" if rule == "cost" else f"option convolutions={rule}"
    if rule not in ("cost", option.algorithm):
        return f"option convolutions={rule}"
    if not _is_wanted(option, _direct(options), rule, margin):
        if _cost(option) >= _cost(chosen):
            return f"costs more than {chosen.algorithm}"
        return f"costs less than {chosen.algorithm}, but not below {margin:.2g} of it, as it has to"
    if rule == "cost" and _cost(chosen) <= _cost(option):
        return f"costs more than {chosen.algorithm}"
    return f"over max_relative_error: adds {option.relative_error:.2g} where {max(left, 0.0):.2g} is left"


def with_algorithm(step: ir.Step, algorithm: ir.ConvolutionAlgorithm) -> ir.Step:
    """The convolution ``step`` computed another way."""
    assert isinstance(step.attrs, ir.Convolution | ir.Deconvolution)
    return replace(step, attrs=replace(step.attrs, algorithm=algorithm))
