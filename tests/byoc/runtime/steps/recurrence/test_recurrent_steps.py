"""Recurrent steps in the runtime: several results, names of one placement, memory; held against float64."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from program_builder import Builder, call, random

import tvm_mxplan
from tvm_mxplan.byoc.onednn import library
from tvm_mxplan.core.program import codec
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.core.program.program_rules import ProgramError, check_program
from tvm_mxplan.core.program.program_text import program_text
from tvm_mxplan.opcheck import checking

STEPS, SAMPLES, FEATURES, UNITS = 4, 3, 5, 17


def layer(
    cell: ir.RecurrentCell, direction: ir.RecurrentDirection, *, samples: int = SAMPLES, layout: str = ""
) -> Builder:
    """A layer that starts from given states and tells those behind the last step."""
    gates, biases = {"lstm": (4, 4), "gru": (3, 3), "gru_linear": (3, 4)}.get(cell, (1, 1))
    directions = 2 if direction == "both" else 1
    state = (1, directions, samples, UNITS)
    b = Builder()
    ids = {
        "src": b.input((STEPS, samples, FEATURES), layout),
        "weights": b.constant(random(1, directions, FEATURES, gates, UNITS)),
        "recurrence": b.constant(random(1, directions, UNITS, gates, UNITS) / 4),
        "bias": b.constant(random(1, directions, biases, UNITS)),
        "hidden": b.input(state),
    }
    if cell == "lstm":
        ids["cell"] = b.input(state)
    ids["dst"] = b.output((STEPS, samples, directions * UNITS))
    ids["last_hidden"] = b.output(state)
    if cell == "lstm":
        ids["last_cell"] = b.output(state)
    b.step(ir.Recurrent(cell, direction), **ids)
    return b


def run(b: Builder) -> list[np.ndarray]:
    """The outputs; every one has been held against its reference."""
    program = b.build()
    arrays = {
        kind: [np.empty([int(d) for d in program.values[v].shape], "float32") for v in program.of_kind(kind)]
        for kind in ("input", "output")
    }
    for array in arrays["input"]:
        array[...] = random(*array.shape, seed=1)
    stored = [
        array.transpose([program.values[v].layout.index(a) for a in "abcd"[: array.ndim]]).copy()
        if program.values[v].layout != "abcd"[: array.ndim]
        else array
        for v, array in zip(program.of_kind("input"), arrays["input"], strict=True)
    ]
    with checking() as checker:
        call(b.module(), b.name, *stored, *arrays["output"])
    assert checker.result().steps == 1
    assert checker.result().first is None, checker.result()
    return arrays["output"]


@pytest.mark.parametrize("direction", ir.RECURRENT_DIRECTIONS)
@pytest.mark.parametrize("cell", ir.RECURRENT_CELLS)
def test_cells_in_all_directions(cell, direction):
    outputs, last, *_ = run(layer(cell, direction))
    forward, backward = outputs[-1], outputs[0]
    if direction == "forward":
        np.testing.assert_array_equal(last[0, 0], forward)
    elif direction == "reverse":
        np.testing.assert_array_equal(last[0, 0], backward)
    else:
        np.testing.assert_array_equal(last[0, 0], forward[:, :UNITS])
        np.testing.assert_array_equal(last[0, 1], backward[:, UNITS:])


def test_one_sample_under_another_name_of_its_layout():
    """Rows of one sample whose stride says 1: oneDNN's kernels read them by it."""
    plain = run(layer("lstm", "forward", samples=1))
    for ours, theirs in zip(run(layer("lstm", "forward", samples=1, layout="acb")), plain, strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_rows_that_do_not_stand_one_behind_the_other_are_refused():
    (info,) = library.describe(layer("lstm", "forward", layout="acb").build()).steps
    assert "src in layout acb, expected the plain one" in info.error


def test_all_results_survive_the_byte_format_and_are_listed():
    program = layer("lstm", "both").build()
    assert codec.decode(codec.encode(program)) == program
    assert len(program.steps[0].results) == 3
    assert not set(program.steps[0].results) & set(program.steps[0].reads())
    assert "last_hidden=output1, last_cell=output2" in program_text(program)


def with_result(program: ir.Program, role: str, value: int) -> ir.Program:
    operands = tuple(
        ir.Operand(role, value) if operand.role == role else operand for operand in program.steps[0].operands
    )
    return replace(program, steps=(replace(program.steps[0], operands=operands),))


def test_a_result_is_the_result_of_one_role():
    program = layer("lstm", "forward").build()
    twice = with_result(program, "last_cell", program.steps[0].operand("last_hidden"))
    with pytest.raises(ProgramError, match="last_cell: expected a value of its own, got an earlier result"):
        check_program(twice)
    given = with_result(program, "last_cell", program.steps[0].operand("cell"))
    with pytest.raises(ProgramError, match="last_cell: expected a local or an output, got a given value"):
        check_program(given)


def test_results_must_not_overlap():
    """Both last states at one place of the arena, then handed out."""
    b = layer("lstm", "forward")
    program = b.build()
    state, nbytes = (1, 1, SAMPLES, UNITS), 4 * SAMPLES * UNITS
    (info,) = library.describe(program).steps
    first, outputs = len(program.values), program.steps[0].results[1:]
    for second, sound in ((0, False), (256, True)):
        places = (("t0", 0), ("t1", second))
        values = [ir.Value(n, state, "float32", "local", "abcd", offset=a, nbytes=nbytes) for n, a in places]
        moved = with_result(with_result(program, "last_hidden", first), "last_cell", first + 1).steps[0]
        handed_out = [
            ir.Step(f"r{at}", ir.Reorder(), (ir.Operand("src", first + at), ir.Operand("dst", output)))
            for at, output in enumerate(outputs)
        ]
        steps = (
            replace(moved, scratchpad_offset=512, scratchpad_bytes=info.scratchpad_bytes),
            *(replace(step, scratchpad_offset=0, scratchpad_bytes=0) for step in handed_out),
        )
        values, arena = [*program.values, *values], 512 + info.scratchpad_bytes
        planned = replace(program, values=tuple(values), steps=steps, arena_bytes=arena)
        module = library.create_module(b.name, planned, b.constants)
        if sound:
            module["mxplan.prepare"]()
        else:
            with pytest.raises(tvm_mxplan.InvalidInputError, match="overlaps t0, another result of the step"):
                module["mxplan.prepare"]()


def test_memory_is_watched_around_all_results():
    library.set_debug(True)
    try:
        run(layer("lstm", "both"))
        run(layer("gru", "forward"))
    finally:
        library.set_debug(False)
