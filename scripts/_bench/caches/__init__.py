"""The benchmark of the caches, and its sections."""
