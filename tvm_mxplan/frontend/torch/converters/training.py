"""Operators as a step of training wants them: batch norms with their statistics, and what is random.

``tvm_mxplan.training`` turns the batch norms and dropouts of Relax into those of training.
"""

from __future__ import annotations

import math

import numpy as np
from tvm import relax

from ....errors import UnsupportedError
from ..node import Emitter, Node, dims_of, dtype_of
from .selection.bags import embedding_bags
from .table import COMPLEX, TABLE, TRAINING, Converter

STOP_GRADIENT = "tvm_mxplan.stop_gradient.default"
"""The operator that training puts in the place of detach() and before what runs under no_grad()."""


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


def _stopped(emitter: Emitter, node: Node) -> relax.Expr:
    """The operand, which gets no gradient."""
    source = node["x"]
    return emitter.emit(relax.op.grad.no_grad(source)) if "float" in dtype_of(source) else source


def _embedding(emitter: Emitter, node: Node) -> relax.Expr:
    """Rows of a table; the row of padding gets no gradient."""
    _check_frequencies(node)
    found = emitter.emit(relax.op.take(node["weight"], node["indices"], 0))
    if node["padding_idx"] < 0:
        return found
    indices = node["indices"]
    pads = emitter.emit(relax.op.equal(indices, relax.const(node["padding_idx"], dtype_of(indices))))
    pads = emitter.reshaped(pads, [*dims_of(indices), 1])
    return emitter.emit(relax.op.where(pads, emitter.emit(relax.op.grad.no_grad(found)), found))


def _embedding_bags(emitter: Emitter, node: Node) -> list[relax.Expr | None]:
    _check_frequencies(node)
    return embedding_bags(emitter, node)


def _check_frequencies(node: Node) -> None:
    if node["scale_grad_by_freq"]:
        raise UnsupportedError(
            "scale_grad_by_freq=True cannot be trained: gradients of rows are not divided by how often these "
            "are read; leave it out"
        )


def _elu(emitter: Emitter, node: Node) -> relax.Expr:
    """ELU, SELU and CELU, whose exponential sees no number above zero: its gradient would be infinite."""
    source, dtype = node["self"], dtype_of(node["self"])

    def times(tensor: relax.Expr, factor: float) -> relax.Expr:
        return tensor if factor == 1 else emitter.emit(relax.op.multiply(tensor, relax.const(factor, dtype)))

    zero = relax.const(0.0, dtype)
    above = emitter.emit(relax.op.greater(source, zero))
    small = emitter.emit(relax.op.where(above, zero, source))
    grown = emitter.emit(relax.op.exp(times(small, float(node["input_scale"]))))
    below = emitter.emit(relax.op.subtract(grown, relax.const(1.0, dtype)))
    curved = times(below, float(node["alpha"]))
    return times(emitter.emit(relax.op.where(above, source, curved)), float(node["scale"]))


def _bounded(emitter: Emitter, node: Node) -> relax.Expr:
    """Numbers with a bound on one side pass no gradient there; tensors share it with equal bounds."""
    low, high = node.operands.get("min"), node.operands.get("max")
    numbers = [one for one in (low, high) if isinstance(one, int | float) and not math.isnan(one)]
    if "float" not in node.result.dtype or (low, high).count(None) != 1 or not numbers:
        return TABLE[node.operator](emitter, node)
    source = emitter.cast(node["self"], node.result.dtype)
    bounds = (-np.inf if low is None else low, np.inf if high is None else high)
    return emitter.emit(relax.op.nn.relu(source) if low == 0 else relax.op.clip(source, *bounds))


for _bound in ("clamp", "clamp_min", "clamp_max"):
    _for_training(_bound, _bounded)
_for_training("elu", _elu)
_for_training("embedding", _embedding)
_for_training("_embedding_bag", _embedding_bags)
_for_training("_embedding_bag_forward_only", _embedding_bags)
TABLE[STOP_GRADIENT] = COMPLEX[STOP_GRADIENT] = _stopped
_for_training("_native_batch_norm_legit_no_training", _batch_norm)
_for_training("native_dropout", _dropout)
TRAINING["aten.bernoulli.p"] = _bernoulli
