"""Recurrent layers in training against those that they stand for, and gradients against differences."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest
import tvm
from tvm import relax
from tvm.relax import op

from tvm_mxplan.operators.recurrent import GATES, USUAL, Activation, Layer, recurrent
from tvm_mxplan.training.gradients import ours
from tvm_mxplan.training.gradients.recurrent import in_training, untrained

SAMPLES, FEATURES, UNITS = 3, 4, 5


@dataclass(frozen=True)
class Case:
    layer: Layer
    roles: tuple[str, ...]
    steps: int = 4

    def shapes(self) -> dict[str, tuple[int, ...]]:
        count, rows = self.layer.directions, GATES[self.layer.kind] * UNITS
        every = {
            "data": (self.steps, SAMPLES, FEATURES),
            "weights": (count, rows, FEATURES),
            "recurrence": (count, rows, UNITS),
            "bias": (count, 2 * rows),
            "hidden": (count, SAMPLES, UNITS),
            "cell": (count, SAMPLES, UNITS),
        }
        return {role: every[role] for role in (*list(every)[:3], *self.roles)}


def layer(kind: str, direction: str, **attributes: object) -> Layer:
    count = 2 if direction == "both" else 1
    return Layer(kind, direction, USUAL[kind] * count, **attributes)  # type: ignore[arg-type]


CASES = {
    "lstm": Case(layer("lstm", "forward"), ("bias",)),
    "lstm_both": Case(layer("lstm", "both"), ("bias", "hidden", "cell")),
    "lstm_reverse": Case(layer("lstm", "reverse"), ("hidden",)),
    "lstm_one_step": Case(layer("lstm", "forward"), ("cell",), steps=1),
    "gru": Case(layer("gru", "forward"), ("bias",)),
    "gru_both": Case(layer("gru", "both"), ("bias", "hidden")),
    "gru_reverse": Case(layer("gru", "reverse"), ()),
    "gru_one_step": Case(layer("gru", "reverse"), ("hidden",), steps=1),
    "linear": Case(layer("gru", "forward", linear=True), ("bias", "hidden")),
    "linear_both": Case(layer("gru", "both", linear=True), ()),
    "linear_reverse": Case(layer("gru", "reverse", linear=True), ("bias",)),
}
Emit = Callable[[relax.BlockBuilder, relax.Call], relax.Expr]


def function(
    builder: relax.BlockBuilder, name: str, case: Case, emit: Emit, shares: list[np.ndarray]
) -> None:
    """Sums of all results of a layer, each with weights of its own."""
    operands = {
        role: relax.Var(role, relax.TensorType(shape, "float64")) for role, shape in case.shapes().items()
    }
    with builder.function(name, list(operands.values())):
        with builder.dataflow():
            every = builder.emit(emit(builder, builder.normalize(recurrent(case.layer, operands))))
            parts = [builder.emit(relax.TupleGetItem(every, at)) for at in range(len(every.ty.fields))]
            sums = [
                builder.emit(
                    op.sum(
                        op.multiply(part, relax.const(share[: np.prod(extents)].reshape(extents), "float64"))
                    )
                )
                for part, share in zip(parts, shares, strict=False)
                for extents in [[int(extent) for extent in part.ty.shape.values]]
            ]
            total = sums[0]
            for one in sums[1:]:
                total = builder.emit(op.add(total, one))
            total = builder.emit_output(total)
        builder.emit_func_output(total)


def machine(random: np.random.Generator) -> relax.VirtualMachine:
    every: dict[tvm.ir.GlobalVar, object] = {}
    for name, case in CASES.items():
        shares = [random.standard_normal(1000) for _ in range(3)]
        builder = relax.BlockBuilder()
        function(builder, f"{name}_whole", case, lambda _, call: call, shares)
        every.update(builder.get().functions.items())
        builder = relax.BlockBuilder()
        function(builder, name, case, in_training, shares)
        with ours():
            every.update(relax.transform.Gradient(name)(builder.get()).functions.items())
    mod = relax.transform.DeadCodeElimination(
        [name for case in CASES for name in (case, f"{case}_whole", f"{case}_adjoint")]
    )(tvm.IRModule(every))
    return relax.VirtualMachine(relax.build(mod, "llvm"), tvm.cpu())


@pytest.mark.slow
def test_layers_in_training_and_their_gradients() -> None:
    random = np.random.default_rng(0)
    built = machine(random)
    for name, case in CASES.items():
        operands = [random.standard_normal(shape) / 2 for shape in case.shapes().values()]

        def total(arrays: list[np.ndarray], name: str) -> float:
            return float(built[name](*[tvm.runtime.tensor(one) for one in arrays]).numpy())

        assert total(operands, name) == pytest.approx(total(operands, f"{name}_whole"), rel=1e-12), name
        _, grads = built[f"{name}_adjoint"](*[tvm.runtime.tensor(one) for one in operands])
        assert len(grads) == len(operands)
        for at, (role, grad) in enumerate(zip(case.shapes(), grads, strict=True)):
            direction = random.standard_normal(operands[at].shape) * 1e-6
            above, below = list(operands), list(operands)
            above[at], below[at] = operands[at] + direction, operands[at] - direction
            expected = (total(above, name) - total(below, name)) / 2
            found = float((grad.numpy() * direction).sum())
            scale = np.sqrt((grad.numpy() ** 2).sum() * (direction**2).sum())
            # One step from zeros reads no recurrence.
            assert scale > 0 or (case.steps == 1 and role == "recurrence"), (name, role)
            assert abs(found - expected) <= 1e-6 * scale, (name, role, found, expected)


@pytest.mark.parametrize(
    ("given", "roles", "reason"),
    [
        (layer("rnn", "forward"), (), "plain cells"),
        (layer("lstm", "forward", clip=3.0), (), "clipped"),
        (layer("lstm", "forward", coupled=True), (), "coupled"),
        (layer("lstm", "forward"), ("lengths",), "lengths"),
        (layer("lstm", "forward"), ("peepholes",), "peepholes"),
        (Layer("gru", "forward", (Activation("relu"), Activation("tanh"))), (), "activations"),
    ],
)
def test_what_has_no_gradient_says_why(given: Layer, roles: tuple[str, ...], reason: str) -> None:
    shapes = Case(given, ()).shapes()
    operands = {role: relax.Var(role, relax.TensorType(shape, "float32")) for role, shape in shapes.items()}
    operands |= {role: relax.Var(role, relax.TensorType(None, "float32")) for role in roles}
    found = untrained(recurrent(given, operands))
    assert found is not None
    assert reason in found
    assert untrained(recurrent(layer("gru", "both"), operands_of_both())) is None


def operands_of_both() -> dict[str, relax.Var]:
    shapes = Case(layer("gru", "both"), ()).shapes()
    return {role: relax.Var(role, relax.TensorType(shape, "float32")) for role, shape in shapes.items()}
