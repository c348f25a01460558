"""Rates are measured once, kept rounded, read again, and a file that is damaged or foreign is a miss."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from costs_by_hand import rates

from tvm_mxplan.byoc import registry
from tvm_mxplan.core.machine import MachineRates, default_rates
from tvm_mxplan.errors import InvalidInputError, UnsupportedError
from tvm_mxplan.options import Options
from tvm_mxplan.rates import kept
from tvm_mxplan.rates.wanted import wanted_rates

FOUND = replace(rates(gflops=213.0, gbytes=36.7), source="measured")


class Machine:
    """An engine that measures what it is told, and counts."""

    def __init__(self, *rounds: tuple[MachineRates, bool]) -> None:
        self.rounds = list(rounds)
        self.count = 0

    def machine_rates(self) -> tuple[MachineRates, bool]:
        self.count += 1
        return self.rounds[min(self.count, len(self.rounds)) - 1]


@pytest.fixture
def measuring(monkeypatch: pytest.MonkeyPatch):
    """Let a machine be measured by ``Machine(*rounds)``."""

    def use(*rounds: tuple[MachineRates, bool]) -> Machine:
        machine = Machine(*rounds)
        monkeypatch.setattr(registry, "engines", lambda: [machine])
        return machine

    monkeypatch.setattr(registry, "facts", dict)
    monkeypatch.setattr(registry, "kernel_environment", dict)
    monkeypatch.setattr(kept, "threads", lambda: 2)
    monkeypatch.setattr(kept, "_known", {})
    return use


def another_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept, "_known", {})


def test_once_for_all_processes(measuring, monkeypatch, cache_folder: Path) -> None:
    machine = measuring((FOUND, False))
    first = kept.rates_here()
    assert first == FOUND.rounded() != FOUND
    assert kept.rates_here() == first
    another_process(monkeypatch)
    assert kept.rates_here() == first
    assert machine.count == 1
    (file,) = (cache_folder / "machine").iterdir()
    assert file.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("damage", ["cut", "rate", "machine", "link", "others", "nested"])
def test_a_damaged_or_foreign_file_is_a_miss(measuring, monkeypatch, cache_folder: Path, damage: str) -> None:
    machine = measuring((FOUND, False))
    kept.rates_here()
    (file,) = (cache_folder / "machine").iterdir()
    data = json.loads(file.read_text())
    if damage == "cut":
        file.write_text(file.read_text()[:100])
    elif damage == "rate":
        data["rates"]["compute"][0][2] *= 2
        file.write_text(json.dumps(data))
    elif damage == "machine":
        data["machine"]["CPU"] = "another"
        del data["check"]
        file.write_text(json.dumps({**data, "check": kept._check(data)}))
    elif damage == "link":
        file.rename(cache_folder / "elsewhere")
        file.symlink_to(cache_folder / "elsewhere")
    elif damage == "others":
        file.chmod(0o666)
    else:
        file.write_text("[" * 100_000)
    another_process(monkeypatch)
    assert kept.rates_here() == FOUND.rounded()
    assert machine.count == 2
    another_process(monkeypatch)
    kept.rates_here()
    assert machine.count == 2, "what was measured again is kept"


def test_what_was_disturbed_is_measured_again_and_the_better_numbers_stay(measuring, monkeypatch) -> None:
    slow = replace(rates(gflops=90.0, gbytes=47.0), source="measured", fork_us=80.0)
    machine = measuring((slow, True), (FOUND, True), (slow, True))
    assert kept.rates_here() == slow.rounded()
    assert kept.rates_here() == slow.rounded() and machine.count == 1
    another_process(monkeypatch)
    best = kept.rates_here()
    assert best.gflops("float32") == FOUND.rounded().gflops("float32")
    assert (best.memory.read, best.fork_us) == (47.0, 1.5)
    for _ in range(3):
        another_process(monkeypatch)
        assert kept.rates_here() == best
    assert machine.count == kept.ROUNDS


def test_nothing_is_written_where_nothing_is_to_be_kept(measuring, cache_folder: Path) -> None:
    machine = measuring((FOUND, False))
    assert kept.rates_here(kept=False) == kept.rates_here(kept=False) == FOUND.rounded()
    assert machine.count == 1 and not (cache_folder / "machine").exists()


def test_stated_rates_where_nobody_can_measure(measuring, monkeypatch, cache_folder: Path) -> None:
    class Blind:
        def machine_rates(self) -> tuple[MachineRates, bool]:
            raise UnsupportedError("no")

    measuring()
    monkeypatch.setattr(registry, "engines", lambda: [Blind()])
    assert kept.rates_here() == default_rates(2)
    assert not (cache_folder / "machine").exists()


def test_a_folder_that_cannot_be_written_costs_nothing_but_time(
    measuring, monkeypatch, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("TVM_MXPLAN_CACHE_DIR", str(tmp_path / "file" / "cache"))
    measuring((FOUND, False))
    assert kept.rates_here() == FOUND.rounded()


# --- which rates a compilation goes by ---------------------------------------------------------------------


def never(_kept: bool) -> MachineRates:
    raise AssertionError("measured")


def test_a_file_stated_rates_or_those_of_the_machine(tmp_path: Path) -> None:
    path = tmp_path / "rates.json"
    path.write_text(json.dumps(FOUND.to_json()))
    given = wanted_rates(Options(machine=str(path)), 2, never, weighs=True)
    assert given == replace(FOUND, source="given")
    assert wanted_rates(Options(machine="default"), 3, never, weighs=True) == default_rates(3)
    asked = []
    for cache in ("on_compile", "disabled"):
        options = Options(machine="measured", cache=cache)
        assert wanted_rates(options, 2, lambda kept: asked.append(kept) or FOUND, weighs=True) is FOUND
    assert asked == [True, False]
    assert wanted_rates(Options(machine="measured"), 2, never, weighs=False) == default_rates(2)
    assert wanted_rates(Options(machine="measured", tune="off"), 2, never, weighs=True) == default_rates(2)


def test_a_file_that_says_nothing_is_the_users_error(tmp_path: Path) -> None:
    path = tmp_path / "rates.json"
    path.write_text("{}")
    with pytest.raises(InvalidInputError, match=r"option machine: .*rates.json: compute: expected rows"):
        wanted_rates(Options(machine=str(path)), 2, never, weighs=True)
    with pytest.raises(InvalidInputError, match="option machine=''; expected measured, default"):
        Options(machine="")
