"""The model of costs held against what steps take: families, medians by time, and no step left out."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from costs_by_hand import rates

sys.path.insert(0, str(Path(__file__).resolve().parents[4] / "scripts"))

from _bench.steps import cost_records, costs
from _bench.steps.cost_records import Record, Taken
from _bench.steps.costs import Sample
from _bench.steps.profile import time_steps

import tvm_mxplan
from tvm_mxplan.byoc.onednn.backend import OneDNN
from tvm_mxplan.errors import InvalidInputError
from tvm_mxplan.execution.threads import with_threads
from tvm_mxplan.testing import zoo


@pytest.mark.slow
def test_every_step_has_a_family_and_a_cost() -> None:
    model = zoo.load("squeezenet")
    executable = tvm_mxplan.compile(model, options={"layouts": "blocked"})
    timed = time_steps(executable, zoo.random_inputs(model), calls=1)
    families = {costs.family_of(step) for step in timed if step.step.implementation}
    convolutions = {family for family in families if family.startswith("convolution ")}
    assert all(family.endswith((", blocked", ", not blocked")) for family in families)
    assert any("1x1:" in family and family.endswith(", blocked") for family in convolutions), convolutions
    assert any(family.startswith("reorder") for family in families)
    modelled = [
        costs.modelled(step, OneDNN(), rates(200.0, 40.0)) for step in timed if step.step.implementation
    ]
    assert all(cost > 0 for cost in modelled)
    twice = [costs.modelled(step, OneDNN(), rates(400.0, 80.0)) for step in timed if step.step.implementation]
    assert np.less_equal(twice, modelled).all() and sum(twice) < 0.7 * sum(modelled)


def test_rows_count_steps_by_their_time() -> None:
    slow = [Sample(90, 30), Sample(12, 12), Sample(3, 3)]
    long, short = costs.rows({"short": [Sample(1, 10), Sample(1, 1)], "long": slow})
    assert long == "| long | 3 | 98.1% | 3.00 | 1.00 | 3.00 |"
    assert short.split(" | ")[:3] == ["| short", "2", "1.9%"]


def test_the_command_prints_two_tables(capsys) -> None:
    assert costs.main(["--models", "tiny", "--batch", "1", "--calls", "1", "--machine", "default"]) == 0
    table = capsys.readouterr().out
    assert "Rates: default: 220 GFLOP/s float32 avx512" in table
    assert "| tiny | 1 | " in table and "| convolution " in table


RECORDS = Path(__file__).resolve().parents[4] / "docs" / "figures" / "machines"


@pytest.mark.slow
def test_a_record_is_written_and_checked(tmp_path: Path, capsys) -> None:
    """On as many threads as it was made on; what is far off is named, and tells by the status."""
    file = tmp_path / "record.json"
    asked = ["--models", "tiny", "--calls", "1", "--machine", "default", "--record", str(file)]
    with with_threads(2):
        assert costs.main(asked) == 0
        made = Record.read(file)
        assert [(one.name, one.batch) for one in made.networks] == [("tiny", 1)] and made.rates.threads == 2
        capsys.readouterr()
        estimated = costs.estimated_us(tvm_mxplan.compile(zoo.load("tiny"), options={"machine": "default"}))
        for factor, status in ((1.29, 0), (1 / 1.29, 0), (1.31, 1), (1 / 1.31, 1)):
            taken = (Taken("tiny", 1, factor * estimated),)
            cost_records.write(replace(made, networks=taken), file)
            assert costs.main(["--check", str(file)]) == status
            expected = "0 of 1 within 1.3, not tiny" if status else "1 of 1 within 1.3"
            assert capsys.readouterr().out.strip().endswith(expected)
        with pytest.raises(InvalidInputError, match="--models: the record has no resnet50"):
            costs.main(["--check", str(file), "--models", "tiny,resnet50"])
    with with_threads(1), pytest.raises(InvalidInputError, match="of 2 threads, set OMP_NUM_THREADS"):
        costs.main(["--check", str(file)])


@pytest.mark.parametrize("text", ["", "{}", '{"networks": [], "rates": {}}'])
def test_what_is_no_record_is_refused(text: str, tmp_path: Path) -> None:
    file = tmp_path / "record.json"
    file.write_text(text)
    with pytest.raises(InvalidInputError, match=r"record\.json: no record of"):
        Record.read(file)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["squeezenet", "shufflenet", "mobilenet_v2"])
@pytest.mark.parametrize("file", sorted(path.name for path in RECORDS.glob("*.json")))
def test_other_machines_are_estimated_by_their_rates(file: str, name: str, capsys) -> None:
    """Networks of small steps, whose estimates were the furthest off, on three machines."""
    record = Record.read(RECORDS / file)
    with with_threads(record.rates.threads):
        executable = tvm_mxplan.compile(zoo.load(name), options={"machine": "default"})
        wide = [step for region in executable.report.regions for step in region.steps]
        if not any("avx512" in step.implementation for step in wide):
            pytest.skip("kernels here are for narrower vectors than those of the records")
        assert costs.main(["--check", str(RECORDS / file), "--models", name]) == 0
    assert f"| {name} | 1 | " in capsys.readouterr().out
