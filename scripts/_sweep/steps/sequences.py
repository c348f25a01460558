"""Steps on sequences, made of problems: recurrent layers and attention."""

from __future__ import annotations

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
