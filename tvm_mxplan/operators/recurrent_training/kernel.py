"""Recurrent layers in training and their gradients as kernels of TVM's, where no library takes them.

    for each direction, for each sample (in parallel), for each step:
        row = the recurrence's product with a state, or with the gradients of a step's sums
        arithmetic of the gates, unit by unit

Numbers of one direction and sample stand side by side.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from tvm import relax, te, tirx
from tvm.script.ir_builder import IRBuilder
from tvm.script.ir_builder import tirx as T

from .operators import KEPT, TrainedLayer, named_operands

Index: TypeAlias = tirx.Expr | int


def forward_kernel(builder: relax.BlockBuilder, call: relax.Call) -> relax.Expr:
    """The call of a kernel whose results are those of ``recurrent_training``."""
    return _kernel(builder, call, _Forward)


def backward_kernel(builder: relax.BlockBuilder, call: relax.Call) -> relax.Expr:
    """The call of a kernel whose results are those of ``recurrent_backward``."""
    return _kernel(builder, call, _Backward)


def _kernel(builder: relax.BlockBuilder, call: relax.Call, kind: type[_Sample]) -> relax.Expr:
    layer, given = TrainedLayer.of(call), named_operands(call)
    names = list(given)
    directions, rows, units = given["recurrence"].ty.shape.values
    results = builder.normalize(call).ty.fields
    samples, dtype = results[0].shape.values[1], str(results[0].dtype)
    # Behind the results, numbers of each sample that no one else reads.
    shapes = [tuple(field.shape.values) for field in results]
    shapes.append((directions, samples, int(rows) + int(units)))

    def compute(*tensors: te.Tensor) -> list[te.Tensor]:
        def body(ins: Sequence[tirx.Buffer], outs: Sequence[tirx.Buffer]) -> tirx.Stmt:
            loops = []
            for direction in range(layer.directions):
                with IRBuilder() as ib:
                    with T.parallel(0, samples) as sample:
                        kind(layer, dict(zip(names, ins, strict=True)), outs, direction, sample).emit()
                    loops.append(ib.get())
            return loops[0] if len(loops) == 1 else tirx.SeqStmt(loops)

        return te.extern(shapes, list(tensors), body, name=layer.cell, dtype=[dtype] * len(shapes))

    hint = str(call.op.name).rsplit(".", 1)[1]
    every = builder.emit(builder.call_te(compute, *given.values(), primfunc_name_hint=hint))
    return relax.Tuple([relax.TupleGetItem(every, at) for at in range(len(shapes) - 1)])


@dataclass(frozen=True)
class _Sample(ABC):
    """One direction of one sample."""

    layer: TrainedLayer
    ins: Mapping[str, tirx.Buffer]
    outs: Sequence[tirx.Buffer]
    direction: int
    sample: tirx.Var

    @abstractmethod
    def emit(self) -> None:
        """Emit the kernel's statements for all steps of the sample."""

    @property
    def units(self) -> int:
        return int(self.ins["recurrence"].shape[2])

    @property
    def gates(self) -> int:
        return len(self.layer.places)

    @property
    def steps(self) -> int:
        return int(self.outs[0].shape[0])

    @property
    def dtype(self) -> str:
        return str(self.outs[0].dtype)

    @property
    def backwards(self) -> bool:
        return self.layer.direction == "reverse" or self.direction == 1

    def number(self, value: float) -> tirx.Expr:
        return tirx.const(value, self.dtype)

    def place(self, turn: Index) -> Index:
        """The step that the direction does as its ``turn``-th."""
        return self.steps - 1 - turn if self.backwards else turn

    def at(self, buffer: tirx.Buffer, step: Index, row: Index, unit: Index, rows: int = 1) -> tirx.Expr:
        """A number of a tensor of all steps that has ``rows`` rows of units for each direction."""
        return buffer[step, self.sample, (self.direction * rows + row) * self.units + unit]

    def put(
        self, buffer: tirx.Buffer, step: Index, row: Index, unit: Index, value: tirx.Expr, rows: int = 1
    ) -> None:
        place = (self.direction * rows + row) * self.units + unit
        T.buffer_store(buffer, value, [step, self.sample, place])

    def state(self, role: str, unit: Index) -> tirx.Expr:
        """A state before the first step, or 0."""
        if role not in self.ins:
            return self.number(0)
        return self.ins[role][self.direction, self.sample, unit]

    def before(self, buffer: tirx.Buffer, role: str, turn: Index, unit: Index) -> tirx.Expr:
        """A tensor's part of the step before, or the state that the first step starts from."""
        last = self.at(buffer, self.place(tirx.max(turn - 1, 0)), 0, unit)
        return tirx.if_then_else(turn > 0, last, self.state(role, unit))

    def own(self, place: Index) -> tirx.Expr:
        """A number of the sample's own."""
        return self.outs[-1][self.direction, self.sample, place]

    def put_own(self, place: Index, value: tirx.Expr) -> None:
        T.buffer_store(self.outs[-1], value, [self.direction, self.sample, place])

    def put_state(self, buffer: tirx.Buffer, unit: Index, value: tirx.Expr) -> None:
        T.buffer_store(buffer, value, [self.direction, self.sample, unit])

    def weight(self, row: Index, column: Index) -> tirx.Expr:
        return self.ins["recurrence"][self.direction, row, column]


def _slope_of_sigmoid(y: tirx.Expr) -> tirx.Expr:
    return y * (tirx.const(1, str(y.ty.dtype)) - y)


def _slope_of_tanh(y: tirx.Expr) -> tirx.Expr:
    return tirx.const(1, str(y.ty.dtype)) - y * y


class _Forward(_Sample):
    """Own numbers: sums of the recurrence's rows, then one row of units."""

    def emit(self) -> None:
        with T.serial(0, self.steps) as turn:
            step = self.place(turn)
            {"lstm": self._lstm, "gru": self._gru, "gru_linear": self._gru}[self.layer.cell](turn, step)
        if self.layer.is_lstm:
            with T.serial(0, self.units) as unit:
                last = self.at(self.outs[2], self.place(self.steps - 1), 0, unit)
                self.put_state(self.outs[3], unit, last)

    def _recur(self, begin: int, rows: int, source: Callable[[tirx.Expr], tirx.Expr]) -> None:
        """Rows from ``begin`` on: products of the recurrence with a state."""
        with T.serial(0, rows) as row:
            self.put_own(begin + row, self.number(0))
            with T.serial(0, self.units) as unit:
                term = self.weight(begin + row, unit) * source(unit)
                self.put_own(begin + row, self.own(begin + row) + term)

    def _given(self, step: Index, gate: int, unit: tirx.Expr) -> tirx.Expr:
        return self.at(self.ins["products"], step, self.layer.places[gate], unit, self.gates)

    def _sum(self, step: Index, gate: int, unit: tirx.Expr) -> tirx.Expr:
        return self._given(step, gate, unit) + self.own(self.layer.places[gate] * self.units + unit)

    def _keep(self, step: Index, row: int, unit: tirx.Expr, value: tirx.Expr) -> tirx.Expr:
        self.put(self.outs[1], step, row, unit, value, KEPT)
        return self.at(self.outs[1], step, row, unit, KEPT)

    def _lstm(self, turn: tirx.Var, step: Index) -> None:
        outputs, cells = self.outs[0], self.outs[2]
        self._recur(0, self.gates * self.units, lambda unit: self.before(outputs, "hidden", turn, unit))
        with T.serial(0, self.units) as unit:
            entering, leaving, kept = (
                self._keep(step, gate, unit, tirx.sigmoid(self._sum(step, gate, unit))) for gate in range(3)
            )
            fresh = self._keep(step, 3, unit, tirx.tanh(self._sum(step, 3, unit)))
            self.put(cells, step, 0, unit, kept * self.before(cells, "cell", turn, unit) + entering * fresh)
            self.put(outputs, step, 0, unit, leaving * tirx.tanh(self.at(cells, step, 0, unit)))

    def _gru(self, turn: tirx.Var, step: Index) -> None:
        outputs, units = self.outs[0], self.units
        linear = self.layer.cell == "gru_linear"

        def before(unit: tirx.Expr) -> tirx.Expr:
            return self.before(outputs, "hidden", turn, unit)

        self._recur(0, (3 if linear else 2) * units, before)
        with T.serial(0, units) as unit:
            for gate in range(2):
                self._keep(step, gate, unit, tirx.sigmoid(self._sum(step, gate, unit)))
            gated = self.at(self.outs[1], step, 1, unit, KEPT) * before(unit)
            if linear:
                bias = self.ins["bias"][self.direction, unit] if "bias" in self.ins else self.number(0)
                gated = self.own(2 * units + unit) + bias
            self._keep(step, 3, unit, gated)
        if not linear:
            self._recur(2 * units, units, lambda unit: self.at(self.outs[1], step, 3, unit, KEPT))
        with T.serial(0, units) as unit:
            update, reset, gated = (self.at(self.outs[1], step, row, unit, KEPT) for row in (0, 1, 3))
            recurrent = reset * gated if linear else self.own(2 * units + unit)
            fresh = self._keep(step, 2, unit, tirx.tanh(self._given(step, 2, unit) + recurrent))
            new = update * before(unit) + (self.number(1) - update) * fresh
            self.put(outputs, step, 0, unit, new)


class _Backward(_Sample):
    """Own numbers: gradients of the recurrence's rows in a step, then one row of units.

    The states' gradients stand in their results from step to step.
    """

    def emit(self) -> None:
        with T.serial(0, self.units) as unit:
            self.put_state(self.outs[1], unit, self.number(0))
            if self.layer.is_lstm:
                self.put_state(self.outs[2], unit, self.state("last_cell_gradient", unit))
        with T.serial(0, self.steps) as back:
            turn = self.steps - 1 - back
            (self._lstm if self.layer.is_lstm else self._gru)(turn, self.place(turn))

    def _kept(self, step: Index, row: int, unit: tirx.Expr) -> tirx.Expr:
        return self.at(self.ins["gates"], step, row, unit, KEPT)

    def _arriving(self, step: Index, unit: tirx.Expr) -> tirx.Expr:
        """The gradient of the hidden state behind a step."""
        return self.at(self.ins["gradient"], step, 0, unit) + self.outs[1][self.direction, self.sample, unit]

    def _give(self, step: Index, gate: int, unit: tirx.Expr, value: tirx.Expr) -> None:
        """The gradient of a gate's sum, to the result and to the recurrence's rows."""
        place = self.layer.places[gate]
        self.put(self.outs[0], step, place, unit, value, self.gates)
        self.put_own(place * self.units + unit, value)

    def _hand_back(self, rows: int, begin: int, put: Callable[[tirx.Expr, tirx.Expr], None]) -> None:
        """Adds to each unit what the rows' gradients give it through the recurrence."""
        with T.serial(0, rows) as row, T.serial(0, self.units) as unit:
            put(unit, self.own(begin + row) * self.weight(begin + row, unit))

    def _add_to_state(self, unit: tirx.Expr, term: tirx.Expr) -> None:
        before = self.outs[1][self.direction, self.sample, unit]
        self.put_state(self.outs[1], unit, before + term)

    def _lstm(self, turn: Index, step: Index) -> None:
        cells, cell_gradient, one = self.ins["cells"], self.outs[2], self.number(1)
        with T.serial(0, self.units) as unit:
            entering, leaving, kept, fresh = (self._kept(step, row, unit) for row in range(4))
            bent = tirx.tanh(self.at(cells, step, 0, unit))
            grad = self._arriving(step, unit)
            own = cell_gradient[self.direction, self.sample, unit]
            self._give(step, 1, unit, grad * bent * _slope_of_sigmoid(leaving))
            self.put_state(cell_gradient, unit, own + grad * leaving * (one - bent * bent))
            self.put_state(self.outs[1], unit, self.number(0))
            self._give(step, 0, unit, own * fresh * _slope_of_sigmoid(entering))
            last = self.before(cells, "cell", turn, unit)
            self._give(step, 2, unit, own * last * _slope_of_sigmoid(kept))
            self._give(step, 3, unit, own * entering * _slope_of_tanh(fresh))
            self.put_state(cell_gradient, unit, own * kept)
        self._hand_back(self.gates * self.units, 0, self._add_to_state)

    def _gru(self, turn: Index, step: Index) -> None:
        units, one = self.units, self.number(1)
        linear, row = self.layer.cell == "gru_linear", self.gates * self.units
        with T.serial(0, units) as unit:
            update, reset, fresh, gated = (self._kept(step, at, unit) for at in range(4))
            grad = self._arriving(step, unit)
            last = self.before(self.ins["outputs"], "hidden", turn, unit)
            self._give(step, 0, unit, grad * (last - fresh) * _slope_of_sigmoid(update))
            self._give(step, 2, unit, grad * (one - update) * _slope_of_tanh(fresh))
            self.put_state(self.outs[1], unit, grad * update)
            if linear:
                candidate = self.own(2 * units + unit)
                self._give(step, 1, unit, candidate * gated * _slope_of_sigmoid(reset))
                self.put_own(2 * units + unit, candidate * reset)
                self.put(self.outs[2], step, 0, unit, self.own(2 * units + unit))
            else:
                self.put_own(row + unit, self.number(0))
        if not linear:
            self._hand_back(
                units, 2 * units, lambda unit, term: self.put_own(row + unit, self.own(row + unit) + term)
            )
            with T.serial(0, units) as unit:
                reset = self._kept(step, 1, unit)
                last = self.before(self.ins["outputs"], "hidden", turn, unit)
                self._give(step, 1, unit, self.own(row + unit) * last * _slope_of_sigmoid(reset))
                self._add_to_state(unit, self.own(row + unit) * reset)
        self._hand_back((3 if linear else 2) * units, 0, self._add_to_state)
