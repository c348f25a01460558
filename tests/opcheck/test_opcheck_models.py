"""Whole networks, every step of them right, under every layout policy (by cost: test_models.py)."""

from __future__ import annotations

import pytest

import tvm_mxplan
from tvm_mxplan import opcheck
from tvm_mxplan.core.policies import POLICIES
from tvm_mxplan.testing import zoo


def check(name: str, policy: str) -> None:
    model = zoo.load(name)
    ex = tvm_mxplan.compile(model, options={"layouts": policy})
    (region,) = ex.report.regions
    result = opcheck.check(ex, **zoo.random_inputs(model))
    assert result.steps == len(region.steps)
    assert result.first is None, result


@pytest.mark.slow
@pytest.mark.parametrize("policy", POLICIES)
def test_a_model_under_every_policy(policy):
    check("squeezenet", policy)


@pytest.mark.slow
@pytest.mark.parametrize("policy", [policy for policy in POLICIES if policy != "cost"])
def test_branches_under_every_other_policy(policy):
    check("inception_v1", policy)


def test_symbolic_batch_and_a_loaded_library(tmp_path):
    model = zoo.load("tiny", batch="N")
    tvm_mxplan.compile(model).export(tmp_path / "tiny.so")
    ex = tvm_mxplan.load(tmp_path / "tiny.so")
    (region,) = ex.report.regions
    for batch in (1, 3):
        result = opcheck.check(ex, **zoo.random_inputs(model, batch=batch))
        assert (result.steps, result.first) == (len(region.steps), None)
