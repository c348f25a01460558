"""Recurrent layers in training: the operators, and what TVM runs for them."""

from .operators import (
    BACKWARD,
    KEPT,
    TRAINING,
    TrainedCell,
    TrainedLayer,
    named_operands,
    recurrent_backward,
    recurrent_training,
)

__all__ = [
    "BACKWARD",
    "KEPT",
    "TRAINING",
    "TrainedCell",
    "TrainedLayer",
    "named_operands",
    "recurrent_backward",
    "recurrent_training",
]
