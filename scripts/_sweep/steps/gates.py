"""Squeeze-and-excite, made of problems."""

from __future__ import annotations

from tvm_mxplan.core.program import program as ir

from .subject import Fields, Subject, Tensor


def squeeze_excite(f: Fields) -> Subject:
    """oc outputs of the first product; oc0: one product alone."""
    channels, middle = f.number("ic"), f.number("oc")
    shape = (f.number("mb"), channels, *f.spatial("i", 1))
    products = [(channels, channels)] if middle == 0 else [(middle, channels), (channels, middle)]
    tensors = [Tensor("src", shape)]
    for weights, (outputs, inputs) in zip(("weights", "gate_weights"), products, strict=False):
        bias = "bias" if weights == "weights" else "gate_bias"
        tensors.append(Tensor(weights, (outputs, inputs), True, "weights"))
        tensors.append(Tensor(bias, (outputs,), True))
    function = ("linear", 1.0, 0.0) if middle == 0 else ("relu", 0.0, 0.0)
    attrs = ir.SqueezeExcite(*function, f.text("alg", "logistic"), 0.2, 0.5)
    return Subject(attrs, tuple(tensors), shape, channels + middle, exact=False)
