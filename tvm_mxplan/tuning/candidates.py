"""Lists the whole plans to compare: layout policies, rules for algorithms, and sources of costs."""

from __future__ import annotations

from dataclasses import dataclass

from ..core.policies import Policy, Rule
from ..options import Options


@dataclass(frozen=True)
class PlanCandidate:
    """A way to decide algorithms and layouts.

    Attributes
    ----------
    timed_rule, timed_policy : whether costs are measured, as far as can be, for algorithms and for layouts;
        else they are the model's.  Operators alone find their data in caches that a whole plan empties, so
        the model may be right where the measurement is not.
    """

    policy: Policy
    rule: Rule
    timed_rule: bool
    timed_policy: bool

    @property
    def name(self) -> str:
        return (
            f"layouts={_choice(self.policy, self.timed_policy)} "
            f"convolutions={_choice(self.rule, self.timed_rule)}"
        )


def candidates_for(options: Options, measures: bool) -> list[PlanCandidate]:
    """Plans within what the user left open, the likeliest to win first.

    Parameters
    ----------
    measures : whether costs can be measured.
    """
    policies: list[Policy] = ["cost", "channels_last", "any", "blocked"]
    if options.policy != "cost":
        policies = [options.policy]
    rules: list[Rule] = ["cost", "direct", "winograd_f4"] if options.rule == "cost" else [options.rule]
    pairs = [(measures, measures), (False, False), (False, measures), (measures, False)]
    found = [
        PlanCandidate(policy, rule, timed_rule and rule == "cost", timed_policy and policy == "cost")
        for rule in rules
        for policy in policies
        for timed_rule, timed_policy in pairs
        if rule != "winograd_f4" or policy == policies[0] or options.rule != "cost"
    ]
    return list(dict.fromkeys(found))


def _choice(choice: str, timed: bool) -> str:
    return f"{choice} (timed)" if timed else f"{choice} (model)" if choice == "cost" else choice
