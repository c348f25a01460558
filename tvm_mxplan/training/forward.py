"""A model's operators as training wants them.

nn.batch_norm   mxplan.batch_norm: the batch's statistics; the running ones become results
nn.dropout      mxplan.dropout by the step's key
mxplan.lstm     products with all inputs, and mxplan.recurrent_training; mxplan.gru likewise
"""

from __future__ import annotations

from dataclasses import dataclass, field

import tvm
from tvm import relax

from ..errors import UnsupportedError
from ..operators.batch_norm import Normalization, batch_norm
from ..operators.dropout import dropout
from ..operators.registration import shape_of
from ..passes.origins import origins_of, with_origins
from .gradients.recurrent import RECURRENT, in_training, untrained
from .model import Model


@dataclass
class Forward:
    """Rewrites the calls of a model, one after the other.

    Attributes
    ----------
    key : the step's key, for dropouts.
    names : parameters that are weights, by their variables in the function that is written.
    batch_norms : whether they become those of training.
    statistics : new running statistics by the names of the old ones.
    """

    model: Model
    builder: relax.BlockBuilder
    key: relax.Expr
    names: dict[relax.Var, str]
    batch_norms: bool = True
    statistics: dict[str, relax.Expr] = field(default_factory=dict)
    _streams: int = 0

    def __call__(self, call: relax.Call) -> relax.Expr:
        """The expression in the place of a call."""
        if not isinstance(call.op, tvm.ir.Op):
            return call
        name = str(call.op.name)
        if name == "relax.nn.batch_norm" and self.batch_norms:
            return self._batch_norm(call)
        if name == "relax.nn.dropout":
            self._streams += 1
            made = dropout(call.args[0], self.key, float(call.attrs.rate), self._streams)
            # The operator's other result, a mask, is nobody's: the front ends leave it out.
            return relax.Tuple([self.builder.emit(with_origins(made, origins_of(call)))] * 2)
        if name in RECURRENT and untrained(call) is None:
            return in_training(self.builder, call)
        return call

    def _batch_norm(self, call: relax.Call) -> relax.Expr:
        src, scale, shift, *running = call.args
        if all(isinstance(one, tvm.ir.GenericConst) for one in running):
            return call  # frozen: there is nothing to keep running
        rank = len(shape_of(src))
        if int(call.attrs.axis) % rank != 1 or rank < 2:
            raise UnsupportedError(f"a batch norm over axis {call.attrs.axis}; expected 1, the channels")
        momentum = float(call.attrs.momentum)
        if self.model.keeps_momentum:
            momentum = 1 - momentum
        channels = shape_of(scale)
        if not bool(call.attrs.scale):
            scale = relax.op.ones(channels, str(scale.ty.dtype))
        if not bool(call.attrs.center):
            shift = relax.op.zeros(channels, str(shift.ty.dtype))
        norm = Normalization(float(call.attrs.epsilon), momentum, self.model.unbiased)
        # A batch norm that is called again goes on from what its last call left.
        before = [self.statistics.get(self.names.get(old, ""), old) for old in running]
        made = with_origins(batch_norm([src, scale, shift, *before], norm), origins_of(call))
        result = self.builder.emit(made)
        for at, old in enumerate(running):
            if old in self.names:
                self.statistics[self.names[old]] = self.builder.emit(relax.TupleGetItem(result, 3 + at))
        return relax.Tuple([self.builder.emit(relax.TupleGetItem(result, at)) for at in (0, 3, 4)])
