"""Exported programs made ready for training while their graphs are PyTorch's own.

modes.py   batch norms and dropouts that train, and those that are frozen
stops.py   gradients that detach() and torch.no_grad() stop
"""

from .modes import with_modes
from .stops import with_stops

__all__ = ["with_modes", "with_stops"]
