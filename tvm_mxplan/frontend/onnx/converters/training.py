"""Operators that inference leaves out, kept for training; ``tvm_mxplan.training`` writes them into models."""

from __future__ import annotations

from tvm import relax

from ..node import Emitter, Node
from ..values import Value
from .table import converts

DOMAIN = "mxplan.training"


@converts("Dropout", domain=DOMAIN)
def _dropout(emitter: Emitter, node: Node) -> Value:
    call = emitter.emit(relax.op.nn.dropout(emitter.tensor(node.input(0)), node.attribute("ratio", 0.5)))
    return emitter.emit(relax.TupleGetItem(call, 0))
