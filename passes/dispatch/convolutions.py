"""Chooses the algorithm of each convolution, transposed ones too: the direct sum, or Winograd's with fewer
multiplications.

Every algorithm costs what it costs in its best layout; all of them work in the same layouts, so the choice
can be made before that of layouts.  An algorithm other than the direct one also has an error of its own.
Errors of steps add up along a program, to first order, and their sum is held below a limit.  What gains most,
or most for its error, comes first, and the best beginning of such an order within the limit is taken.  The
orders do not depend on the limit: a larger one never leads to algorithms that gain less.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from tvm_mxplan.core.decisions.dispatch import Candidate, Source, Weighed
from tvm_mxplan.core.policies import ConvolutionAlgorithm, Rule
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
    direct = {number: option for number, options in candidates.items() if (option := _direct(options))}
    # What cannot be computed directly gains more than all others together.
    none = 1.0 + sum(option.cost_us or 0.0 for options in candidates.values() for option in options)

    def gain(number: int, option: Candidate) -> float:
        if rule != "cost":
            return 1.0  # wherever it fits, whatever it costs
        return (_cost(direct[number]) if number in direct else none) - _cost(option)

    offers = [
        _Offer(number, option, gain(number, option))
        for number, options in candidates.items()
        for option in wanted_others(options, rule, margin)
    ]
    best: dict[int, _Offer] = {}
    for limit in sorted({offer.error for offer in offers if offer.error <= max_error}, reverse=True):
        small = [offer for offer in offers if offer.error <= limit]
        for order in (sorted(small, key=lambda offer: -offer.gain), _by_gain_for_error(small)):
            found = _as_far_as(order, max_error)
            if _gain(found) > _gain(best):
                best = found
    return direct | {number: offer.option for number, offer in best.items()}


class _Offer(NamedTuple):
    """An algorithm in place of the direct sum of a step, and how much time it gains."""

    number: int
    option: Candidate
    gain: float

    @property
    def error(self) -> float:
        return self.option.relative_error


def _as_far_as(order: Sequence[_Offer], max_error: float) -> dict[int, _Offer]:
    """The offers up to the first that does not fit; of one step, the one that gains most.

    None behind that one: with a larger bound it fits, and may leave no room for several behind it.
    """
    found: dict[int, _Offer] = {}
    for offer in order:
        known = found.get(offer.number)
        if known is not None and known.gain >= offer.gain:
            continue
        more = found | {offer.number: offer}
        if math.fsum(one.error for one in more.values()) > max_error:
            break
        found = more
    return found


def _by_gain_for_error(offers: Sequence[_Offer]) -> list[_Offer]:
    """Offers, those first that gain most for what they err more than the one before of the same step."""
    rest: dict[int, list[_Offer]] = {}
    for offer in offers:
        rest.setdefault(offer.number, []).append(offer)
    order: list[tuple[float, _Offer]] = []
    for own in rest.values():
        gain = error = 0.0
        last = math.inf
        while own := [offer for offer in own if offer.gain > gain]:
            rate, offer = max(((_rate(one.gain - gain, one.error - error), one) for one in own), key=_first)
            last = min(last, rate)  # a dearer one never comes before a cheaper one of its step
            order.append((last, offer))
            gain, error = offer.gain, offer.error
    return [offer for _, offer in sorted(order, key=lambda one: -one[0])]


def _rate(gain: float, error: float) -> float:
    return gain / error if error > 0.0 else math.inf


def _first(pair: tuple[float, _Offer]) -> float:
    return pair[0]


def _gain(chosen: Mapping[int, _Offer]) -> float:
    return sum(offer.gain for offer in chosen.values())


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


def with_algorithm(step: ir.Step, algorithm: ConvolutionAlgorithm) -> ir.Step:
    """The convolution ``step`` computed another way."""
    assert isinstance(step.attrs, ir.Convolution | ir.Deconvolution)
    return replace(step, attrs=replace(step.attrs, algorithm=algorithm))
