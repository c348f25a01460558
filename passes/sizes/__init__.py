"""A named batch as a bounded set of sizes, each a function of its own."""

from .dispatch_sizes import DispatchSizes
from .named_batch import NamedBatch, named_batch
from .specialize_sizes import SpecializeSizes

__all__ = ["DispatchSizes", "NamedBatch", "SpecializeSizes", "named_batch"]
