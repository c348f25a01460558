"""Order of execution as plain data: which legal order of steps needs the least memory at once.

``problem`` is the data, ``choose`` the decision, ``search`` what explores.
"""

from .choose import Order, choose_order
from .problem import Graph, Tensor, peak_of

__all__ = ["Graph", "Order", "Tensor", "choose_order", "peak_of"]
