"""Gradients of operators: where Relax has none, or where ours is better for libraries.

table.py           gradients by operator, and how Relax's pass sees them for a while
elementwise.py     activations, clips, functions of one number
lookups.py         rows of a table
reach.py           weights that the loss depends on; operators without gradients between
normalization.py   batch, layer, group and instance norms, dropout
products.py        sums of products by letters
recurrent.py       LSTM and GRU
stops.py           data that enters what trained weights take part in, which wants no gradients
shapes.py          slices, pads, concatenations, views
windows.py         convolutions and pools
"""

from . import elementwise, lookups, normalization, products, recurrent, shapes, windows  # noqa: F401 (they join the table)
from .reach import check_gradients, named_origins, reached
from .stops import with_stops
from .table import ours

__all__ = ["check_gradients", "named_origins", "ours", "reached", "with_stops"]
