"""Shares and operations of the runtime's own kernels beside oneDNN's."""
