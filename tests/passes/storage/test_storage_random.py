"""Random Relax functions: the same numbers with StorageRewrite, with TVM's planner and with no reuse at all.

TVM's planner crashes on branches in 0.27 (tvm 20191), so its numbers are compared where there are none; its
bytes always.
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import relax_programs as rp
from random_relax import RandomFunction
from tvm import relax

from tvm_mxplan.passes.storage import StorageRewrite

SEEDS = [*range(12), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(12, 120))]


@pytest.mark.parametrize("seed", SEEDS)
def test_random_functions(seed: int) -> None:
    function = RandomFunction(seed, length=12 + seed % 30, branches=seed % 3)
    lowered = rp.lower(function.module(), dataflow=seed % 2 == 1)
    stock = relax.transform.StaticPlanBlockMemory()
    planners = [StorageRewrite()] if function.conditions else [StorageRewrite(), stock]
    plain, *planned = (rp.build(lowered, planner) for planner in (None, *planners))
    tensors = [rp.normal(seed, 4, 6), rp.normal(seed + 1, 4, 6)]
    decisions = itertools.islice(itertools.product((True, False), repeat=function.conditions), 8)
    for decision in decisions:
        inputs = [*tensors, *(np.array(choice) for choice in decision)]
        expected = rp.run(plain, *inputs)
        for vm in planned:
            rp.assert_same(rp.run(vm, *inputs), expected)
    assert rp.total_bytes(StorageRewrite()(lowered)) <= rp.total_bytes(stock(lowered))


@pytest.mark.slow
def test_random_functions_exercise_the_planner() -> None:
    """Reuse, results in place and joined branches occur, or the test above would say nothing."""
    saved = in_place = joined = 0
    for seed in range(12):
        function = RandomFunction(seed, length=12 + seed % 30, branches=seed % 3)
        lowered = rp.lower(function.module(), dataflow=seed % 2 == 1)
        rewritten = StorageRewrite()(lowered)
        saved += rp.total_bytes(lowered) - rp.total_bytes(rewritten)
        in_place += sum(name.partition("_in_place")[1] != "" for name in rp.kernels(rewritten))
        joined += function.conditions
    assert saved > 0 and in_place > 0 and joined > 0
