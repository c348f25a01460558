"""Rates measured of a machine: every one is there, and none is impossible."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest

from tvm_mxplan.byoc.onednn import library
from tvm_mxplan.byoc.onednn.costs import measure
from tvm_mxplan.byoc.onednn.costs.tiles import TILES
from tvm_mxplan.core.machine import MachineRates
from tvm_mxplan.errors import UnsupportedError


@pytest.fixture
def brief(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measure, "_SECONDS", 0.0)
    monkeypatch.setattr(measure, "_FAR_BYTES", (8 << 20, 8 << 20))


@pytest.mark.usefixtures("brief")
def test_every_rate_is_measured() -> None:
    threads = library.threads()
    rates, disturbed = measure.measure_machine()
    assert library.threads() == rates.threads == threads
    assert rates.source == "measured" and disturbed in (True, False)
    sets = {one.instruction_set for one in rates.compute if one.dtype == "float32"}
    assert sets <= {"avx512", "avx2", "sse41"}
    isa = library.isa()
    others = [(one.dtype, one.instruction_set) for one in rates.compute if one.dtype != "float32"]
    assert others == ([("uint8", TILES)] if TILES in isa else [])
    assert ("avx512" in sets) == ("avx512" in isa) and ("avx2" in sets) == ("avx" in isa)
    assert all(0.01 < one.gflops < 1e5 for one in rates.compute)
    assert all(0.01 < speed < 1e5 for level in rates.levels for speed in (level.read, level.copied))
    assert [level.read for level in rates.levels] == sorted(
        (level.read for level in rates.levels), reverse=True
    )
    assert 0.01 < rates.start_us < 1e4 and rates.fork_us >= 0
    assert MachineRates.from_json(rates.rounded().to_json()) == rates.rounded()


@pytest.mark.usefixtures("brief")
def test_a_start_that_others_disturbed_makes_no_memory_fast() -> None:
    """The start is measured before and apart: it may come out as more than what it is subtracted from."""
    undisturbed, disturbed = measure._copied(1 << 20, 0.0), measure._copied(1 << 20, 1e9)
    assert 0.01 < undisturbed < 1e5 and 0.01 < disturbed < 1e5
    assert [measure._without_start(8.0, start) for start in (2.0, 5.0, 1e9)] == [6.0, 4.0, 4.0]


@pytest.mark.usefixtures("brief")
@pytest.mark.parametrize("fault", ["reference code", "an error"])
def test_a_machine_without_kernels_is_not_measured(monkeypatch: pytest.MonkeyPatch, fault: str) -> None:
    described = library.describe

    def failing(program):
        found = described(program)
        step = replace(found.steps[0], error="no kernel")
        if fault == "reference code":
            step = found.steps[0].running(measure.implementation_named("ref:any"))
        return type(found)((step,), found.values)

    monkeypatch.setattr(library, "describe", failing)
    with pytest.raises(UnsupportedError, match="no kernel to measure"):
        measure.measure_machine()


@pytest.mark.alone
def test_measuring_takes_about_two_seconds_at_most() -> None:
    start = time.process_time()
    measure.measure_machine()
    assert time.process_time() - start < 3.0 * library.threads()
