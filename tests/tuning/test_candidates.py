"""Whole plans within what a user left open."""

from __future__ import annotations

import pytest

from tvm_mxplan.core.policies import POLICIES
from tvm_mxplan.options import Options
from tvm_mxplan.tuning.candidates import PlanCandidate, candidates_for

MEASURE = {"tune": "measure"}


def test_every_policy_of_ours_takes_part():
    found = candidates_for(Options(**MEASURE), measures=True)
    assert found[0] == PlanCandidate("cost", "cost", True, True)
    assert found[1] == PlanCandidate("cost", "cost", False, False)
    assert {c.policy for c in found} == set(POLICIES) - {"plain", "naive"}
    for policy in ("cost", "channels_last", "any", "blocked"):
        assert {"cost", "direct"} <= {c.rule for c in found if c.policy == policy}
    assert len({candidate.name for candidate in found}) == len(found)


@pytest.mark.parametrize("policy", ["any", "channels_last", "naive"])
def test_a_policy_that_was_given_stands(policy):
    assert {c.policy for c in candidates_for(Options(layouts=policy, **MEASURE), True)} == {policy}


@pytest.mark.parametrize("rule", ["direct", "winograd_f2", "winograd_f4"])
def test_a_rule_that_was_given_stands(rule):
    found = candidates_for(Options(convolutions=rule, **MEASURE), True)
    assert {c.rule for c in found} == {rule}
    assert len({c.policy for c in found}) == 4


def test_plain_images_have_no_winograd():
    assert [c.rule for c in candidates_for(Options(layouts="plain", **MEASURE), True)] == ["direct"]


def test_without_times_of_operators_costs_are_the_models():
    found = candidates_for(Options(**MEASURE), measures=False)
    assert not any(c.timed_rule or c.timed_policy for c in found)
    assert len(found) == len(set(found)) == 9
