"""Running what was compiled: executable, virtual machine, calls, threads, caches of the process.

The first import of this package brings tvm_ffi without PyTorch, before other modules import tvm_ffi.
"""

from . import ffi as ffi
