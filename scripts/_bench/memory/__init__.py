"""The benchmarks of memory plans and of the allocation solver."""
