"""Counters and capacities of the process's caches, from Python and from the environment."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import pytest

import tvm_mxplan
from tvm_mxplan.testing import zoo

SHOW = """
import tvm, tvm_mxplan
caches = tvm_mxplan.cache_statistics()
print(caches["primitives"].most_entries, caches["weights"].most_bytes)
"""


def show(**variables: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, **variables}
    return subprocess.run([sys.executable, "-c", SHOW], capture_output=True, text=True, env=environment)


def test_a_model_counts() -> None:
    before = tvm_mxplan.cache_statistics()
    ex = tvm_mxplan.compile(zoo.load(zoo.TINY, seed=41))
    ex(**zoo.random_inputs(zoo.load(zoo.TINY), seed=1))
    after = tvm_mxplan.cache_statistics()
    assert after["weights"].misses > before["weights"].misses
    assert after["primitives"].hits > before["primitives"].hits  # planning has made them


def test_a_capacity_that_is_not_given_stays() -> None:
    before = tvm_mxplan.cache_statistics()["weights"]
    tvm_mxplan.set_cache_capacity("weights", entries=7)
    now = tvm_mxplan.cache_statistics()["weights"]
    tvm_mxplan.set_cache_capacity("weights", entries=before.most_entries)
    assert (now.most_entries, now.most_bytes) == (7, before.most_bytes)


@pytest.mark.parametrize(
    "cache, bounds, message",
    [
        ("kernels", {"entries": 1}, "no cache 'kernels'; expected one of primitives, weights"),
        ("weights", {"bytes": -1}, "bytes=-1; expected a whole number from 0"),
        ("weights", {"entries": 1.5}, "entries=1.5"),
        ("primitives", {"entries": True}, "entries=True"),
    ],
)
def test_wrong_capacities_are_named(cache: str, bounds: dict[str, Any], message: str) -> None:
    with pytest.raises(tvm_mxplan.InvalidInputError, match=message):
        tvm_mxplan.set_cache_capacity(cache, **bounds)


def test_options_set_capacities() -> None:
    before = tvm_mxplan.cache_statistics()
    tvm_mxplan.compile(zoo.load(zoo.TINY), options={"primitive_cache": 9, "weights_cache": 2})
    now = tvm_mxplan.cache_statistics()
    for name in now:
        then = before[name]
        tvm_mxplan.set_cache_capacity(name, entries=then.most_entries, bytes=then.most_bytes)
    assert now["primitives"].most_entries == 9
    assert now["weights"].most_entries == before["weights"].most_entries
    assert now["weights"].most_bytes == 2 << 20


@pytest.mark.slow
def test_options_come_before_the_environment() -> None:
    code = "import tvm_mxplan; from tvm_mxplan.testing import zoo\n"
    code += "tvm_mxplan.compile(zoo.load(zoo.TINY), options={'primitive_cache': 11})"
    variables = {**os.environ, "TVM_MXPLAN_PRIMITIVE_CACHE": "5", "TVM_MXPLAN_WEIGHTS_CACHE": "3"}
    command = [sys.executable, "-c", f"{code}\n{SHOW}"]
    answer = subprocess.run(command, capture_output=True, text=True, env=variables)
    assert answer.stdout.split() == ["11", str(3 * 2**20)], answer.stderr


@pytest.mark.parametrize("option", ["primitive_cache", "weights_cache"])
@pytest.mark.parametrize("value", [-1, 1.5, True, "7"])
def test_wrong_options_are_named(option: str, value: object) -> None:
    with pytest.raises(tvm_mxplan.InvalidInputError, match=f"option {option}=.*a whole number from 0"):
        tvm_mxplan.Options(**{option: value})


@pytest.mark.slow
def test_the_environment_sets_capacities() -> None:
    answer = show(TVM_MXPLAN_PRIMITIVE_CACHE="5", TVM_MXPLAN_WEIGHTS_CACHE="3")
    assert answer.stdout.split() == ["5", str(3 * 2**20)], answer.stderr


@pytest.mark.slow
def test_a_wrong_variable_is_named() -> None:
    answer = show(TVM_MXPLAN_WEIGHTS_CACHE="all")
    assert "TVM_MXPLAN_WEIGHTS_CACHE='all'; expected a whole number from 0" in answer.stderr
    assert answer.returncode == 0  # TVM warns and goes on
