"""Recurrent layers as steps: cells, gates in the right order, biases added, states; layers left to TVM."""

from __future__ import annotations

import numpy as np
import pytest
from composites import composite_of, roles, shapes, tensor, typed
from tvm import relax, tirx

from tvm_mxplan.byoc.onednn.families import recurrent as family
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.operators.recurrent import GATES, USUAL, Activation, Kind, Layer, recurrent
from tvm_mxplan.passes.relax_types import constant_of

STEPS, SAMPLES, INPUTS, UNITS = 5, 2, 3, 4
IDENTITY, RELU = Activation("identity"), Activation("relu")
RANDOM = np.random.default_rng(3)


def layer(kind: Kind, direction: str = "forward", **fields: object) -> Layer:
    directions = 2 if direction == "both" else 1
    fields.setdefault("activations", USUAL[kind] * directions)
    return Layer(kind, direction, **fields)  # type: ignore[arg-type]


def shapes_of(kind: Kind, directions: int = 1, samples: object = SAMPLES) -> dict[str, tuple[object, ...]]:
    gates = GATES[kind]
    return {
        "data": (STEPS, samples, INPUTS),
        "weights": (directions, gates * UNITS, INPUTS),
        "recurrence": (directions, gates * UNITS, UNITS),
        "bias": (directions, 2 * gates * UNITS),
        "hidden": (directions, samples, UNITS),
        "cell": (directions, samples, UNITS),
        "peepholes": (directions, 3 * UNITS),
        "lengths": (samples,),
    }


def called(given: Layer, *more: str, constants: bool = True, samples: object = SAMPLES) -> relax.Call:
    """The call of a layer with weights, as constants or not, and ``more`` operands."""
    operands: dict[str, relax.Expr] = {}
    for name, shape in shapes_of(given.kind, given.directions, samples).items():
        if name in ("data", "weights", "recurrence", *more):
            fixed = constants and name in ("weights", "recurrence", "bias", "peepholes")
            numbers = RANDOM.standard_normal(shape).astype("float32") if fixed else None
            dtype = "int32" if name == "lengths" else "float32"
            operands[name] = relax.const(numbers) if fixed else tensor(name, *shape, dtype=dtype)
    return typed(recurrent(given, operands))


def translated(call: relax.Call):
    c = composite_of(call)
    return c, family.translate(c), next(one for one in c.builder.steps if one.kind == "recurrent")


def array(c, value: int) -> np.ndarray:
    """The numbers of a constant, or of a view of one, in the view's order of axes."""
    seen = c.builder.values[value]
    if seen.alias_of < 0:
        return c.builder.constants[seen.index]
    base = array(c, seen.alias_of)
    order = ["abcdefgh".index(letter) for letter in seen.layout]
    return base.reshape([seen.shape[axis] for axis in order]).transpose(np.argsort(order))


# --- layers that are taken ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "more", "reason"),
    [
        (layer("lstm"), (), None),
        (layer("lstm"), ("hidden",), None),
        (layer("lstm", "both"), ("bias", "hidden", "cell", "peepholes"), None),
        (layer("gru", linear=True), ("bias",), None),
        (layer("rnn", activations=(RELU,)), (), None),
        (layer("rnn", "both", activations=(RELU, RELU)), (), None),
        (layer("lstm"), ("lengths",), "sequences of several lengths"),
        (layer("lstm", clip=3.0), (), "gates clipped to -3 to 3"),
        (layer("lstm", coupled=True), (), "a forget gate that is coupled"),
        (layer("rnn", activations=(IDENTITY,)), (), "activations identity, oneDNN has tanh or relu"),
        (layer("rnn", "both", activations=(RELU, USUAL["rnn"][0])), (), "activations relu, tanh, oneDNN has"),
        (
            layer("gru", activations=(IDENTITY, RELU)),
            (),
            "activations identity, relu, oneDNN has sigmoid, tanh",
        ),
    ],
)
def test_layers_that_the_library_has(given: Layer, more: tuple[str, ...], reason: str | None) -> None:
    answer = family.check({"root": called(given, *more)})
    assert answer is None if reason is None else str(answer).startswith(reason)
    if reason and given.kind != "rnn":
        assert "relu" not in str(answer).split("has")[-1]


def test_one_state_of_two_wants_a_known_number_of_samples() -> None:
    n = tirx.Var("n", "int64")
    for more, kind, taken in (
        (("hidden",), "lstm", False),
        (("cell",), "lstm", False),
        (("hidden", "cell"), "lstm", True),
        ((), "lstm", True),
        (("hidden",), "gru", True),
    ):
        answer = family.check({"root": called(layer(kind), *more, samples=n)})  # type: ignore[arg-type]
        assert answer is None if taken else answer == "one of two states for an unknown number of samples"


@pytest.mark.parametrize(
    ("given", "cell"),
    [
        (layer("lstm"), "lstm"),
        (layer("gru"), "gru"),
        (layer("gru", linear=True), "gru_linear"),
        (layer("rnn"), "tanh"),
        (layer("rnn", activations=(RELU,)), "relu"),
        (layer("lstm", activations=(RELU,) * 3), None),
    ],
)
def test_cells_of_a_region_program(given: Layer, cell: str | None) -> None:
    assert family.cell_of(given) == cell


# --- steps -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("direction", ["forward", "reverse", "both"])
def test_the_step_of_an_lstm(direction: str) -> None:
    c, results, step = translated(called(layer("lstm", direction), "bias"))
    directions = 2 if direction == "both" else 1
    assert step.attrs == ir.Recurrent("lstm", direction)  # type: ignore[arg-type]
    assert shapes(c, step) == {
        "src": (STEPS, SAMPLES, INPUTS),
        "weights": (1, directions, INPUTS, 4, UNITS),
        "recurrence": (1, directions, UNITS, 4, UNITS),
        "bias": (1, directions, 4, UNITS),
        "dst": (STEPS, SAMPLES, directions * UNITS),
        "last_hidden": (1, directions, SAMPLES, UNITS),
        "last_cell": (1, directions, SAMPLES, UNITS),
    }
    assert [c.builder.values[value].shape for value in results] == [
        (STEPS, SAMPLES, directions * UNITS),
        (directions, SAMPLES, UNITS),
        (directions, SAMPLES, UNITS),
    ]


def test_other_cells_have_no_last_cell() -> None:
    for kind in ("gru", "rnn"):
        c, results, step = translated(called(layer(kind), "bias"))  # type: ignore[arg-type]
        assert len(results) == 2 and "last_cell" not in roles(c, step)


ORDER = {"lstm": (0, 2, 3, 1), "gru": (0, 1, 2), "rnn": (0,)}  # i, f, c, o of ONNX's i, o, f, c


@pytest.mark.parametrize("kind", ["lstm", "gru", "rnn"])
def test_constants_have_their_gates_in_the_librarys_order(kind: Kind) -> None:
    call = called(layer(kind), "bias")
    c, _, step = translated(call)
    for role, arg in (("weights", call.args[1]), ("recurrence", call.args[2])):
        given = constant_of(arg).reshape(1, GATES[kind], UNITS, -1)
        expected = given[:, ORDER[kind]].transpose(0, 3, 1, 2)[None]
        np.testing.assert_array_equal(array(c, roles(c, step)[role]), expected)
    halves = constant_of(call.args[3]).reshape(1, 1, 2, GATES[kind], UNITS).sum(2)
    np.testing.assert_array_equal(array(c, roles(c, step)["bias"]), halves[:, :, ORDER[kind]])
    assert [one.kind for one in c.builder.steps] == ["recurrent"], "nothing is left to do when the model runs"


def test_a_bias_that_is_missing_is_zero() -> None:
    c, _, step = translated(called(layer("gru", "both")))
    bias = array(c, roles(c, step)["bias"])
    assert bias.shape == (1, 2, 3, UNITS) and bias.dtype == np.float32 and not bias.any()


def test_a_gru_that_resets_its_product_has_a_bias_of_four() -> None:
    call = called(layer("gru", linear=True), "bias")
    c, _, step = translated(call)
    first, second = constant_of(call.args[3]).reshape(2, 3, UNITS)
    expected = np.stack([first[0] + second[0], first[1] + second[1], first[2], second[2]])[None, None]
    np.testing.assert_array_equal(array(c, roles(c, step)["bias"]), expected)


def test_peepholes_are_those_of_in_forget_and_out() -> None:
    call = called(layer("lstm"), "bias", "peepholes")
    c, _, step = translated(call)
    given = constant_of(call.args[4]).reshape(1, 1, 3, UNITS)
    np.testing.assert_array_equal(array(c, roles(c, step)["peepholes"]), given[:, :, [0, 2, 1]])


def test_states_of_an_lstm_are_both_or_none() -> None:
    for more in (("hidden",), ("cell",), ("hidden", "cell"), ()):
        c, _, step = translated(called(layer("lstm"), "bias", *more))
        found = roles(c, step)
        assert {"hidden", "cell"} & set(found) == ({"hidden", "cell"} if more else set())
        for role in ("hidden", "cell") if more else ():
            value = c.builder.values[found[role]]
            assert value.shape == (1, 1, SAMPLES, UNITS)
            assert (value.kind == "constant") == (role not in more)
            assert role in more or not array(c, found[role]).any()


def test_a_gru_has_one_state() -> None:
    c, _, step = translated(called(layer("gru"), "bias", "hidden"))
    assert "hidden" in roles(c, step) and "cell" not in roles(c, step)


# --- weights and biases that are values --------------------------------------------------------------------


def slices(c, value: int) -> list[tuple[int, int]]:
    """First places along the third axis, and numbers of parts, of what is joined to a value."""
    writers = {step.dst: step for step in c.builder.steps}
    joined = writers[value]
    parts = [writers[one.value] for one in joined.operands if one.role == "src"]
    assert joined.attrs == ir.Concat(2) and all(isinstance(part.attrs, ir.Slice) for part in parts)
    return [(part.attrs.begin[2], c.builder.values[part.dst].shape[2]) for part in parts]


def test_weights_of_a_call_are_put_in_order_and_copied() -> None:
    c, _, _ = translated(called(layer("lstm"), "bias", constants=False))
    kinds = [one.kind for one in c.builder.steps]
    assert kinds.count("reorder") == 2, "the library wants what it does not pack itself in its own layout"
    reorders = [one for one in c.builder.steps if one.kind == "reorder"]
    for one, inputs in zip(reorders, (INPUTS, UNITS), strict=True):
        assert c.builder.values[one.dst].shape == (1, 1, inputs, 4, UNITS)
        ordered = c.builder.values[one.operand("src")].alias_of
        assert slices(c, ordered) == [(0, 1), (2, 1), (3, 1), (1, 1)]
        assert c.builder.values[ordered].shape == (1, 1, 4, UNITS, inputs)


def test_gates_in_order_are_not_taken_apart() -> None:
    c, _, _ = translated(called(layer("gru"), "bias", constants=False))
    kinds = [one.kind for one in c.builder.steps]
    assert "concat" not in kinds and kinds.count("slice") == 2  # the halves of the bias


def test_halves_of_a_bias_of_a_call_are_added() -> None:
    c, _, step = translated(called(layer("gru"), "bias", constants=False))
    writers = {one.dst: one for one in c.builder.steps}
    added = writers[roles(c, step)["bias"]]
    assert added.attrs == ir.Binary("add") and c.builder.values[added.dst].shape == (1, 1, 3, UNITS)
    halves = [writers[added.operand(role)].attrs for role in ("src", "src1")]
    assert halves == [ir.Slice((0, 0, 0, 0)), ir.Slice((0, 0, 3, 0))]


def test_the_bias_of_a_call_for_a_gru_that_resets_its_product() -> None:
    c, _, step = translated(called(layer("gru", linear=True), "bias", constants=False))
    value = roles(c, step)["bias"]
    assert c.builder.values[value].shape == (1, 1, 4, UNITS)
    assert slices(c, value) == [(0, 2), (2, 1), (2, 1)]
    writers = {one.dst: one for one in c.builder.steps}
    parts = [writers[one.value].operand("src") for one in writers[value].operands if one.role == "src"]
    assert [writers[part].kind for part in parts] == ["binary", "slice", "slice"]
    # The candidate's halves: of the weights' bias, then of the recurrence's.
    assert [writers[part].attrs.begin[2] for part in parts[1:]] == [0, 3]
