"""The expected results of ``gpu/test_cudnn_patterns_on_gpu.py`` are right, which needs no GPU."""

from __future__ import annotations

import numpy as np
import pytest
from case_answers import CASES, logical, misses, question_of, stored
from cudnn_stand_in import StandIn
from graph_interpreter import run_graph

from tvm_mxplan.byoc.cudnn.graphs import graph_of
from tvm_mxplan.byoc.cudnn.layout_rules import operands

NAMES = (
    "1x1, stride 2", "4 groups", "and a number", "max pool 3x3, stride 2", "layer norm, 768 channels",
    "sum of rows", "times numbers for each channel", "batch norm in training", "its gradients",
    "dense, 2048 to 1000",
    "float32 to int8", "uint8 to int8 of another scale", "integers: 1x1, 256 to 64, relu",
    "3x3, 64 channels, a zero point", "and integers added",
)  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_graphs_worked_out_are_right_and_others_are_not(planner: StandIn, name: str) -> None:
    case = next(one for one in CASES if one.name == name)
    question = question_of(case, case.types[-1])
    program, step = question.program, question.step
    flat = {
        number: stored(np.asarray(array, "float64"), program.values[number].layout).reshape(-1)
        for number, array in question.given.items()
    }
    for number in step.results:
        flat[number] = np.full(int(np.prod(program.values[number].shape)), np.nan)  # type: ignore[arg-type]
    run_graph(graph_of(program, step), [flat[number] for _, number in operands(step)])
    found = {}
    for number in step.results:
        value = program.values[number]
        order = stored(np.empty(value.shape, bool), value.layout).shape  # type: ignore[arg-type]
        found[number] = logical(flat[number].reshape(order), value.layout)
    assert misses(question, found) < 1.0
    dst = found[step.dst]
    wrong = {**found, step.dst: np.roll(dst, 1, axis=int(np.argmax(dst.shape)))}
    assert misses(question, wrong) > 1.0
