"""Everything that is decided on plain data: region programs, layouts, memory, order.  Imports no TVM."""

from . import program
from .program import codec

__all__ = ["codec", "program"]
