"""Gradients of operators: where Relax has none, or where ours is better for libraries.

table.py           gradients by operator, and how Relax's pass sees them for a while
elementwise.py     activations, clips, functions of one number
lookups.py         rows of a table
normalization.py   batch, layer, group and instance norms, dropout
recurrent.py       LSTM and GRU
shapes.py          slices, pads, concatenations, views
windows.py         convolutions and pools
"""

from . import elementwise, lookups, normalization, recurrent, shapes, windows  # noqa: F401 (they join the table)
from .table import differentiable, ours

__all__ = ["differentiable", "ours"]
