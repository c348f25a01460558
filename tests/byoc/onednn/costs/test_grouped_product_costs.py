"""Rows by the matrix of their group: the model counts each row once, and matrices that rows may be of."""

from __future__ import annotations

import numpy as np
import pytest
from test_kernel_costs import RATES, info

from tvm_mxplan.byoc.onednn.costs.kernels import computing_us, weights_share
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.core.program.builder import ProgramBuilder
from tvm_mxplan.core.program.operands import operands_of
from tvm_mxplan.core.step_facts import StepFacts


def facts(rows: int, groups: int) -> StepFacts:
    b = ProgramBuilder("one")
    operands = [("src", b.port("input", "x", (rows, 64), "float32"))]
    operands += [("weights", b.constant(np.zeros((groups, 64, 32), "float32")))]
    operands += [("ends", b.port("input", "ends", (groups,), "int32"))]
    b.step("product", ir.GroupedProduct(), (rows, 32), operands)
    program = b.finish()
    (step,) = program.steps
    layouts = tuple(program.values[number].layout for _, number in operands_of(step))
    return StepFacts(program, step, layouts, info("grouped_product:any"))


def test_rows_count_and_groups_do_not() -> None:
    assert computing_us(facts(200, 4), RATES) == pytest.approx(2 * computing_us(facts(100, 16), RATES))


@pytest.mark.parametrize(("rows", "groups", "share"), [(2, 8, 0.25), (8, 8, 1.0), (100, 8, 1.0)])
def test_no_more_matrices_are_read_than_there_are_rows(rows: int, groups: int, share: float) -> None:
    assert weights_share(facts(rows, groups)) == share
