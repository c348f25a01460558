"""Operators as a step of training wants them: batch norms with their statistics, and what is random.

``tvm_mxplan.training`` turns the batch norms and dropouts of Relax into those of training.
"""

from __future__ import annotations

import numpy as np
from tvm import relax

from ....errors import UnsupportedError
from ..node import Emitter, Node, dims_of, dtype_of
from .table import TRAINING, Converter


def _for_training(name: str, function: Converter) -> None:
    TRAINING[f"aten.{name}.default"] = function


def _batch_norm(emitter: Emitter, node: Node) -> list[relax.Expr | None]:
    """By running statistics; the results beside the first are for gradients."""
    source, mean, variance = node["input"], node["running_mean"], node["running_var"]
    channels = dims_of(mean)
    gamma, beta = (
        node[name] if node[name] is not None else relax.const(np.full(channels, number, dtype_of(source)))
        for name, number in (("weight", 1), ("bias", 0))
    )
    found = emitter.emit(
        relax.op.nn.batch_norm(
            source, gamma, beta, mean, variance, axis=1, epsilon=node["eps"], momentum=node["momentum"]
        )
    )
    return [emitter.emit(relax.TupleGetItem(found, 0)), None, None]


def _dropout(emitter: Emitter, node: Node) -> list[relax.Expr | None]:
    return [emitter.dropped(node["input"], float(node["p"])), None]


def _bernoulli(emitter: Emitter, node: Node) -> relax.Expr:
    """1 with a probability, else 0: a dropout of ones, whose scale is taken back."""
    share, kind = float(node["p"]), node.result.dtype
    if not 0 <= share <= 1:
        raise UnsupportedError(f"a probability of {share}; expected from 0 to 1")
    shape = [int(extent) for extent in dims_of(node["self"])]
    if share in (0, 1):
        return relax.const(np.full(shape, share, kind))
    ones = relax.const(np.ones(shape, kind))
    return emitter.emit(relax.op.multiply(emitter.dropped(ones, 1 - share), relax.const(share, kind)))


_for_training("_native_batch_norm_legit_no_training", _batch_norm)
_for_training("native_dropout", _dropout)
TRAINING["aten.bernoulli.p"] = _bernoulli
