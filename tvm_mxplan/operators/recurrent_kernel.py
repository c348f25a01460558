"""A recurrent layer as one kernel of TVM's: what runs where no library takes the operator.

    for each direction, for each sample (in parallel), for each step:
        row = bias + weights' product with the step's features, recurrence's product with the state
        states = activations of the row

Rows are summed along the gates, which stand side by side in memory, so that LLVM makes vectors of them.
Numbers of steps and samples may be symbols.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import tvm
from tvm import relax, te, tirx
from tvm.script.ir_builder import IRBuilder
from tvm.script.ir_builder import tirx as T

from .recurrent import GATES, Activation, Layer, layer_of, operands_of

_TRANSPOSED = ("weights", "recurrence")
_SCRATCH = {"lstm": 4, "gru": 7, "rnn": 1}
"""Numbers for each unit: the row; of GRU the recurrent row apart, and the state behind the reset gate."""


def kernel_of(builder: relax.BlockBuilder, call: relax.Call) -> relax.Expr:
    """The call of a kernel, whose results are those of the operator."""
    layer, given = layer_of(call), operands_of(call)
    operands = {
        name: _transposed(builder, value) if name in _TRANSPOSED else value for name, value in given.items()
    }
    kind, names = layer.kind, list(operands)
    steps, samples, _ = given["data"].ty.shape.values
    directions, _, units = given["recurrence"].ty.shape.values
    dtype = str(given["data"].ty.dtype)
    states = [(directions, samples, units)] * (2 if kind == "lstm" else 1)
    shapes = [(steps, samples, directions * units), *states, (directions, samples, _SCRATCH[kind] * units)]

    def compute(*tensors: te.Tensor) -> list[te.Tensor]:
        def body(ins: Sequence[tirx.Buffer], outs: Sequence[tirx.Buffer]) -> tirx.Stmt:
            return _body(layer, dict(zip(names, ins, strict=True)), outs)

        return te.extern(shapes, list(tensors), body, name=kind, dtype=[dtype] * len(shapes))

    every = builder.emit(builder.call_te(compute, *operands.values(), primfunc_name_hint=kind))
    return relax.Tuple([relax.TupleGetItem(every, at) for at in range(len(shapes) - 1)])


def _transposed(builder: relax.BlockBuilder, value: relax.Expr) -> relax.Expr:
    """Weights as (directions, inputs, gates); constants are transposed now."""
    if isinstance(value, tvm.ir.GenericConst):
        array = np.ascontiguousarray(value.value.numpy().swapaxes(1, 2))
        return relax.const(array, str(array.dtype))
    return builder.emit(relax.op.permute_dims(value, [0, 2, 1]))


def _body(layer: Layer, operands: Mapping[str, tirx.Buffer], outs: Sequence[tirx.Buffer]) -> tirx.Stmt:
    samples = operands["data"].shape[1]
    per = len(layer.activations) // layer.directions
    loops = []
    for direction in range(layer.directions):
        own = layer.activations[direction * per : (direction + 1) * per]
        # The third, an LSTM's, is of the cell.
        functions = [_function(one, layer.clip if at < 2 else 0.0) for at, one in enumerate(own)]
        backwards = layer.direction == "reverse" or direction == 1
        with IRBuilder() as ib:
            with T.parallel(0, samples) as sample:
                _Sequence(layer, operands, outs, functions, direction, backwards, sample).emit()
            loops.append(ib.get())
    return loops[0] if len(loops) == 1 else tirx.SeqStmt(loops)


@dataclass(frozen=True)
class _Sequence:
    """One direction of one sample."""

    layer: Layer
    operands: Mapping[str, tirx.Buffer]
    outs: Sequence[tirx.Buffer]
    functions: Sequence[Callable[[tirx.Expr], tirx.Expr]]
    direction: int
    backwards: bool
    sample: tirx.Var

    @property
    def units(self) -> int:
        return int(self.operands["recurrence"].shape[1])

    @property
    def row(self) -> int:
        """Numbers of all gates."""
        return GATES[self.layer.kind] * self.units

    def emit(self) -> None:
        for at, role in enumerate(("hidden", "cell")[: len(self.outs) - 2]):
            with T.serial(0, self.units) as unit:
                zero = tirx.const(0, self.outs[0].dtype)
                start = (
                    self.operands[role][self.direction, self.sample, unit] if role in self.operands else zero
                )
                self._put(self.outs[1 + at], unit, start)
        steps = self.operands["data"].shape[0]
        with T.serial(0, steps) as turn:
            step = steps - 1 - turn if self.backwards else turn
            if "lengths" not in self.operands:
                self._step(step)
                return
            with T.If(step < tirx.Cast(str(step.ty.dtype), self.operands["lengths"][self.sample])):
                with T.Then():
                    self._step(step)
                with T.Else(), T.serial(0, self.units) as unit:
                    self._output(step, unit, tirx.const(0, self.outs[0].dtype))

    def _step(self, step: tirx.Expr) -> None:
        data, weights = self.operands["data"], self.operands["weights"]
        self._biased(0, self.row, 0, twice=self.layer.kind != "gru")
        self._product(
            0,
            lambda i: data[step, self.sample, i],
            int(data.shape[2]),
            lambda i, g: weights[self.direction, i, g],
            self.row,
        )
        {"lstm": self._lstm, "gru": self._gru, "rnn": self._rnn}[self.layer.kind](step)

    def _biased(self, place: int, count: int, begin: int, *, twice: bool = False) -> None:
        """Begins sums from ``place`` on with the bias from ``begin`` on; ``twice`` with both halves of it."""
        with T.serial(0, count) as gate:
            value: tirx.Expr = tirx.const(0, self.outs[0].dtype)
            if "bias" in self.operands:
                bias = self.operands["bias"]
                value = bias[self.direction, begin + gate]
                if twice:
                    value = value + bias[self.direction, self.row + begin + gate]
            self._put(self.outs[-1], place + gate, value)

    def _product(
        self,
        place: int,
        factor: Callable[[tirx.Expr], tirx.Expr],
        count: int,
        weight: Callable[[tirx.Expr, tirx.Expr], tirx.Expr],
        columns: int,
    ) -> None:
        """Adds a vector's product with a matrix to the sums from ``place`` on."""
        with T.serial(0, count) as i, T.serial(0, columns) as column:
            self._put(
                self.outs[-1], place + column, self._sum(place + column) + factor(i) * weight(i, column)
            )

    def _recurrence(
        self, place: int, begin: int, columns: int, source: Callable[[tirx.Expr], tirx.Expr]
    ) -> None:
        """Adds the product of a state with columns of the recurrence to the sums from ``place`` on."""
        recurrence = self.operands["recurrence"]
        self._product(
            place, source, self.units, lambda i, g: recurrence[self.direction, i, begin + g], columns
        )

    def _lstm(self, step: tirx.Expr) -> None:
        inner, candidate, outer = self.functions
        units, peepholes = self.units, self.operands.get("peepholes")
        self._recurrence(0, 0, self.row, self._hidden)

        def peep(at: int, unit: tirx.Expr, cell: tirx.Expr) -> tirx.Expr:
            if peepholes is None:
                return tirx.const(0, self.outs[0].dtype)
            return peepholes[self.direction, at * units + unit] * cell

        with T.serial(0, units) as unit:
            before = self.outs[2][self.direction, self.sample, unit]
            self._put(self.outs[-1], unit, inner(self._sum(unit) + peep(0, unit, before)))
            entering = self._sum(unit)
            kept = (
                tirx.const(1, self.outs[0].dtype) - entering
                if self.layer.coupled
                else inner(self._sum(2 * units + unit) + peep(2, unit, before))
            )
            self._put(self.outs[2], unit, kept * before + entering * candidate(self._sum(3 * units + unit)))
            now = self.outs[2][self.direction, self.sample, unit]
            leaving = inner(self._sum(units + unit) + peep(1, unit, now))
            self._put(self.outs[1], unit, leaving * outer(now))
            self._output(step, unit, self._hidden(unit))

    def _gru(self, step: tirx.Expr) -> None:
        inner, candidate = self.functions
        units, row = self.units, self.row
        one = tirx.const(1, self.outs[0].dtype)
        linear = self.layer.linear
        self._biased(row, row, row)
        self._recurrence(row, 0, row if linear else 2 * units, self._hidden)
        with T.serial(0, units) as unit:
            reset = inner(self._sum(units + unit) + self._sum(row + units + unit))
            gated = self._sum(row + 2 * units + unit) if linear else self._hidden(unit)
            self._put(self.outs[-1], 2 * row + unit, reset * gated)
        if not linear:
            self._recurrence(row + 2 * units, 2 * units, units, lambda i: self._sum(2 * row + i))
        with T.serial(0, units) as unit:
            recurrent = self._sum((2 * row if linear else row + 2 * units) + unit)
            self._put(self.outs[-1], unit, inner(self._sum(unit) + self._sum(row + unit)))
            new = candidate(self._sum(2 * units + unit) + recurrent)
            self._put(
                self.outs[1], unit, (one - self._sum(unit)) * new + self._sum(unit) * self._hidden(unit)
            )
            self._output(step, unit, self._hidden(unit))

    def _rnn(self, step: tirx.Expr) -> None:
        self._recurrence(0, 0, self.row, self._hidden)
        with T.serial(0, self.units) as unit:
            self._put(self.outs[1], unit, self.functions[0](self._sum(unit)))
            self._output(step, unit, self._hidden(unit))

    def _hidden(self, unit: tirx.Expr) -> tirx.Expr:
        return self.outs[1][self.direction, self.sample, unit]

    def _sum(self, place: tirx.Expr) -> tirx.Expr:
        return self.outs[-1][self.direction, self.sample, place]

    def _put(self, buffer: tirx.Buffer, place: tirx.Expr, value: tirx.Expr) -> None:
        T.buffer_store(buffer, value, [self.direction, self.sample, place])

    def _output(self, step: tirx.Expr, unit: tirx.Expr, value: tirx.Expr) -> None:
        place = [step, self.sample, self.direction * self.units + unit]
        T.buffer_store(self.outs[0], value, place)


def _function(activation: Activation, clip: float) -> Callable[[tirx.Expr], tirx.Expr]:
    rule = FUNCTIONS[activation.name]

    def applied(x: tirx.Expr) -> tirx.Expr:
        dtype = str(x.ty.dtype)
        if clip:
            x = tirx.max(tirx.min(x, tirx.const(clip, dtype)), tirx.const(-clip, dtype))
        return rule(x, *(tirx.const(number, dtype) for number in (activation.alpha, activation.beta)))

    return applied


def _bound(x: tirx.Expr, low: float, high: float) -> tirx.Expr:
    dtype = str(x.ty.dtype)
    return tirx.max(tirx.min(x, tirx.const(high, dtype)), tirx.const(low, dtype))


def _zero(x: tirx.Expr) -> tirx.Expr:
    return tirx.const(0, str(x.ty.dtype))


def _one(x: tirx.Expr) -> tirx.Expr:
    return tirx.const(1, str(x.ty.dtype))


FUNCTIONS: Mapping[str, Callable[[tirx.Expr, tirx.Expr, tirx.Expr], tirx.Expr]] = {
    "sigmoid": lambda x, a, b: tirx.sigmoid(x),
    "tanh": lambda x, a, b: tirx.tanh(x),
    "relu": lambda x, a, b: tirx.max(x, _zero(x)),
    "leakyrelu": lambda x, a, b: tirx.Select(x < _zero(x), a * x, x),
    "thresholdedrelu": lambda x, a, b: tirx.Select(x > a, x, _zero(x)),
    "affine": lambda x, a, b: a * x + b,
    "elu": lambda x, a, b: tirx.Select(x < _zero(x), a * (tirx.exp(x) - _one(x)), x),
    "hardsigmoid": lambda x, a, b: _bound(a * x + b, 0.0, 1.0),
    "scaledtanh": lambda x, a, b: a * tirx.tanh(b * x),
    "softplus": lambda x, a, b: tirx.max(x, _zero(x)) + tirx.log(_one(x) + tirx.exp(_zero(x) - tirx.abs(x))),
    "softsign": lambda x, a, b: x / (_one(x) + tirx.abs(x)),
}
"""Activations by ONNX's names in lower case, of a number and their own alpha and beta."""
