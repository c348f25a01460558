"""Memory between kernels and regions: one arena for each lowered function, regions included."""

from .storage_rewrite import StorageRewrite

__all__ = ["StorageRewrite"]
