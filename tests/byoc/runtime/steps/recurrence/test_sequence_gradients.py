"""Layer norms backward, and recurrent layers in training and backward, as steps against float64."""

from __future__ import annotations

import numpy as np
import pytest
from program_builder import Builder, call, random

from tvm_mxplan.core.program import program as ir
from tvm_mxplan.opcheck import checking

Shape = tuple[int, ...]


def held(attrs: ir.Attributes, given: dict[str, np.ndarray], results: dict[str, Shape]) -> None:
    """Run a step alone; opcheck holds each of its results to the reference."""
    b = Builder()
    ids = {role: b.input(array.shape) for role, array in given.items()}
    made = {role: b.output(shape) for role, shape in results.items()}
    b.step(attrs, **ids, **made)
    outputs = [np.full(shape, np.nan, "float32") for shape in results.values()]
    with checking() as checker:
        call(b.module(), b.name, *given.values(), *outputs)
    result = checker.result()
    assert result.steps == 1
    assert result.first is None, result
    assert all(np.isfinite(array).all() and array.any() for array in outputs)


@pytest.mark.parametrize("shape", [(3, 7), (16, 768), (5, 1001), (2, 3, 17), (1, 7, 7, 96)])
def test_layer_norms_backward(shape: Shape) -> None:
    last = shape[-1:]
    given = {
        "src": random(*shape) + np.float32(3),
        "gradient": random(*shape, seed=1),
        "scale": random(*last),
    }
    results = {"scale_gradient": last, "shift_gradient": last, "dst": shape}
    held(ir.LayerNormalizationBackward(1e-3), given, results)


CELLS = {"lstm": (0, 3, 1, 2), "gru": (1, 0, 2), "gru_linear": (0, 1, 2)}


@pytest.mark.parametrize("sizes", [(1, 1, 3), (4, 5, 33), (3, 16, 128)])
@pytest.mark.parametrize("direction", ["forward", "reverse", "both"])
@pytest.mark.parametrize("cell", CELLS)
def test_recurrent_layers_in_training(cell: str, direction: str, sizes: Shape) -> None:
    (steps, samples, units), places = sizes, CELLS[cell]
    directions = 2 if direction == "both" else 1

    def every(rows: int) -> Shape:
        return (steps, samples, directions * rows * units)

    state, lstm = (directions, samples, units), cell == "lstm"
    recurrence = random(directions, len(places) * units, units) / np.float32(np.sqrt(units))
    states = {role: random(*state, seed=2) for role in (("hidden", "cell") if lstm else ("hidden",))}
    given = {"src": random(*every(len(places))), "recurrence": recurrence, **states}
    if cell == "gru_linear":
        given["bias"] = random(directions, units)
    results = {"dst": every(1), "kept_gates": every(4)}
    if lstm:
        results |= {"kept_cells": every(1), "last_cell": state}
    held(ir.RecurrentTraining(cell, direction, places), given, results)  # type: ignore[arg-type]
    given = {
        "src": np.tanh(random(*every(4), seed=3)),
        "recurrence": recurrence,
        "outputs": random(*every(1), seed=4),
        "gradient": random(*every(1), seed=5),
        **states,
    }
    results = {"dst": every(len(places)), "hidden_gradient": state}
    if lstm:
        given |= {"cells": random(*every(1), seed=6), "last_cell_gradient": random(*state, seed=7)}
        results["cell_gradient"] = state
    elif cell == "gru_linear":
        results["reset_gradient"] = every(1)
    held(ir.RecurrentBackward(cell, direction, places), given, results)  # type: ignore[arg-type]
