"""Steps on sequences, made of problems: recurrent layers, attention, and what is done to rows before it."""

from __future__ import annotations

from dataclasses import dataclass

from tvm_mxplan.core.program import program as ir

from .subject import Fields, Subject, Tensor


def recurrent(f: Fields) -> Subject:
    """cell and dir as the program has them; state1: it starts from given states."""
    cell, direction = f.text("cell", "lstm"), f.text("dir", "forward")
    gates, biases = {"lstm": (4, 4), "gru": (3, 3), "gru_linear": (3, 4)}.get(cell, (1, 1))
    directions = 2 if direction == "both" else 1
    samples, features, units = f.number("mb"), f.number("ic"), f.number("oc")
    state = (1, directions, samples, units)
    tensors = [
        Tensor("src", (f.number("t"), samples, features)),
        Tensor("weights", (1, directions, features, gates, units), True, "weights"),
        Tensor("recurrence", (1, directions, units, gates, units), True, "weights"),
        Tensor("bias", (1, directions, biases, units), True),
    ]
    if f.number("state", 0):
        tensors += [Tensor(role, state) for role in (("hidden", "cell") if cell == "lstm" else ("hidden",))]
    dst = (f.number("t"), samples, directions * units)
    attrs = ir.Recurrent(cell, direction)  # type: ignore[arg-type]
    return Subject(attrs, tuple(tensors), dst, features + units, exact=False)


def recurrent_training(f: Fields) -> Subject:
    """As recurrent, behind its products; turned1: gates stand in PyTorch's order."""
    layer = _Trained.of(f)
    tensors = [
        Tensor("src", layer.every(layer.gates)),
        Tensor("recurrence", (layer.directions, layer.gates * layer.units, layer.units), data="weights"),
        *layer.states(f),
    ]
    if layer.cell == "gru_linear":
        tensors.append(Tensor("bias", (layer.directions, layer.units)))
    others = [("kept_gates", layer.every(4), "float32")]
    if layer.cell == "lstm":
        others += [("kept_cells", layer.every(1), "float32"), ("last_cell", layer.state, "float32")]
    attrs = ir.RecurrentTraining(layer.cell, layer.direction, layer.places)  # type: ignore[arg-type]
    dst = layer.every(1)
    return Subject(attrs, tuple(tensors), dst, layer.units, exact=False, others=tuple(others))


def recurrent_backward(f: Fields) -> Subject:
    """Its gradients, of gates that no layer gave."""
    layer = _Trained.of(f)
    tensors = [
        Tensor("src", layer.every(4), data="weights"),
        Tensor("recurrence", (layer.directions, layer.gates * layer.units, layer.units), data="weights"),
        Tensor("outputs", layer.every(1)),
        Tensor("gradient", layer.every(1)),
        *layer.states(f),
    ]
    others = [("hidden_gradient", layer.state, "float32")]
    if layer.cell == "lstm":
        tensors += [Tensor("cells", layer.every(1)), Tensor("last_cell_gradient", layer.state)]
        others.append(("cell_gradient", layer.state, "float32"))
    elif layer.cell == "gru_linear":
        others.append(("reset_gradient", layer.every(1), "float32"))
    attrs = ir.RecurrentBackward(layer.cell, layer.direction, layer.places)  # type: ignore[arg-type]
    dst = layer.every(layer.gates)
    return Subject(attrs, tuple(tensors), dst, layer.gates * layer.units, exact=False, others=tuple(others))


@dataclass(frozen=True)
class _Trained:
    """Sizes of a recurrent layer in training."""

    cell: str
    direction: str
    places: tuple[int, ...]
    steps: int
    samples: int
    units: int

    @classmethod
    def of(cls, f: Fields) -> _Trained:
        cell, direction = f.text("cell", "lstm"), f.text("dir", "forward")
        turned = bool(f.number("turned", 0))
        gates = (
            {True: (0, 3, 1, 2), False: (0, 1, 2, 3)}
            if cell == "lstm"
            else {True: (1, 0, 2), False: (0, 1, 2)}
        )
        return cls(cell, direction, gates[turned], f.number("t"), f.number("mb"), f.number("oc"))

    @property
    def gates(self) -> int:
        return len(self.places)

    @property
    def directions(self) -> int:
        return 2 if self.direction == "both" else 1

    @property
    def state(self) -> tuple[int, ...]:
        return (self.directions, self.samples, self.units)

    def every(self, rows: int) -> tuple[int, ...]:
        return (self.steps, self.samples, self.directions * rows * self.units)

    def states(self, f: Fields) -> list[Tensor]:
        roles = ("hidden", "cell") if self.cell == "lstm" else ("hidden",)
        return [Tensor(role, self.state) for role in roles] if f.number("state", 0) else []


def attention(f: Fields) -> Subject | None:
    """mb samples, oc heads over g of keys, t queries on k keys of depth ic; mask: keys, whole or rows."""
    samples, heads, groups = f.number("mb"), f.number("oc"), f.number("g", 1)
    rows, keys, depth = f.number("t"), f.number("k"), f.number("ic")
    if heads % groups:
        return None
    tensors = [
        Tensor("src", (samples, heads, rows, depth)),
        Tensor("key", (samples, groups, keys, depth)),
        Tensor("value", (samples, groups, keys, depth)),
    ]
    masks = {"keys": (samples, 1, 1, keys), "whole": (1, heads, rows, keys), "rows": (1, 1, rows, 1)}
    mask = masks.get(f.text("mask", "no"))
    if mask is not None:
        tensors.append(Tensor("mask", mask))
    attrs = ir.Attention(depth**-0.5, f.text("causal", "no"))  # type: ignore[arg-type]
    return Subject(attrs, tuple(tensors), (samples, rows, heads, depth), depth + keys, exact=False)


def rms_normalization(f: Fields) -> Subject:
    shape = f.dims()
    scale = (Tensor("scale", shape[-1:], True),) if f.number("scale", 1) else ()
    return Subject(ir.RmsNormalization(1e-5), (Tensor("src", shape), *scale), shape, exact=False)


def rotary(f: Fields) -> Subject | None:
    """mb samples, oc heads of t rows of ic numbers, k of them paired; table=each or pair; inter1: twins."""
    samples, heads, rows, extent = (f.number(name) for name in ("mb", "oc", "t", "ic"))
    width = f.number("k", extent)
    if width % 2 or width > extent:
        return None
    shape = (samples, heads, rows, extent)
    table = (1, 1, rows, width if f.text("table", "each") == "each" else width // 2)
    tensors = (
        Tensor("src", shape),
        Tensor("cosines", table, data="fine"),
        Tensor("sines", table, data="fine"),
    )
    return Subject(ir.Rotary(width, bool(f.number("inter", 0))), tensors, shape, exact=False)
