"""The region program: the typed value, its rules, text, bytes, and what rewrites it without a library.

from tvm_mxplan.core import codec, program as ir
region = ir.Program(name, values, steps)      # ir.Value, ir.Step, ir.Operand, ir.Convolution, ...
assert codec.decode(codec.encode(region)) == region
"""

from .program import *  # noqa: F403
from .program import __all__ as __all__
