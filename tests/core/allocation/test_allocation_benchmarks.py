"""Published hard problems (google/minimalloc) and a big one, with the heights that must be reached."""

import time
from pathlib import Path

import pytest
from allocation_cases import many_buffers

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
@pytest.mark.slow
@pytest.mark.parametrize("capacity", [None, 1_048_576])
@pytest.mark.parametrize("name, height", HARD)
def test_problems_whose_bound_cannot(name: str, height: int, capacity: int | None) -> None:
    problem = read_csv(DATA / f"{name}.1048576.csv", capacity=capacity)
    begin = time.process_time()
    plan = solve(problem)
    assert time.process_time() - begin < 30
    assert validate(problem, plan) == []
    assert plan.height <= height


@pytest.mark.slow
def test_twenty_thousand_buffers() -> None:
    problem = many_buffers(20_000)
    begin = time.process_time()
    plan = solve(problem)
    assert time.process_time() - begin < 60
    assert validate(problem, plan) == []
    assert plan.height <= 1.01 * plan.lower_bound
