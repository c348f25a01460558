"""The alignment of tensors in arenas, and the size of huge pages.

The runtime has the same numbers (``byoc/runtime/memory/buffer.h``).
"""

ALIGNMENT = 64
"""Bytes: tensors begin at multiples of it, and take multiples of it."""
HUGE_PAGE = 2 << 20
"""Bytes of a page where the system gives huge ones."""
