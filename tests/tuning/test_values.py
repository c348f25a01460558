"""The worth of plans: bytes that are exact, counters of energy, instances side by side."""

from __future__ import annotations

import math
import threading
from pathlib import Path

import numpy as np
import pytest

import tvm_mxplan
from tvm_mxplan import UnsupportedError
from tvm_mxplan.byoc.onednn import library
from tvm_mxplan.byoc.onednn.backend import OneDNN
from tvm_mxplan.passes.layout import measure
from tvm_mxplan.report.inspection import decoded_programs
from tvm_mxplan.testing import zoo
from tvm_mxplan.tuning import values


def powercap(folder: Path, *packages: int) -> Path:
    for number, energy in enumerate(packages):
        for name in (f"intel-rapl:{number}", f"intel-rapl:{number}:0"):
            (folder / name).mkdir(parents=True)
            (folder / name / "energy_uj").write_text(f"{energy}\n")
    return folder


def test_joules_are_those_of_whole_packages(tmp_path, monkeypatch):
    folder = powercap(tmp_path, 1000, 5000)
    counters = values.energy_counters(folder)
    assert [path.parent.name for path in counters] == ["intel-rapl:0", "intel-rapl:1"]
    monkeypatch.setattr(values, "_JOULES_SECONDS", 0.01)
    calls = []

    def call() -> None:
        calls.append(1)
        for path in counters:
            path.write_text(str(int(path.read_text()) + 7))

    assert values._joules(call, counters)() == 14
    assert calls


def test_a_sample_in_which_a_counter_ran_over_is_taken_again(tmp_path, monkeypatch):
    counters = values.energy_counters(powercap(tmp_path, 1000, 5000))
    monkeypatch.setattr(values, "_JOULES_SECONDS", 0.0)
    shown = iter([10, 40])

    def call() -> None:
        counters[0].write_text(str(next(shown)))

    assert values._joules(call, counters)() == 30


def test_no_counters(tmp_path):
    with pytest.raises(UnsupportedError, match=r"no energy counters in .*tune_for=energy"):
        values.energy_counters(tmp_path)
    (tmp_path / "intel-rapl:0" / "energy_uj").mkdir(parents=True)
    with pytest.raises(UnsupportedError, match="cannot be read"):
        values.energy_counters(tmp_path)


def test_bytes_are_those_of_the_runtime(tiny):
    ex = tvm_mxplan.compile(tiny)
    ex(**zoo.random_inputs(tiny))
    found = values.memory_bytes(ex.report.memory, [(OneDNN(), decoded_programs(ex.module))])
    (region,) = ex.report.regions
    rng = np.random.default_rng(0)
    (program,) = decoded_programs(ex.module)
    tensors = {
        kind: [measure._random(rng, program.values[v]) for v in program.of_kind(kind)]
        for kind in ("constant", "input", "output")
    }
    module = OneDNN().create_module("again", program, tensors["constant"])
    module["again"](*tensors["input"], *tensors["output"])
    stats = library.stats(module)
    assert stats["specializations"][0]["arena_bytes"] == region.arena_bytes > 0
    dense = [step for step in program.steps if step.implementation == "row_product"]  # reads plain weights
    plain = sum(4 * math.prod(program.values[step.operand("weights")].shape) for step in dense)
    assert found == region.arena_bytes + stats["packed_weight_bytes"] + plain
    assert stats["packed_weight_bytes"] > 0


def test_moved_bytes_count_padding(tiny):
    """Blocked layouts of odd channels move more than plain ones."""
    moved = {}
    for layouts in ("plain", "blocked"):
        ex = tvm_mxplan.compile(tiny, options={"layouts": layouts, "convolutions": "direct"})
        moved[layouts] = values.moved_bytes(decoded_programs(ex.module), OneDNN())
    assert 0 < moved["plain"] < moved["blocked"]


def test_instances_of_one_thread_run_side_by_side(monkeypatch):
    monkeypatch.setattr(library, "threads", lambda: 3)
    set_to = []
    monkeypatch.setattr(library, "set_threads", lambda count: set_to.append((threading.get_ident(), count)))
    ran = []
    sample = values.sampler("throughput")(lambda: lambda: ran.append(threading.get_ident()))
    assert sample() > 0
    assert len({thread for thread, _ in set_to}) == 3
    assert {count for _, count in set_to} == {1}
    assert set(ran) == {thread for thread, _ in set_to}
    assert len(ran) == 3 + 3 * 2


def test_the_typical_sample_ignores_what_noise_adds():
    assert values.typical_sample([5.0]) == 5.0
    assert values.typical_sample([10.0, 10.0, 10.0, 50.0, 90.0]) == 10.0
