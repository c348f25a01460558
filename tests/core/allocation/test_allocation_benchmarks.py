"""Published hard problems (google/minimalloc) and a big one, with the heights that must be reached."""

from pathlib import Path

import pytest
from allocation_cases import many_buffers, residual_network

from tvm_mxplan.core.allocation import read_csv, solve, validate

DATA = Path(__file__).resolve().parents[4] / "shared" / "data" / "minimalloc"
needs_data = pytest.mark.skipif(not DATA.is_dir(), reason=f"the minimalloc problems are not at {DATA}")
EASY = [("A", 1_048_576), ("C", 1_039_360), ("G", 1_048_576), ("H", 1_048_576)]
HARD = [("D", 1_048_576), ("J", 1_048_576)]


@needs_data
@pytest.mark.parametrize("name, height", EASY)
def test_problems_whose_bound_can_be_reached(name: str, height: int) -> None:
    problem = read_csv(DATA / f"{name}.1048576.csv")
    plan = solve(problem)
    assert validate(problem, plan) == []
    assert plan.height == plan.lower_bound == height


@needs_data
@pytest.mark.parametrize("name, height", HARD)
def test_problems_whose_bound_cannot(name: str, height: int) -> None:
    problem = read_csv(DATA / f"{name}.1048576.csv", capacity=height)
    plan = solve(problem, fit_only=True, max_nodes=100_000)
    assert validate(problem, plan) == []


@needs_data
@pytest.mark.slow
@pytest.mark.parametrize("name, height", HARD)
def test_the_capacity_is_met_without_being_named(name: str, height: int) -> None:
    problem = read_csv(DATA / f"{name}.1048576.csv")
    plan = solve(problem)
    assert validate(problem, plan) == []
    assert plan.height <= height


@pytest.mark.slow
def test_twenty_thousand_buffers() -> None:
    problem = many_buffers(20_000)
    plan = solve(problem, max_nodes=0)
    assert validate(problem, plan) == []
    assert plan.height <= 1.01 * plan.lower_bound


@pytest.mark.slow
def test_a_long_chain_needs_no_search() -> None:
    problem = residual_network(2500)
    plan = solve(problem)
    assert len(problem.items) > 10_000
    assert validate(problem, plan) == []
    assert (plan.height, plan.nodes) == (plan.lower_bound, 0)
