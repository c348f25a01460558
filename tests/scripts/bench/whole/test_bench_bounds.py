"""scripts/bench bounds: types for processors with bfloat16, and errors, on any processor."""

from __future__ import annotations

import sys
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

SCRIPTS = Path(__file__).resolve().parents[4] / "scripts"
sys.path.insert(0, str(SCRIPTS))

from _bench.rounded import RoundedProgram, StandIn  # noqa: E402
from _bench.whole import bounds  # noqa: E402

from tvm_mxplan.byoc.onednn.backend import OneDNN  # noqa: E402
from tvm_mxplan.core.program import program as ir  # noqa: E402
from tvm_mxplan.core.program.builder import ProgramBuilder  # noqa: E402
from tvm_mxplan.testing import zoo  # noqa: E402

SHORT = "bfloat16"


@pytest.mark.slow
def test_errors_stay_below_bounds_and_times_fall_as_bounds_grow(capsys: pytest.CaptureFixture[str]) -> None:
    wanted = ["1e-5", "6e-3", "1e-2", "3e-2", "1e-1"]
    assert bounds.main(["--models", zoo.TINY, "--bounds", ",".join(wanted)]) == 0
    rows = [line.strip("| ").split(" | ") for line in capsys.readouterr().out.splitlines()[2:]]
    assert [row[1] for row in rows] == wanted
    steps = [int(row[2].split()[0]) for row in rows]
    times = [float(row[3]) for row in rows]
    added, measured = ([float(row[at]) for row in rows] for at in (4, 5))
    assert steps[0] == 0 and steps[-1] >= 5 and steps == sorted(steps)
    assert times == sorted(times, reverse=True) and times[-1] < times[0] == 1.0
    assert all(one <= float(bound) for one, bound in zip(added, wanted, strict=True))
    assert measured[0] == 0.0 and measured[-1] > 1e-3


@pytest.mark.slow
def test_networks_run_at_each_bound(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["--here", "--models", zoo.TINY, "--bounds", "1e-5,1e-1", "--rounds", "1"]
    assert bounds.main(arguments) == 0
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")] for line in capsys.readouterr().out.splitlines()
    ]
    assert [row[1] for row in rows[2:]] == ["float32", "1e-5", "1e-1"]
    shorts, errors = [int(row[2].split()[0]) for row in rows[2:]], [float(row[5]) for row in rows[2:]]
    assert shorts[:2] == [0, 0] and 0 < errors[0] < 1e-5
    if not library_lacks_bfloat16():
        assert shorts[2] > 0 and errors[2] > 1e-4


def library_lacks_bfloat16() -> bool:
    return bool(OneDNN().lacks(SHORT))


def test_values_in_a_shorter_type_are_rounded_and_sums_are_not() -> None:
    random = np.random.default_rng(0)
    x, w = (random.standard_normal(shape).astype("float32") for shape in ((3, 40), (40, 5)))
    b = ProgramBuilder("p")
    source = b.port("input", "x", (3, 40), "float32")
    short = b.step("cast", ir.Reorder(), (3, 40), [("src", source)], dtype=SHORT)
    weights = b.constant(w.astype(ml_dtypes.bfloat16))
    wide = b.step("matmul", ir.MatMul(), (3, 5), [("src", short), ("weights", weights)], dtype="float32")
    b.write_output(wide, b.port("output", "y", (3, 5), "float32"))
    program = b.finish()
    (got,) = RoundedProgram(program, b.constants).run([x])
    rounded = [one.astype(ml_dtypes.bfloat16).astype("float64") for one in (x, w)]
    np.testing.assert_allclose(got, rounded[0] @ rounded[1], rtol=1e-5, atol=1e-5)
    assert bounds.relative_l2([got], [x @ w]) > 1e-4


def test_the_stand_in_takes_bfloat16_and_half_the_bytes() -> None:
    library = StandIn()
    assert library.lacks(SHORT) == "" and library.lacks("int3")
    values = (
        ir.Value("x", (4, 32), SHORT, "input", "ab", 0),
        ir.Value("y", (4, 32), SHORT, "output", "ab", 0),
    )
    step = ir.Step("exp", ir.Eltwise("exp", 0.0, 0.0), (ir.Operand("src", 0), ir.Operand("dst", 1)))
    found = library.describe(ir.Program("p", values, (step,)))
    assert not found.steps[0].error and {value.nbytes for value in found.values} == {4 * 32 * 2}
