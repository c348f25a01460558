"""Recurrent layers as operators of Relax: ``mxplan.lstm``, ``mxplan.gru``, ``mxplan.rnn``.

    R.mxplan.lstm(data, weights, recurrence, ..., direction="forward", operands=["data", ...], ...)

    data         (T, N, I)         T steps of N samples
    weights      (D, G * H, I)     gates one behind the other, in ONNX's order: i, o, f, c; z, r, h
    recurrence   (D, G * H, H)
    bias         (D, 2 * G * H)    that of the weights, then that of the recurrence
    lengths      (N)               steps that count of each sample; behind them outputs are 0
    hidden, cell (D, N, H)         states before the first step, 0 where they are missing
    peepholes    (D, 3 * H)        of LSTM: i, o, f

All behind ``recurrence`` may be missing; the attribute ``operands`` names those that are there.  The results
are a tuple: all outputs (T, N, D * H), the last hidden state (D, N, H), and of LSTM the last cell.

A library that has the layer takes the operator whole.  Where none does, TVM runs it as one kernel, which
``recurrent_kernel.py`` makes when operators are legalized.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

import tvm
from tvm import relax

Kind: TypeAlias = Literal["lstm", "gru", "rnn"]
Direction: TypeAlias = Literal["forward", "reverse", "both"]

GATES: Mapping[Kind, int] = {"lstm": 4, "gru": 3, "rnn": 1}
OPERANDS = ("data", "weights", "recurrence", "bias", "lengths", "hidden", "cell", "peepholes")
NEEDED = 3
PREFIX = "relax.mxplan."


@dataclass(frozen=True)
class Activation:
    """A function by ONNX's name in lower case, with its numbers; 0 where it has none."""

    name: str
    alpha: float = 0.0
    beta: float = 0.0


_SIGMOID, _TANH = Activation("sigmoid"), Activation("tanh")
USUAL: Mapping[Kind, tuple[Activation, ...]] = {
    "lstm": (_SIGMOID, _TANH, _TANH),
    "gru": (_SIGMOID, _TANH),
    "rnn": (_TANH,),
}
"""The usual activations of one direction of a layer."""


@dataclass(frozen=True)
class Layer:
    """All that a recurrent layer is, but for its operands.

    Attributes
    ----------
    activations : of each direction, one behind the other.
    clip : bound of the gates' sums before their activations, 0 for none.
    coupled : an LSTM that forgets as much as it does not let in.
    linear : a GRU whose reset gate is applied behind the recurrent product.
    """

    kind: Kind
    direction: Direction
    activations: tuple[Activation, ...]
    clip: float = 0.0
    coupled: bool = False
    linear: bool = False

    @property
    def directions(self) -> int:
        return 2 if self.direction == "both" else 1

    @property
    def is_usual(self) -> bool:
        return self.activations == USUAL[self.kind] * self.directions


def recurrent(layer: Layer, operands: Mapping[str, relax.Expr]) -> relax.Call:
    """The call of a layer's operator.

    Parameters
    ----------
    operands : by their names in ``OPERANDS``.
    """
    register()
    names = [name for name in OPERANDS if name in operands]
    attrs = tvm.ir.make_node(
        "ir.DictAttrs",
        direction=layer.direction,
        activations=[one.name for one in layer.activations],
        alphas=[float(one.alpha) for one in layer.activations],
        betas=[float(one.beta) for one in layer.activations],
        clip=float(layer.clip),
        coupled=layer.coupled,
        linear=layer.linear,
        operands=names,
    )
    return relax.Call(tvm.ir.Op.get(PREFIX + layer.kind), [operands[name] for name in names], attrs)


def layer_of(call: relax.Call) -> Layer:
    """The inverse of :func:`recurrent`."""
    attrs = call.attrs
    numbers = zip(attrs["activations"], attrs["alphas"], attrs["betas"], strict=True)
    return Layer(
        str(call.op.name).removeprefix(PREFIX),  # type: ignore[arg-type]
        str(attrs["direction"]),  # type: ignore[arg-type]
        tuple(Activation(str(name), float(alpha), float(beta)) for name, alpha, beta in numbers),
        float(attrs["clip"]),
        bool(attrs["coupled"]),
        bool(attrs["linear"]),
    )


def operands_of(call: relax.Call) -> dict[str, relax.Expr]:
    """The operands by their names."""
    return dict(zip(map(str, call.attrs["operands"]), call.args, strict=True))


@functools.cache
def register() -> None:
    """Make the operators known to TVM; more than once does no harm."""
    for kind in GATES:
        name = PREFIX + kind
        tvm.ir._ffi_api.RegisterOp(name, f"a recurrent layer: {kind}")
        tvm.ir.register_op_attr(name, "FInferType", _infer)
        tvm.ir.register_op_attr(name, "FPurity", True)
        tvm.ir.register_op_attr(name, "FLegalize", _legalize)


def _infer(call: relax.Call, _builder: relax.BlockBuilder) -> tvm.ir.Type:
    given = operands_of(call)
    data, recurrence = given["data"].ty, given["recurrence"].ty
    count = 3 if call.op.name == f"{PREFIX}lstm" else 2
    shapes = data.shape, recurrence.shape
    if not all(isinstance(shape, relax.ShapeExpr) for shape in shapes):
        rows = [relax.TensorType(dtype=data.dtype, ndim=3)] * count
        return relax.TupleType(rows)
    steps, samples, _ = data.shape.values
    directions, _, units = recurrence.shape.values
    state = relax.TensorType([directions, samples, units], data.dtype)
    outputs = relax.TensorType([steps, samples, directions * units], data.dtype)
    return relax.TupleType([outputs, *[state] * (count - 1)])


def _legalize(builder: relax.BlockBuilder, call: relax.Call) -> relax.Expr:
    from .recurrent_kernel import kernel_of

    return kernel_of(builder, call)
