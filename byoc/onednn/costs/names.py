"""Reads the names of oneDNN's implementations: ``brgconv_1x1:avx512_core`` and the like.

Before the first colon stands the family, behind it the instruction set; products by ``gemm`` say so in some
other place.  Steps of several primitives join their names by ``+`` in the order in which they run:
conversions of operands may stand in front of the work, and those of results behind it.  Where oneDNN runs a
convolution and the depthwise one behind it as two, it names what calls them, then both:
``ref_fused_convolution:any:brgconv_1x1:avx2:jit_dw:avx2``.
"""

from __future__ import annotations

import functools

from tvm_mxplan.core.description import Implementation

ANY_WINDOW, GEMM = "jit", "gemm"
"""Families: the kernel for any window, and products of matrices."""
_SETS = {"avx512": "avx512", "avx2": "avx2", "avx": "avx2", "sse41": "sse41", "sse2": "sse41"}
"""Instruction sets by what their names in oneDNN begin with, the longest first."""
_REORDERS = frozenset(("jit:uni", "jit:blk", "jit_direct_copy:uni", "simple:any"))
"""Names of its conversions, which some other primitives bear as well."""
_FUSED = "ref_fused_convolution:any:"


@functools.lru_cache(maxsize=1024)
def implementation_named(name: str) -> Implementation:
    """Reads the properties of an implementation that ``name`` states."""
    parts = [part.removeprefix(_FUSED) for part in name.split("+")]
    work = next((part for part in parts if part not in _REORDERS), parts[0])
    family, _, rest = work.partition(":")
    if any(part.startswith("gemm") for part in name.split(":")):  # also x64:gemm:jit, but not brgemm
        family = GEMM
    instruction_set = next((ours for theirs, ours in _SETS.items() if rest.startswith(theirs)), "")
    is_reference = any("ref" in part.split(":")[::2] for part in parts)
    return Implementation(name, family, instruction_set, is_reference)
