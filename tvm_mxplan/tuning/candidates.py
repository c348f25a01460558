"""Which whole plans are worth comparing: layout policies, rules for algorithms, and sources of costs."""

from __future__ import annotations

from dataclasses import dataclass

from ..options import Options
from ..passes.dispatch.convolutions import Rule
from ..passes.layout.candidates import Policy


@dataclass(frozen=True)
class Candidate:
    """A way to decide algorithms and layouts.

    Attributes
    ----------
    measured : costs are measured as far as can be; else they are the model's.
    """

    policy: Policy
    rule: Rule
    measured: bool

    @property
    def name(self) -> str:
        costs = "measured" if self.measured else "model"
        return f"layouts={self.policy} convolutions={self.rule} by {costs} costs"


def candidates_for(options: Options, measures: bool) -> list[Candidate]:
    """Plans within what the user left open, the likeliest to win first.

    Parameters
    ----------
    measures : whether costs can be measured.
    """
    policies: list[Policy] = ["cost", "channels_last", "any", "blocked"]
    if options.policy != "cost":
        policies = [options.policy]
    rules: list[Rule] = ["cost", "direct"] if options.rule == "cost" else [options.rule]
    found = [Candidate(policies[0], rules[0], measures), Candidate(policies[0], rules[0], False)]
    found += [Candidate(policy, rules[0], measures) for policy in policies[1:3]]
    found += [Candidate(policy, rule, measures) for rule in rules[1:] for policy in policies[:3]]
    if options.rule == "cost":
        found.append(Candidate(policies[0], "winograd_f4", measures))
    found += [Candidate(policy, rule, measures) for rule in rules for policy in policies[3:]]
    return list(dict.fromkeys(found))
