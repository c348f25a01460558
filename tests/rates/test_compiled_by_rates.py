"""Plans go by a machine's rates: reports say which, finished compilations of others are not taken."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from costs_by_hand import rates

import tvm_mxplan
from tvm_mxplan.core.machine import MachineRates
from tvm_mxplan.rates import kept
from tvm_mxplan.testing import zoo


@pytest.fixture
def given(tmp_path: Path):
    """A file of rates with so many GFLOP/s."""

    def write(gflops: float) -> str:
        path = tmp_path / f"{gflops}.json"
        path.write_text(json.dumps(rates(gflops=gflops).to_json()))
        return str(path)

    return write


def compiled(machine: str, **options: object) -> tvm_mxplan.Report:
    report = tvm_mxplan.compile(zoo.load("tiny"), options={"machine": machine, **options}).report
    assert report.regions
    return report


@pytest.mark.slow
def test_estimates_go_by_the_rates_that_are_given(given) -> None:
    slow, fast = compiled(given(10.0)), compiled(given(1000.0))
    assert slow.regions[0].estimated_us > 1.5 * fast.regions[0].estimated_us
    assert slow.machine.startswith("given: 10 GFLOP/s float32 avx512")
    assert f"machine, {slow.machine}" in str(slow)
    assert compiled("default").machine.startswith("default: ")


def test_a_finished_compilation_by_other_rates_is_not_taken(given) -> None:
    outcomes = [
        compiled(given(gflops), cache="on_compile").cache.outcome for gflops in (100.0, 100.0, 200.0, 100.0)
    ]
    assert outcomes == ["miss", "hit", "miss", "hit"]


@pytest.mark.slow
def test_this_machine_is_measured_once(monkeypatch: pytest.MonkeyPatch, cache_folder: Path) -> None:
    from tvm_mxplan.byoc import registry

    asked = []
    engine = registry.engine("onednn")
    monkeypatch.setattr(kept, "_known", {})
    monkeypatch.setattr(engine, "machine_rates", lambda: (asked.append(1) or rates(gflops=123.0), False))
    monkeypatch.delenv("TVM_MXPLAN_MACHINE")
    assert compiled("measured").machine.split(" GFLOP/s")[0].endswith(" 120")
    report = tvm_mxplan.compile(zoo.load("tiny")).report
    assert " 120 GFLOP/s" in report.machine and len(asked) == 1
    compiled("measured", tune="off")
    tvm_mxplan.compile(zoo.load("tiny"), "llvm")
    assert len(asked) == 1


def test_another_machine_says_itself_what_it_can_do(monkeypatch: pytest.MonkeyPatch) -> None:
    from tvm_mxplan.remote import server
    from tvm_mxplan.remote.place import There

    there = There.__new__(There)
    told: list[tuple[str, int]] = []

    class Connection:
        def ask(self, name: str, *arguments: int) -> object:
            told.append((name, *arguments))
            return json.loads(json.dumps(getattr(server, name)(*arguments)))

    there._connection = Connection()
    found: list[bool] = []

    def over_there(kept: bool) -> MachineRates:
        found.append(kept)
        return rates(gflops=77.0)

    monkeypatch.setattr("tvm_mxplan.tuning.place.rates_here", over_there)
    assert there.rates(kept=True) == rates(gflops=77.0)
    assert (told, found) == ([("rates", 1)], [True])
