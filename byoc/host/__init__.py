"""Kernels of this project's own, for what other libraries lack; see docs/libraries/host.md."""
