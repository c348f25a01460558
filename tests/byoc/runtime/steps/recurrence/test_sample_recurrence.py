"""Recurrent layers of few samples by the runtime's own kernel, against float64."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from less_instructions import run_again
from program_builder import Array, Builder, call, random

from tvm_mxplan.byoc.onednn import library
from tvm_mxplan.core.element_types import numpy_type
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.opcheck import checking

KERNEL = "sample_recurrence"
CELLS: tuple[ir.RecurrentCell, ...] = ("lstm", "gru_linear", "tanh", "relu")
COUNTS = {"lstm": (4, 4), "gru": (3, 3), "gru_linear": (3, 4), "tanh": (1, 1), "relu": (1, 1)}
"""Gates and biases of a unit."""
TYPES = ("float32", "bfloat16") if "avx512" in library.isa() else ("float32",)
"""Weights in bfloat16 want AVX-512."""


def layer(
    cell: ir.RecurrentCell,
    direction: ir.RecurrentDirection,
    *,
    steps: int = 5,
    samples: int = 1,
    units: int = 17,
    features: int = 6,
    states: bool = True,
    last: bool = True,
    layout: str = "abcde",
    dtype: str = "float32",
) -> Builder:
    """A layer with or without given states and last ones; ``layout`` is that of its weights.

    ``dtype`` is the type of inputs and weights; states and results are float32.
    """
    (gates, biases), directions = COUNTS[cell], 2 if direction == "both" else 1
    state = (1, directions, samples, units)
    names = ("hidden", "cell") if cell == "lstm" else ("hidden",)
    b = Builder()

    def stored(data: Array) -> int:
        data = data.astype(numpy_type(dtype))
        return b.constant(data.transpose(["abcde".index(axis) for axis in layout]), layout, data.shape)

    ids = {
        "src": b.input((steps, samples, features), "", dtype),
        "weights": stored(random(1, directions, features, gates, units)),
        "recurrence": stored(random(1, directions, units, gates, units, seed=2) / np.float32(units**0.5)),
        "bias": b.constant(random(1, directions, biases, units, seed=3)),
    }
    if states:
        ids |= {name: b.input(state) for name in names}
    ids["dst"] = b.output((steps, samples, directions * units))
    if last:
        ids |= {f"last_{name}": b.output(state) for name in names}
    b.step(ir.Recurrent(cell, direction), **ids)
    return b


def rounded(numbers: Array) -> Array:
    return numbers.astype(numpy_type("bfloat16")).astype(np.float64)


def worked_out(b: Builder, arrays: list[Array]) -> list[Array]:
    """The results in float64; states that short weights are multiplied with are rounded, and no others."""
    attrs = b.steps[0].attrs
    assert isinstance(attrs, ir.Recurrent)
    short = b.constants[0].dtype.name == "bfloat16"
    weights, recurrence, bias = (data[0].astype(np.float64) for data in b.constants)
    x, hidden, *cell = (array.astype(np.float64) for array in arrays)
    outputs, last = [], []
    for at, (w, r, own) in enumerate(zip(weights, recurrence, bias, strict=True)):
        h, c = hidden[0, at], cell[0][0, at] if cell else np.zeros(1)
        backwards = attrs.direction == "reverse" or at == 1
        rows = []
        for row in x[::-1] if backwards else x:
            given = [row @ w[:, gate] + own[gate] for gate in range(w.shape[1])]
            more = [(rounded(h) if short else h) @ r[:, gate] for gate in range(w.shape[1])]
            h, c = stepped(attrs.cell, given, more, own[-1], h, c)
            rows.append(h)
        outputs.append(np.array(rows[::-1] if backwards else rows))
        last.append((h, c))
    ends = [np.stack(part)[None] for part in zip(*last, strict=True)]
    return [np.concatenate(outputs, 2), *ends[: 1 + len(cell)]]


def stepped(
    cell: str, given: list[Array], more: list[Array], reset_bias: Array, h: Array, c: Array
) -> tuple[Array, Array]:
    """The next states, of the input's part of each gate and the last state's."""

    def sigmoid(x: Array) -> Array:
        return 1 / (1 + np.exp(-x))

    if cell == "lstm":
        into, forget, candidate, out = (one + other for one, other in zip(given, more, strict=True))
        c = sigmoid(forget) * c + sigmoid(into) * np.tanh(candidate)
        return sigmoid(out) * np.tanh(c), c
    if cell == "gru_linear":
        update, reset = sigmoid(given[0] + more[0]), sigmoid(given[1] + more[1])
        return update * h + (1 - update) * np.tanh(given[2] + reset * (more[2] + reset_bias)), c
    return np.tanh(given[0] + more[0]) if cell == "tanh" else np.maximum(given[0] + more[0], 0), c


def close(got: Array, wanted: Array, short: bool) -> None:
    """Within float32's sums; a state at a tie may be rounded either way, which few are."""
    difference = np.abs(got - wanted)
    assert difference.max(initial=0) <= (2e-2 if short else 2e-6)
    assert np.mean(difference) <= (1e-4 if short else 1e-6)


def implementation(b: Builder) -> str:
    (info,) = library.describe(b.build()).steps
    assert info.error == ""
    return info.implementation


def drawn(program: ir.Program) -> dict[str, list[Array]]:
    """Arrays for inputs and outputs; what src holds is a number in bfloat16, too."""
    arrays = {
        kind: [
            np.empty([int(d) for d in value.shape], numpy_type(value.dtype))
            for value in (program.values[v] for v in program.of_kind(kind))
        ]
        for kind in ("input", "output")
    }
    for seed, array in enumerate(arrays["input"]):
        array[...] = random(*array.shape, seed=seed)
    arrays["input"][0][...] = arrays["input"][0].astype(numpy_type("bfloat16"))
    return arrays


def run(b: Builder) -> list[Array]:
    """The outputs; opcheck holds each against its reference in float64."""
    arrays = drawn(b.build())
    with checking() as checker:
        call(b.module(), b.name, *arrays["input"], *arrays["output"])
    assert checker.result().steps == 1
    assert checker.result().first is None, checker.result()
    return arrays["output"]


@pytest.mark.parametrize("direction", ir.RECURRENT_DIRECTIONS)
@pytest.mark.parametrize("cell", CELLS)
@pytest.mark.parametrize("states", [False, True])
def test_cells_in_all_directions(
    cell: ir.RecurrentCell, direction: ir.RecurrentDirection, states: bool
) -> None:
    b = layer(cell, direction, states=states)
    assert implementation(b) == KERNEL
    outputs, hidden, *_ = run(b)
    ends = {"forward": (-1,), "reverse": (0,), "both": (-1, 0)}[direction]
    for at, end in enumerate(ends):
        np.testing.assert_array_equal(hidden[0, at, 0], outputs[end, 0, at * 17 : (at + 1) * 17])


@pytest.mark.skipif(len(TYPES) == 1, reason="weights in bfloat16 want AVX-512")
@pytest.mark.parametrize("direction", ir.RECURRENT_DIRECTIONS)
@pytest.mark.parametrize("cell", CELLS)
@pytest.mark.parametrize("units", [1, 2, 3, 16, 17, 31, 33, 64, 130])
def test_inputs_and_weights_in_bfloat16(
    cell: ir.RecurrentCell, direction: ir.RecurrentDirection, units: int
) -> None:
    """And states where they are multiplied: what goes on from step to step stays float32."""
    b = layer(cell, direction, units=units, features=7, steps=9, dtype="bfloat16")
    assert implementation(b) == KERNEL
    for result, wide in zip(run(b), worked_out(b, drawn(b.build())["input"]), strict=True):
        close(result, wide, short=True)


@pytest.mark.parametrize("units", [1, 3, 16, 33, 64])
@pytest.mark.parametrize("cell", CELLS)
def test_widths(cell: ir.RecurrentCell, units: int) -> None:
    b = layer(cell, "both", units=units, features=3 * units + 1, steps=4, last=False)
    assert implementation(b) == KERNEL
    run(b)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("samples", [2, 3, 5, 6, 7, 8, 9, 13, 17, 25, 32])
@pytest.mark.parametrize("cell", CELLS)
def test_samples_do_not_meet(cell: ir.RecurrentCell, samples: int, dtype: str) -> None:
    """Each is summed as it is alone, but for the order of sums."""
    b = layer(cell, "both", samples=samples, dtype=dtype)
    assert implementation(b) == KERNEL
    outputs, *last = run(b)
    x, *states = (array for array in drawn(b.build())["input"])
    alone = layer(cell, "both", dtype=dtype)
    for at in range(samples):
        arrays = drawn(alone.build())["output"]
        given = [x[:, at : at + 1], *(state[:, :, at : at + 1] for state in states)]
        call(alone.module(), alone.name, *(np.ascontiguousarray(array) for array in given), *arrays)
        close(outputs[:, at], arrays[0][:, 0], dtype == "bfloat16")
        for ours, theirs in zip(last, arrays[1:], strict=True):
            close(ours[:, :, at], theirs[:, :, 0], dtype == "bfloat16")


@pytest.mark.parametrize("layout", ["abdec", "abecd"])
def test_weights_in_any_layout(layout: str) -> None:
    """Importers hand weights over with the gates in front, seen through another layout."""
    b, plain = (layer("lstm", "both", layout=one) for one in (layout, "abcde"))
    assert implementation(b) == KERNEL
    for ours, theirs in zip(run(b), run(plain), strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_one_step() -> None:
    b = layer("lstm", "both", steps=1)
    assert implementation(b) == KERNEL
    run(b)


@pytest.mark.slow
@pytest.mark.parametrize("direction", ["forward", "both"])
@pytest.mark.parametrize("cell", CELLS)
def test_any_number_of_threads_gives_the_same(
    cell: ir.RecurrentCell, direction: ir.RecurrentDirection, threads: int
) -> None:
    """Weights so large that the units of one direction are shared among threads."""
    b = layer(cell, direction, units=200, steps=3, samples=3)
    assert implementation(b) == KERNEL
    outputs = run(b)
    one = subprocess.run(
        [sys.executable, "-c", f"import {Path(__file__).stem} as t; t.tell({cell!r}, {direction!r})"],
        env={**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        check=True,
    )
    assert one.stdout == b"".join(output.tobytes() for output in outputs)


def tell(cell: ir.RecurrentCell, direction: ir.RecurrentDirection) -> None:
    """Writes the outputs' bytes."""
    for output in run(layer(cell, direction, units=200, steps=3, samples=3)):
        sys.stdout.buffer.write(output.tobytes())


def test_what_it_does_not_take_goes_to_onednn() -> None:
    assert implementation(layer("lstm", "both", samples=33)) != KERNEL
    assert implementation(layer("gru", "forward")) != KERNEL


def test_weights_that_the_region_is_given_go_to_onednn() -> None:
    b = Builder()
    ids = {
        "src": b.input((3, 1, 5)),
        "weights": b.constant(random(1, 1, 5, 4, 8)),
        "recurrence": b.input((1, 1, 8, 4, 8)),
        "bias": b.constant(random(1, 1, 4, 8)),
        "dst": b.output((3, 1, 8)),
    }
    b.step(ir.Recurrent("lstm", "forward"), **ids)
    assert implementation(b) != KERNEL


def test_refused_it_leaves_the_layer_to_onednn() -> None:
    b = layer("lstm", "forward", features=9)
    (info,) = library.describe(b.build()).steps
    assert info.implementation == KERNEL
    library.refuse(info.descriptor, KERNEL, "wrong states")
    try:
        (other,) = library.describe(b.build()).steps
        assert other.implementation not in ("", KERNEL)
        assert [one.implementation for one in other.refused] == [KERNEL]
        run(b)
    finally:
        library.forget_refusals()


def test_memory_is_watched_around_all_results() -> None:
    library.set_debug(True)
    try:
        run(layer("lstm", "both"))
    finally:
        library.set_debug(False)


def test_a_nan_reaches_the_steps_behind_it() -> None:
    b = layer("gru_linear", "forward", states=False, last=False)
    x, y = random(5, 1, 6), np.zeros((5, 1, 17), "float32")
    x[2, 0, 3] = np.nan
    call(b.module(), b.name, x, y)
    assert np.isfinite(y[:2]).all()
    assert np.isnan(y[2:]).all()


@pytest.mark.slow
@pytest.mark.parametrize("isa", ["AVX2", "SSE41"])
def test_other_instruction_sets(isa: str) -> None:
    run_again(__file__, isa, "cells or widths or do_not_meet")


@pytest.mark.skipif(len(TYPES) == 1, reason="weights in bfloat16 want AVX-512")
def test_short_weights_again_without_instructions_for_them() -> None:
    run_again(__file__, "AVX512_CORE", "bfloat16")
