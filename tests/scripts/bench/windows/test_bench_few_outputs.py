"""The table of convolutions with few output channels."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[4] / "scripts"))

from _bench.windows import few_outputs

from tvm_mxplan.byoc.onednn import library
from tvm_mxplan.core.program import program as ir

PROBLEMS = ["16x9x20:3:3x3", "16x9x20:2:4x4:2", "16x40:1:7"]
has_kernels = pytest.mark.skipif("avx" not in library.isa(), reason="the kernels want AVX2")


def test_problems_are_read_as_they_are_written() -> None:
    problem = few_outputs.Problem.read("16x9x20:2:4x4:2")
    assert problem.attrs == ir.Deconvolution((2, 2), (1, 1, 1, 1), (1, 1), 1)
    assert problem.dst == (1, 2, 18, 40)
    problem = few_outputs.Problem.read("16x9x20:3:4x3")
    assert problem.attrs == ir.Convolution((1, 1), (2, 1, 1, 1), (1, 1), 1)
    assert problem.dst == (1, 3, 9, 20)


@has_kernels
def test_each_problem_has_times_of_both(capsys: pytest.CaptureFixture[str]) -> None:
    assert few_outputs.main(["--problems", ",".join(PROBLEMS), "--rounds", "1"]) == 0
    rows = capsys.readouterr().out.splitlines()[2:]
    assert [row.split("|")[1].strip() for row in rows] == PROBLEMS
    for row in rows:
        assert re.fullmatch(r"\| \S+ \| \d+ \| \d+ \| \S+, \w+ to \w+ \| \d+\.\d{3} \|", row), row
        assert few_outputs.OURS not in row
