"""DynamicQuantizeLSTM: an LSTM whose weights are integers with scales.

onnxruntime rounds the data and the states of each step to 8 bits as well; here they stay as they are, and the
weights become the numbers that they stand for.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ...node import Emitter, Node, NotTaken
from ...values import Value
from ..recurrent.layers import converted
from ..table import converts

_PLACES = {1: (8, 9), 2: (10, 11)}
"""For weights and recurrence the places of their scales and zero points."""


@converts("DynamicQuantizeLSTM", domain="com.microsoft")
def _dynamic_quantize_lstm(emitter: Emitter, node: Node) -> tuple[Value, ...]:
    inputs = [*node.inputs[:8]]
    for place, (scale, zero) in _PLACES.items():
        inputs[place] = _numbers(node.known(place), node.known(scale), node.known(zero))
    return converted(emitter, replace(node, op_type="LSTM", inputs=inputs))


def _numbers(weights: np.ndarray | None, scale: np.ndarray | None, zero: np.ndarray | None) -> np.ndarray:
    """Weights (directions, inputs, gates) as floats (directions, gates, inputs).

    Scales and zero points are one for each direction, or for each gate of it.
    """
    if weights is None or scale is None:
        raise NotTaken
    directions = weights.shape[0]
    offset = 0.0 if zero is None else zero.astype("float32").reshape(directions, 1, -1)
    floats = (weights.astype("float32") - offset) * scale.reshape(directions, 1, -1)
    return np.ascontiguousarray(floats.swapaxes(1, 2), dtype="float32")
